"""Interpret the end of rg: whether its answer is complete, partial or missing, and which paths it could not read."""

import functools
import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ripwrap._ripgrep.query import Query
from ripwrap._ripgrep.stderr import MAX_STDERR, failure, only_path_errors, out_of_threads, panicked, path_errors
from ripwrap.errors import SearchError
from ripwrap.models import PathError

_LOGGER = logging.getLogger("ripwrap")

MAX_NAMED_PATHS = 10
"""Maximum number of paths in a log record."""

UNCOUNTED = PathError.model_construct(  # without the validator, which takes 20 ms to make
    path=None,
    kind="other",
    message="a file in which rg finds a NUL byte after a match has no count; with text=True, it is counted",
)


@dataclass(frozen=True)
class Exit:
    """Exit code and stderr of an rg process that has ended."""

    query: Query
    argv: tuple[str, ...]
    returncode: int
    stderr: bytes
    lingered: bool = False
    wrote: bool = False
    runs: int = 1
    failed: Exception | None = None
    also: tuple[PathError, ...] = ()

    @property
    def partial(self) -> bool:
        """True if rg exited with 2. An answer may then be incomplete, because rg could not read some path."""
        return self.returncode == 2 and self.failed is None

    @property
    def ended(self) -> bool:
        """True if rg wrote its whole output: results or an error message."""
        return self.lingered or (self.returncode in (0, 1, 2) and self.failed is None)

    def followed_by(self, other: "Exit") -> "Exit":
        """Return one exit for two runs, as if one rg had run with the paths of both queries."""
        ended = {self.returncode, other.returncode}
        return replace(
            self,
            query=self.query.followed_by(other.query),
            returncode=(2 if 2 in ended else min(ended)) if other.ended else other.returncode,
            stderr=(self.stderr + other.stderr)[: MAX_STDERR + 1],
            lingered=other.lingered,
            wrote=self.wrote or other.wrote,
            runs=self.runs + other.runs,
            also=tuple(dict.fromkeys((*self.also, *other.also))),
        )

    def check(self, *, summary: bool) -> None:
        """Raise an error if rg did not complete a search; unreadable paths raise no error."""
        if self.failed is not None:
            raise self.failed
        if not (self.ended and summary) and not (self.query.silent and self.returncode in (0, 1)):
            raise self.failure()

    def check_listing(self) -> None:
        """Raise an error if rg did not complete a listing (of paths or counts); unreadable paths raise no error."""
        if self.failed is not None:
            raise self.failed
        # rg exits with 0 only if it listed something. `subprocess` also reports 0 if another part of the program has
        # reaped the child (a handler of SIGCHLD), so 0 with stderr and without output is a failure. rg exits with 1
        # only if it listed nothing, or only zeros. A script that starts rg may exit with 1 at any time, and so does an
        # rg that is killed on Windows (TerminateProcess).
        answered = {0: self.wrote or not self.stderr, 1: not self.wrote or self.query.lists_zeros}
        if not answered.get(self.returncode) and not (self.partial and only_path_errors(self.stderr)):
            raise self.failure()

    @property
    def out_of_threads(self) -> bool:
        """True if rg ended because the system did not let it start another thread."""
        return not self.ended and out_of_threads(self.stderr)

    @property
    def panicked(self) -> bool:
        """True if rg ended because it panicked, other than for lack of threads, or was killed after that."""
        return not self.ended and panicked(self.stderr) and not out_of_threads(self.stderr)

    def failure(self, types: Collection[str] = ()) -> SearchError:
        """Return the error for an rg that ended without an answer; `types` are rg's file types, if they are known."""
        return failure(
            self.argv,
            self.returncode,
            self.stderr,
            self.query.patterns,
            types,
            lingered=self.lingered,
            bounded=self.query.bounded,
            on_host=self.query.on is not None,
        )

    def path_errors(self) -> tuple[PathError, ...]:
        """Return the errors in rg's stderr, for example for unreadable paths, in the order in which rg wrote them.

        The errors in `also` come after them.
        """
        return (*self._path_errors, *self.also)

    @functools.cached_property
    def _path_errors(self) -> tuple[PathError, ...]:
        errors = path_errors(self.stderr)
        if self.runs > 1:  # each run repeats the same messages, e.g. about an ignore file
            errors = tuple(dict.fromkeys(errors))
        if not self.partial:  # if rg exits without an error, messages of kind `other` are only notes
            errors = tuple(error for error in errors if error.kind != "other")
        return tuple(map(self._mark_broken_link, errors))

    def _mark_broken_link(self, error: PathError) -> PathError:
        """Return the error, with the kind `broken_link` if its path is a broken link, which rg reports as missing.

        If the caller named the link in `paths`, the kind stays `missing`, because the caller expects a file there; a
        loop in `paths` is also missing. On a host, any other missing path counts as a broken link, because rg has found
        its name in a directory.
        """
        if error.kind == "loop" and error.path in self._named:
            return error.model_copy(update={"kind": "missing"})
        found = error.kind == "missing" and error.path not in self._named
        on_host = self.query.on is not None
        if found and (on_host or os.path.islink(os.path.join(self.query.cwd, error.path or ""))):
            return error.model_copy(update={"kind": "broken_link"})
        return error

    @functools.cached_property
    def _named(self) -> frozenset[str]:
        """Paths of the query without a leading `./`, to be compared with `PathError.path`."""
        return frozenset(path.removeprefix(os.path.join(os.curdir, "")) for path in self.query.paths)

    def warn(self, also: Collection[PathError] = ()) -> None:
        """Log the unreadable paths and the errors in `also`; called by operations that return no summary."""
        errors = (*self.path_errors(), *also)
        if UNCOUNTED in errors:
            _LOGGER.warning(UNCOUNTED.message, extra={"note": True})
        failed = [error for error in errors if not error.harmless and error != UNCOUNTED]
        _log(logging.WARNING, "rg could not read some paths", failed)
        _log(logging.INFO, "broken links and loops of links", [error for error in errors if error.harmless])


def _log(level: int, text: str, errors: Sequence[PathError]) -> None:
    if errors:
        names = "; ".join(map(str, errors[:MAX_NAMED_PATHS]))
        more = f"; and {len(errors) - MAX_NAMED_PATHS} more" if len(errors) > MAX_NAMED_PATHS else ""
        _LOGGER.log(level, "%s: %s%s", text, names, more)

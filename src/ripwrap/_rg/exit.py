"""How rg ended, and what that means: an answer, a partial one, or none, and what it could not read."""

import functools
import logging
import os
from collections.abc import Collection
from dataclasses import dataclass

from ripwrap._rg.argv import Command
from ripwrap._rg.stderr import failure, only_path_errors, out_of_threads, path_errors
from ripwrap.errors import SearchError
from ripwrap.models import PathError

_LOGGER = logging.getLogger("ripwrap")

_SHOWN = 10  # How many path errors one log record names.


@dataclass(frozen=True)
class Exit:
    """How rg ended.

    Attributes:
        command: What it was to do.
        argv: The whole command line.
        returncode: The exit code; negative for a signal.
        stderr: Its stderr; one byte over `MAX_STDERR` means that there is more.
        lingered: Whether it was killed because it did not exit after it had closed its stdout; the exit code then
            says nothing.
    """

    command: Command
    argv: tuple[str, ...]
    returncode: int
    stderr: bytes
    lingered: bool = False

    @property
    def partial(self) -> bool:
        """Whether something could not be searched or listed: the answer may be incomplete."""
        return self.returncode == 2

    @property
    def ended(self) -> bool:
        """Whether rg said all that it had to say, be it an answer or an error."""
        return self.lingered or self.returncode in (0, 1, 2)

    def check(self, *, summary: bool) -> None:
        """Raise unless a search has an answer, be it a partial one.

        Args:
            summary: Whether rg wrote its summary, which it does whenever it ran to its end.
        """
        if not (self.ended and summary) and not (self.command.silent and self.returncode in (0, 1)):
            raise self.failure()

    def check_listing(self, *, listed: bool) -> None:
        """Raise unless a listing has an answer, be it a partial one.

        Args:
            listed: Whether anything was listed.
        """
        # Exit 0 means that something was; not so if another part of the program reaps our children (SIGCHLD).
        answered = self.returncode == 1 or (self.returncode == 0 and (listed or not self.stderr))
        if not answered and not (self.partial and only_path_errors(self.stderr)):
            raise self.failure()

    @property
    def out_of_threads(self) -> bool:
        """Whether rg ended because the system let it start no more threads."""
        return not self.ended and out_of_threads(self.stderr)

    def failure(self, types: Collection[str] = ()) -> SearchError:
        """The error for an end without an answer; `types` are those that this rg knows, if anybody has asked."""
        return failure(self.argv, self.returncode, self.stderr, self.command.patterns, types, lingered=self.lingered)

    def path_errors(self) -> tuple[PathError, ...]:
        """What could not be read, in rg's order."""
        return self._path_errors

    @functools.cached_property
    def _path_errors(self) -> tuple[PathError, ...]:
        errors = path_errors(self.stderr)
        if not self.partial:  # That `ignore_file` cannot be read changes no exit code; for rg all else is a remark.
            errors = tuple(error for error in errors if error.kind != "other")
        return tuple(map(self._told_apart, errors))

    def _told_apart(self, error: PathError) -> PathError:
        """A link to nothing, which is there, from a path that is not: rg says the same of both."""
        if error.kind == "missing" and os.path.islink(os.path.join(self.command.cwd, error.path or "")):
            return error.model_copy(update={"kind": "broken_link"})
        return error

    def warn(self) -> None:
        """Log what could not be read, for a consumer who gets no summary."""
        if errors := self.path_errors():
            shown = "; ".join(map(str, errors[:_SHOWN]))
            more = f"; and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
            _LOGGER.warning("rg could not read everything: %s%s", shown, more)

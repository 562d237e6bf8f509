"""Interpret the end of rg, its exit code and stderr: is the answer complete, and what could not be read?

Convert rg's stderr to errors; no I/O. The messages of rg 13, 14 and 15 are listed in rg-facts 29.

Two kinds of messages are parsed: the reason why rg failed (such as an invalid pattern, glob or type), and the messages
about paths that rg could not read while the search continued.
"""

import errno
import functools
import logging
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ripwrap._ripgrep.host import INSTALL_THERE
from ripwrap._ripgrep.query import Query
from ripwrap._system.windows import IS_WINDOWS
from ripwrap.binary.probe import explain_signal
from ripwrap.errors import (
    CapabilityError,
    Clause,
    GlobError,
    Hint,
    HintedText,
    PatternError,
    SearchError,
    UnknownTypeError,
)
from ripwrap.models import PathError, PathErrorKind

MAX_STDERR = 1024 * 1024
"""Maximum number of bytes of stderr that are read; rg may write a line for each file."""

_PREFIX = re.compile(rb"^rg: ", re.MULTILINE)
_OS_ERROR = re.compile(
    rb"(?P<path>.+?): (?:IO error for operation on (?P=path): )?(?P<message>[^:]+ \(os error (?P<number>\d{1,10})\))\Z",
    re.DOTALL,
)
_AT_LINE = re.compile(rb"(?P<path>.+?): (?P<message>line \d+: .+)\Z", re.DOTALL)
_NAMED = re.compile(rb"(?P<path>\.[/\\].*?): (?P<message>.+)\Z", re.DOTALL)
_LOOP = re.compile(rb"File system loop found: (?P<path>.+) points to an ancestor .+\Z", re.DOTALL)

_POSIX_KINDS: dict[int, PathErrorKind] = {
    errno.ENOENT: "missing",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.ELOOP: "loop",
}
# ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND, ERROR_ACCESS_DENIED, ERROR_CANT_RESOLVE_FILENAME
_WINDOWS_KINDS: dict[int, PathErrorKind] = {2: "missing", 3: "missing", 5: "denied", 1921: "loop"}

_Hint: TypeAlias = tuple[str | Hint | Clause, ...]
"""Parts of a `HintedText`, which is made when rg has failed: it may have to find out how ripwrap was installed."""

_INSTALL_RG = Hint(kind="install", target="ripwrap[bin]")
_LITERAL: _Hint = ("Fix the pattern, or pass ", Hint("fixed_strings", True), " to search for it literally.")

_KILLED: _Hint = ("Try again with ", Hint("threads", 1), ", or pass the path of another rg as ", Hint("rg"), ".")

_NO_THREAD = r"^(thread '.*' panicked at ')?failed to spawn (scoped )?thread: Os \{"
_ANY_PANIC = r"^thread '.*' (\(\d+\) )?panicked at "

_SPECIAL_OF_GLOB = (
    "To match a special character of a glob (* ? [ ] { } \\ or a leading !) literally, put a backslash before it."
)
_ALL_TYPES: Clause = (Hint(kind="call", target="file_types"), " lists the types that this rg knows. ")
_ENDS = ", a pattern cannot contain a line terminator; remove the terminator, or leave that option out."
_ENCODINGS = " takes the labels of https://encoding.spec.whatwg.org/#concept-encoding-get, 'auto', or 'none'."
_TYPE_DEFINITIONS = " takes NAME:GLOB or NAME:include:NAME,NAME. A name has letters, digits and underscores."
_NO_MORE_THREADS = "The system allows no more threads, perhaps because of a container's limit on processes"

# These regular expressions match from the start of a line. Elsewhere in a line, rg may quote any text of the caller.
_FAILURES: dict[str, tuple[type[SearchError], _Hint]] = {
    r"^error parsing glob": (GlobError, (_SPECIAL_OF_GLOB,)),
    r"^unrecognized file type": (
        UnknownTypeError,
        (_ALL_TYPES, ("To select files by a pattern, pass ", Hint("glob"), ".")),
    ),
    # With `engine="auto"`, rg's report about both engines includes this message. There it is the reason of the failure
    # only if the pattern has look-around or backreferences.
    r"\APCRE2 is not available|^error: (look-around|backreferences)[\s\S]+^PCRE2 is not available": (
        CapabilityError,
        ("Search without PCRE2, or use an rg that has it: ", _INSTALL_RG, "."),
    ),
    r"\Aregex could not be compiled with either": (PatternError, _LITERAL),
    r"^error: (look-around|backreferences)": (
        PatternError,
        (("Pass ", Hint("pcre2", True), "; this needs an rg with PCRE2."),),
    ),
    r"""^the literal '?"?\\n"?'? is not allowed""": (
        PatternError,
        (("Pass ", Hint("multiline", True), " to let a match span lines."),),
    ),
    r"^the literal .* is not allowed": (
        PatternError,
        (("With ", Hint("crlf", True), " or ", Hint("null_data", True), _ENDS),),
    ),
    r"^pattern contains .* impossible to match": (
        PatternError,
        (("Pass ", Hint("text", True), " to search for NUL bytes in binary files."),),
    ),
    r"^[Cc]ompiled regex exceeds": (
        PatternError,
        ("Pass a smaller pattern", (", or a larger ", Hint("regex_size_limit"), " (in bytes, or as '100M')"), "."),
    ),
    r"^\s*regex parse error|^PCRE2: error compiling": (PatternError, _LITERAL),
    r"^.*(number too large to fit in target type|size too big in '\d+[KMG]?')$": (
        SearchError,
        ("Pass a smaller number: rg counts up to 2**64 - 1.",),
    ),
    r"^(unrecognized flag|error: Found argument)": (
        CapabilityError,
        ("Leave that option out, or use an rg that has it: ", _INSTALL_RG, "."),
    ),
    r"^(error parsing flag \S+: )?grep config error: unknown encoding: ": (SearchError, (Hint("encoding"), _ENCODINGS)),
    r"^invalid definition \(format is type:glob": (SearchError, (Hint("type_add"), _TYPE_DEFINITIONS)),
    _NO_THREAD: (SearchError, (_NO_MORE_THREADS, ("; pass ", Hint("threads", 1)), ".")),
    _ANY_PANIC: (
        SearchError,
        (
            "This is a fault of rg, and the answer would be incomplete. Try another pattern",
            (", or leave ", Hint("multiline", kind="omit"), " or ", Hint("max_count", kind="omit"), " out"),
            ".",
        ),
    ),
}

_RG_ADVICE = re.compile(r"\n+Consider enabling [^\n]+\n[^\n]+")
"""Two lines of advice in which rg names its flags. They are removed: the hint names the caller's options."""

_FLAG = re.compile(
    r"(error parsing flag |unrecognized flag |error: Invalid value for ')--(?P<name>[a-z][a-z0-9-]+)( <[^>]*>')?"
    r"(?=:|$)",
    re.MULTILINE,
)
_TYPE_NAMES = {
    "cpp": "c++ cxx cc hpp",
    "csharp": "c# dotnet",
    "docker": "dockerfile",
    "elixir": "ex",
    "erlang": "erl",
    "fsharp": "f# fs",
    "go": "golang",
    "html": "htm",
    "js": "javascript jsx node",
    "julia": "jl",
    "kotlin": "kt kts",
    "make": "makefile",
    "md": "mdx",
    "objc": "objective-c objectivec obj-c",
    "perl": "pl",
    "ps": "powershell ps1",
    "py": "python3 pyi",
    "ruby": "rb",
    "rust": "rs",
    "sass": "scss",
    "sh": "shell bash shellscript",
    "tex": "latex",
    "ts": "tsx",
    "txt": "text plaintext",
    "yaml": "yml",
}
_TYPE_ALIASES = {name: kind for kind, names in _TYPE_NAMES.items() for name in names.split()}
"""Map from names that other programs, linguists and file extensions have for a language to rg's types."""

_UNKNOWN_TYPE = re.compile(r"^unrecognized file type: (?P<name>.*)", re.MULTILINE)
_OUT_OF_THREADS = re.compile(_NO_THREAD.encode(), re.MULTILINE)
_PANIC = re.compile(_ANY_PANIC.encode(), re.MULTILINE)
_BACKTRACE = re.compile(r"\n(stack backtrace:|note: ).*", re.DOTALL)
"""What follows the message of a panic: a backtrace, and the panics of other threads, which are consequences."""


def _with_option(text: str) -> str:
    """Return a message of rg with the option of the caller in place of a flag that the caller never wrote."""
    found = _FLAG.match(text)
    if found is None:
        return text
    option = Hint(found["name"].replace("-", "_"), kind="correct")
    return HintedText("" if found[1].startswith("error") else found[1], option, text[found.end() :])


def _suggestions(text: str, types: Collection[str]) -> tuple[str, ...]:
    found = _UNKNOWN_TYPE.search(text)
    if found is None:
        return ()
    name = found["name"].lower()
    meant = _TYPE_ALIASES.get(name, name)
    import difflib  # late: few searches have an unknown type

    return (meant,) if meant in types else tuple(difflib.get_close_matches(name, types))


def out_of_threads(stderr: bytes) -> bool:
    """Return True if the system did not let rg start another thread; rg then panics and may hang (rg-facts 8)."""
    return any(map(_OUT_OF_THREADS.search, _not_of_paths(stderr)))


def panicked(stderr: bytes) -> bool:
    """Return True if a thread of rg panicked. Its other threads may then wait for it for ever (rg-facts 61)."""
    return any(map(_PANIC.search, _not_of_paths(stderr)))


def path_errors(stderr: bytes) -> tuple[PathError, ...]:
    """Return an error for each message in stderr; a message without a path becomes an error of kind `other`."""
    errors = tuple(_path_error(line) for line in _lines(stderr))
    if len(stderr) <= MAX_STDERR:
        return errors
    more = f"further errors are not shown: rg wrote more than {MAX_STDERR} bytes of errors"
    return (*errors, PathError(path=None, kind="other", message=more))


def without_paths(stderr: bytes, left_out: Callable[[str], bool]) -> bytes:
    """Return stderr without the messages about paths for which `left_out` returns True."""
    start = b"rg: " if _PREFIX.match(stderr) else b""
    lines = [line for line in _lines(stderr) if (path := _path_error(line).path) is None or not left_out(path)]
    return b"".join(start + line + b"\n" for line in lines)


def path_error(path: str, error: OSError) -> PathError:
    """Return the error that rg would report for a path and this error of the system."""
    number = getattr(error, "winerror", None) or error.errno or 0
    return PathError(path=path, kind=kind_of_error(number), message=f"{error.strerror} (os error {number})")


def kind_of_error(number: int, *, windows: bool = IS_WINDOWS) -> PathErrorKind:
    """Return the kind of error for an error number of the system."""
    return (_WINDOWS_KINDS if windows else _POSIX_KINDS).get(number, "other")


def only_path_errors(stderr: bytes) -> bool:
    """Return True if every message is about an unreadable path, and the last is whole: on a full disk, it is cut."""
    if len(stderr) <= MAX_STDERR and not stderr.endswith(b"\n"):
        return False
    errors = [_path_error(line) for line in _lines(stderr)]
    return bool(errors) and all(error.path is not None for error in errors)


def _not_of_paths(stderr: bytes) -> Iterator[bytes]:
    """Yield rg's messages, except the messages about paths: a path could contain the text of another error."""
    return (line for line in _lines(stderr) if not (_OS_ERROR.match(line) or _LOOP.match(line)))


def _lines(stderr: bytes) -> Iterator[bytes]:
    """Yield rg's messages.

    From rg 14 on, each message begins with `rg: `. The messages are split there, because a path in a message may have
    newlines.
    """
    if len(stderr) > MAX_STDERR:
        stderr = stderr[: stderr.rfind(b"\n") + 1]
    pieces = _PREFIX.split(stderr) if _PREFIX.match(stderr) else stderr.split(b"\n")
    yield from (stripped for piece in pieces if (stripped := piece.strip(b"\n")))


def _path_error(line: bytes) -> PathError:
    shown = line.decode("utf-8", "replace")
    if loop := _LOOP.match(line):
        return PathError(path=_path(loop["path"]), kind="loop", message=shown)
    if found := _OS_ERROR.match(line):
        kind = kind_of_error(int(found["number"]))
        return PathError(path=_path(found["path"]), kind=kind, message=found["message"].decode("utf-8", "replace"))
    # The message is about an invalid line of an ignore file, or begins with a path for another reason.
    if other := _AT_LINE.match(line) or _NAMED.match(line):
        return PathError(path=_path(other["path"]), kind="other", message=other["message"].decode("utf-8", "replace"))
    return PathError(path=None, kind="other", message=shown)


def _path(raw: bytes) -> str:
    try:
        path = os.fsdecode(raw)
    except UnicodeDecodeError:  # on Windows, where rg writes UTF-8
        path = raw.decode("utf-8", "replace")
    return path.removeprefix(f".{os.sep}")


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
        # With `--sortr`, rg lists all files first, so messages about paths may come before the reason. Remove them.
        reason = b"\n".join(_not_of_paths(self.stderr)) or _PREFIX.sub(b"", self.stderr)
        text = reason.decode("utf-8", "replace").strip()
        failures = (found for pattern, found in _FAILURES.items() if re.search(pattern, text, re.MULTILINE))
        kind, parts = next(failures, (SearchError, ()))
        hint = HintedText(*parts)
        if self.lingered:
            said = "rg closed its stdout but did not exit, so its answer may be incomplete; try again"
            kind, text = SearchError, f"{said}\n{text}".rstrip()
        elif panicked(self.stderr):
            text = _BACKTRACE.sub("", text)
        elif self.returncode < 0:
            kind, text = SearchError, f"rg was {explain_signal(-self.returncode)}\n{text}".rstrip()
            hint = hint or HintedText(*_KILLED)
        suggestions = _suggestions(text, types) if kind is UnknownTypeError else ()
        if self.query.on is not None and isinstance(hint, HintedText):
            hint = HintedText(*(INSTALL_THERE if part == _INSTALL_RG else part for part in hint.parts))
        if suggestions:
            hint = HintedText(f"Did you mean {' or '.join(suggestions)}? ", hint)
        error = kind(
            _with_option(_RG_ADVICE.sub("", text) if hint else text)
            or f"rg ended with exit code {self.returncode} and no message",
            argv=self.argv,
            returncode=self.returncode,
            stderr=self.stderr.decode("utf-8", "replace"),
            hint=hint,
        )
        if isinstance(error, UnknownTypeError):
            error.suggestions = suggestions
        elif isinstance(error, PatternError):
            from ripwrap._ripgrep.pattern_errors import find_error_position  # late: few searches have a wrong pattern

            error.pattern, error.offset = find_error_position(
                text, self.query.patterns, bounded=self.query.bounded, grouped=bool(_PREFIX.match(self.stderr))
            )
        return error

    def path_errors(self) -> tuple[PathError, ...]:
        """Return the errors in rg's stderr, for example for unreadable paths, in the order in which rg wrote them."""
        return (*self._path_errors, *self.also) if self.stderr else self.also

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
        if not errors:
            return
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

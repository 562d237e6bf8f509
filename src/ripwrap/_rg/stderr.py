"""rg's stderr to errors: pure; what rg 13, 14 and 15 write is listed in rg-facts 29.

Two kinds of line matter: one that says why there is no answer at all (a pattern, glob or type that does not parse), and
one for each path that could not be read while the search went on.
"""

import errno
import os
import re
from collections.abc import Iterator

from ripwrap.errors import CapabilityError, GlobError, PatternError, SearchError, UnknownTypeError
from ripwrap.models import PathError, PathErrorKind

MAX_STDERR = 1024 * 1024
"""How much of stderr is read, in bytes; rg may write a line for each file."""

_PREFIX = re.compile(rb"^rg: ", re.MULTILINE)
_OS_ERROR = re.compile(
    rb"(?P<path>.+?): (?:IO error for operation on (?P=path): )?(?P<message>[^:]+ \(os error (?P<number>\d+)\))\Z",
    re.DOTALL,
)
_AT_LINE = re.compile(rb"(?P<path>.+?): (?P<message>line \d+: .+)\Z", re.DOTALL)
_NAMED = re.compile(rb"(?P<path>\.[/\\].*?): (?P<message>.+)\Z", re.DOTALL)
_LOOP = re.compile(rb"File system loop found: (?P<path>.+) points to an ancestor .+\Z", re.DOTALL)

# POSIX numbers, then Windows' (ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND, ERROR_ACCESS_DENIED).
_KINDS: dict[int, PathErrorKind] = (
    {2: "missing", 3: "missing", 5: "denied"}
    if os.name == "nt"
    else {errno.ENOENT: "missing", errno.EACCES: "denied", errno.EPERM: "denied", errno.ELOOP: "loop"}
)

# Anchored at the line's start, because rg quotes patterns (indented) and globs, and those may say anything.
_FAILURES: tuple[tuple[str, type[SearchError], str], ...] = (
    (
        r"^error parsing glob",
        GlobError,
        "Escape what is special in a glob (* ? [ ] { } \\ and a leading !) with a backslash.",
    ),
    (
        r"^unrecognized file type",
        UnknownTypeError,
        "`rg --type-list` prints the types that this rg knows; glob= takes any pattern.",
    ),
    (
        r"^PCRE2 is not available",
        CapabilityError,
        'Leave pcre2 out, or use an rg that has it: pip install "ripwrap[bin]".',
    ),
    (
        r"^error: (look-around|backreferences)",
        PatternError,
        "Pass pcre2=True, on an rg that has PCRE2.",
    ),
    (
        r"""^the literal '?"?\\n"?'? is not allowed""",
        PatternError,
        "Pass multiline=True to let a match span lines.",
    ),
    (
        r"^the literal .* is not allowed",
        PatternError,
        "With crlf=True a pattern cannot name the line terminator; leave one of them out.",
    ),
    (
        r"^pattern contains .* impossible to match",
        PatternError,
        "Pass text=True to search for NUL bytes in binary files.",
    ),
    (
        r"^\s*regex parse error|^PCRE2: error compiling|^[Cc]ompiled regex exceeds",
        PatternError,
        "Mend the pattern, or pass fixed_strings=True to search for it literally.",
    ),
)


def failure(argv: tuple[str, ...], returncode: int, stderr: bytes) -> SearchError:
    """The error for an rg that ended without an answer."""
    text = _PREFIX.sub(b"", stderr).decode("utf-8", "replace").strip()
    kind, hint = _classify(text)
    if returncode < 0:
        kind, text = SearchError, f"rg was killed by signal {-returncode}\n{text}".rstrip()
    message = text or f"rg ended with exit code {returncode} and said nothing"
    return kind(
        f"{message}\n{hint}" if hint else message,
        argv=argv,
        returncode=returncode,
        stderr=stderr.decode("utf-8", "replace"),
    )


def _classify(text: str) -> tuple[type[SearchError], str]:
    for pattern, kind, hint in _FAILURES:
        if re.search(pattern, text, re.MULTILINE):
            return kind, hint
    return SearchError, ""


def path_errors(stderr: bytes) -> tuple[PathError, ...]:
    """One error for each line of stderr; a line that names no path is kept as it is, with kind `other`."""
    errors = tuple(_path_error(line) for line in _lines(stderr))
    if len(stderr) <= MAX_STDERR:
        return errors
    more = f"more errors are left out: rg wrote over {MAX_STDERR} bytes of them"
    return (*errors, PathError(path=None, kind="other", message=more))


def only_path_errors(stderr: bytes) -> bool:
    """Whether every line is about a path that could not be read, so that the rest of the answer stands."""
    errors = [_path_error(line) for line in _lines(stderr)]
    return bool(errors) and all(error.path is not None for error in errors)


def _lines(stderr: bytes) -> Iterator[bytes]:
    """rg's messages: lines, joined where a path has a newline in it (rg 14 and later begin each with `rg: `)."""
    if len(stderr) > MAX_STDERR:
        stderr = stderr[: stderr.rfind(b"\n") + 1]
    pieces = _PREFIX.split(stderr) if _PREFIX.match(stderr) else stderr.split(b"\n")
    yield from (stripped for piece in pieces if (stripped := piece.strip(b"\n")))


def _path_error(line: bytes) -> PathError:
    shown = line.decode("utf-8", "replace")
    if loop := _LOOP.match(line):
        return PathError(path=_path(loop["path"]), kind="loop", message=shown)
    if found := _OS_ERROR.match(line):
        kind = _KINDS.get(int(found["number"]), "other")
        return PathError(path=_path(found["path"]), kind=kind, message=found["message"].decode("utf-8", "replace"))
    # An ignore file's bad line, and whatever else names its path first.
    if other := _AT_LINE.match(line) or _NAMED.match(line):
        return PathError(path=_path(other["path"]), kind="other", message=other["message"].decode("utf-8", "replace"))
    return PathError(path=None, kind="other", message=shown)


def _path(raw: bytes) -> str:
    return os.fsdecode(raw).removeprefix(f".{os.sep}")

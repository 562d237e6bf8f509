"""rg's stderr to errors: pure; what rg 13, 14 and 15 write is listed in rg-facts 29.

Two kinds of line matter: one that says why there is no answer at all (a pattern, glob or type that does not parse), and
one for each path that could not be read while the search went on.
"""

import difflib
import errno
import os
import re
from collections.abc import Collection, Iterator, Sequence

from ripwrap._rg.caret import position
from ripwrap.errors import CapabilityError, GlobError, PatternError, SearchError, UnknownTypeError
from ripwrap.models import PathError, PathErrorKind

MAX_STDERR = 1024 * 1024
"""How much of stderr is read, in bytes; rg may write a line for each file."""

_PREFIX = re.compile(rb"^rg: ", re.MULTILINE)
_OS_ERROR = re.compile(
    rb"(?P<path>.+?): (?:IO error for operation on (?P=path): )?(?P<message>[^:]+ \(os error (?P<number>\d{1,10})\))\Z",
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

_NO_THREAD = r"^(thread '.*' panicked at ')?failed to spawn (scoped )?thread: Os \{"

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
        "file_types() lists the types that this rg knows; glob= takes any pattern.",
    ),
    (
        # Alone, or in the report of both engines (`engine="auto"`), where only these two need PCRE2.
        r"\APCRE2 is not available|^error: (look-around|backreferences)[\s\S]+^PCRE2 is not available",
        CapabilityError,
        'Leave PCRE2 out, or use an rg that has it: pip install "ripwrap[bin]".',
    ),
    (
        r"\Aregex could not be compiled with either",
        PatternError,
        "Mend the pattern, or pass fixed_strings=True to search for it literally.",
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
        r"^[Cc]ompiled regex exceeds",
        PatternError,
        "Pass a smaller pattern, or a larger regex_size_limit= (in bytes, or as 100M).",
    ),
    (
        r"^\s*regex parse error|^PCRE2: error compiling",
        PatternError,
        "Mend the pattern, or pass fixed_strings=True to search for it literally.",
    ),
    (
        r"^(unrecognized flag|error: Found argument)",
        CapabilityError,
        'Leave that option out, or use another rg: pip install "ripwrap[bin]" brings one that has them all.',
    ),
    (
        r"^(error parsing flag \S+: )?grep config error: unknown encoding: ",
        SearchError,
        "encoding= takes the labels of https://encoding.spec.whatwg.org/#concept-encoding-get, 'auto', or 'none'.",
    ),
    (
        r"^invalid definition \(format is type:glob",
        SearchError,
        "type_add= takes NAME:GLOB or NAME:include:NAME,NAME, a name being letters, digits and underscores.",
    ),
    (
        _NO_THREAD,
        SearchError,
        "The system allows no more threads (a container's limit on processes?); pass threads=1.",
    ),
)

_UNKNOWN_TYPE = re.compile(r"^unrecognized file type: (?P<name>.*)", re.MULTILINE)
_PANIC = re.compile(_NO_THREAD.encode(), re.MULTILINE)


def failure(
    argv: tuple[str, ...],
    returncode: int,
    stderr: bytes,
    patterns: Sequence[str] = (),
    types: Collection[str] = (),
    *,
    lingered: bool = False,
) -> SearchError:
    """The error for an rg that ended without an answer.

    Args:
        argv: Its whole command line.
        returncode: Its exit code.
        stderr: What it wrote there.
        patterns: What it was to search for.
        types: The file types that it knows, if anybody has asked.
        lingered: Whether it was killed because it did not exit by itself.
    """
    # With `--sortr` rg walks first: what it could not read then stands before the reason.
    reason = b"\n".join(_not_of_paths(stderr)) or _PREFIX.sub(b"", stderr)
    text = reason.decode("utf-8", "replace").strip()
    kind, hint = _classify(text)
    if lingered:
        said = "rg closed its stdout but did not exit, so that nobody knows whether this is all"
        kind, text = SearchError, f"{said}\n{text}".rstrip()
    elif returncode < 0:
        kind, text = SearchError, f"rg was killed by signal {-returncode}\n{text}".rstrip()
    suggestions = _suggestions(text, types) if kind is UnknownTypeError else ()
    if suggestions:
        hint = f"Did you mean {' or '.join(suggestions)}? {hint}"
    error = kind(
        text or f"rg ended with exit code {returncode} and said nothing",
        argv=argv,
        returncode=returncode,
        stderr=stderr.decode("utf-8", "replace"),
        hint=hint,
    )
    if isinstance(error, UnknownTypeError):
        error.suggestions = suggestions
    elif isinstance(error, PatternError):
        error.pattern, error.offset = position(text, patterns, argv, grouped=bool(_PREFIX.match(stderr)))
    return error


def _classify(text: str) -> tuple[type[SearchError], str]:
    for pattern, kind, hint in _FAILURES:
        if re.search(pattern, text, re.MULTILINE):
            return kind, hint
    return SearchError, ""


def _suggestions(text: str, types: Collection[str]) -> tuple[str, ...]:
    found = _UNKNOWN_TYPE.search(text)
    return tuple(difflib.get_close_matches(found["name"].lower(), types)) if found else ()


def out_of_threads(stderr: bytes) -> bool:
    """Whether the system let rg start no more threads; rg then panics, and may hang (rg-facts 8)."""
    return any(map(_PANIC.search, _not_of_paths(stderr)))


def path_errors(stderr: bytes) -> tuple[PathError, ...]:
    """One error for each line of stderr; a line that names no path is kept as it is, with kind `other`."""
    errors = tuple(_path_error(line) for line in _lines(stderr))
    if len(stderr) <= MAX_STDERR:
        return errors
    more = f"more errors are left out: rg wrote over {MAX_STDERR} bytes of them"
    return (*errors, PathError(path=None, kind="other", message=more))


def only_path_errors(stderr: bytes) -> bool:
    """Whether every line is about a path that could not be read, so that the rest of the answer stands.

    A line that is cut is none: where the disk is full rg cannot even complain, and ends in the middle of its work.
    """
    if len(stderr) <= MAX_STDERR and not stderr.endswith(b"\n"):
        return False
    errors = [_path_error(line) for line in _lines(stderr)]
    return bool(errors) and all(error.path is not None for error in errors)


def _not_of_paths(stderr: bytes) -> Iterator[bytes]:
    """The messages but for those about paths: those may say anything, as paths may."""
    return (line for line in _lines(stderr) if not (_OS_ERROR.match(line) or _LOOP.match(line)))


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

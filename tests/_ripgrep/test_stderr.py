"""Errors from rg's stderr, as rg 13, 14 and 15 write it."""

import errno
import os

import pytest

from ripwrap import CapabilityError, GlobError, PathError, PatternError, SearchError, UnknownTypeError
from ripwrap._ripgrep.exit_status import MAX_STDERR, Exit, kind_of_error, only_path_errors, path_errors
from ripwrap._ripgrep.query import Query


def failure(
    argv: tuple[str, ...], returncode: int, stderr: bytes, patterns: tuple[str, ...] = (), types: tuple[str, ...] = ()
) -> SearchError:
    """Return the error for an rg that ended so."""
    return Exit(Query("json", os.getcwd(), (), patterns), argv, returncode, stderr).failure(types)


@pytest.mark.parametrize(
    ("stderr", "kind", "says"),
    [
        (b"rg: regex parse error:\n    (?:foo()\n    ^\nerror: unclosed group", PatternError, "fixed_strings=True"),
        (b"regex parse error:\n    foo(\n       ^\nerror: unclosed group", PatternError, "fixed_strings=True"),
        (b"rg: regex parse error:\n    x\nerror: look-around, including ...", PatternError, "pcre2=True"),
        (b"rg: regex parse error:\n    x\nerror: backreferences are not supported", PatternError, "pcre2=True"),
        (b'rg: the literal "\\n" is not allowed in a regex', PatternError, "multiline=True"),
        (b"the literal '\"\\n\"' is not allowed in a regex", PatternError, "multiline=True"),
        (b"rg: PCRE2: error compiling pattern at offset 1: missing closing", PatternError, "fixed_strings=True"),
        (b"rg: compiled regex exceeds size limit of 10", PatternError, "regex_size_limit="),
        (b"Compiled regex exceeds size limit of 10 bytes.", PatternError, "regex_size_limit="),
        (b"rg: error parsing glob 'a[': unclosed", GlobError, "backslash"),
        (b"error parsing glob 'a[': unclosed", GlobError, "backslash"),
        (b"rg: unrecognized file type: nope", UnknownTypeError, "file_types()"),
        (b"rg: PCRE2 is not available in this build of ripgrep", CapabilityError, "ripwrap[bin]"),
        (b"rg: unrecognized flag --x", CapabilityError, "an rg that has it"),
        (b"error: Found argument '--x' which wasn't expected", CapabilityError, "an rg that has it"),
        (b"rg: error parsing flag -E: grep config error: unknown encoding: x", SearchError, "encoding.spec"),
        (b"grep config error: unknown encoding: x", SearchError, "encoding.spec"),
        (b"rg: invalid definition (format is type:glob, e.g., html:*.html)", SearchError, "NAME:GLOB"),
        (b"failed to spawn thread: Os { code: 11 }", SearchError, "threads=1"),
        (
            b"thread 'main' panicked at 'failed to spawn scoped thread: Os { code: 11 }', /x.rs:2",
            SearchError,
            "threads=1",
        ),
        (b"rg: something that nobody has seen", SearchError, "nobody has seen"),
        (b"", SearchError, "exit code 2"),
        # With --sortr rg lists files before it parses the pattern.
        (
            b"rg: ./x: No such file or directory (os error 2)\nrg: PCRE2 is not available",
            CapabilityError,
            "ripwrap[bin]",
        ),
        (b"./x: No such file or directory (os error 2)\nregex parse error:\n    x(\n     ^", PatternError, "literally"),
        # Text that rg quotes does not determine the exception class.
        (b"rg: regex parse error:\n    (?:error parsing glob()\n    ^\nerror: unclosed", PatternError, "unclosed"),
        (b"rg: error parsing glob 'regex parse error[': unclosed", GlobError, "unclosed"),
    ],
)
@pytest.mark.fact(29)
def test_failure_has_a_class_rgs_message_and_a_hint(stderr: bytes, kind: type[SearchError], says: str) -> None:
    error = failure(("rg", "x"), 2, stderr)
    assert type(error) is kind
    assert says in str(error)
    assert stderr.decode().rpartition("(os error 2)\n")[2].removeprefix("rg: ") in str(error)
    assert (error.argv, error.returncode, error.stderr) == (("rg", "x"), 2, stderr.decode())


BOTH = b"rg: regex could not be compiled with either the default regex engine or with PCRE2.\n\n"
NO_PCRE2 = b"\n~~~\n\nPCRE2 regex engine error:\nPCRE2 is not available in this build of ripgrep"


@pytest.mark.parametrize(
    ("report", "kind"),
    [
        (
            BOTH + b"regex parse error:\n    (?:x(?=)\n       ^^^\nerror: look-around, including" + NO_PCRE2,
            CapabilityError,
        ),
        (BOTH + b"regex parse error:\n    (?:foo()\n    ^\nerror: unclosed group" + NO_PCRE2, PatternError),
        (BOTH + b"regex parse error:\n    (?:x(?=)\n       ^^^\nerror: look-around\n~~~\nPCRE2: error", PatternError),
    ],
)
@pytest.mark.fact(29)
def test_missing_pcre2_is_reported_only_if_it_would_have_helped(report: bytes, kind: type) -> None:
    assert type(failure(("rg", "x"), 2, report)) is kind


def test_unknown_type_failure_suggests_similar_names() -> None:
    error = failure(("rg",), 2, b"rg: unrecognized file type: pyton", (), ("python", "py", "puppet", "c"))
    assert isinstance(error, UnknownTypeError)
    assert error.suggestions == ("python",)
    assert error.hint.startswith("Did you mean python? ")
    error = failure(("rg",), 2, b"rg: unrecognized file type: qqqq", (), ("python", "py"))
    assert isinstance(error, UnknownTypeError) and error.suggestions == ()
    assert "Did you mean" not in str(error)


def test_path_error_converts_to_a_standard_library_exception() -> None:
    denied = PathError(path="f", kind="denied", message="Permission denied (os error 13)").as_exception()
    assert isinstance(denied, PermissionError) and denied.filename == "f"
    missing = PathError(path="f", kind="broken_link", message="No such file").as_exception()
    assert isinstance(missing, FileNotFoundError)
    assert PathError(path="f", kind="loop", message="loop").as_exception().errno == errno.ELOOP
    other = PathError(path="f", kind="other", message="line 1: what").as_exception()
    assert (type(other), str(other)) == (OSError, "f: line 1: what")


def test_huge_os_error_number_is_not_parsed() -> None:
    """Use 5000 digits, for which `int()` raises a `ValueError`."""
    line = f"rg: f: what (os error {'9' * 5000})"
    (error,) = path_errors(line.encode())
    assert (error.path, error.kind, error.message) == (None, "other", line.removeprefix("rg: "))


def test_huge_pcre2_offset_is_ignored() -> None:
    error = failure(("rg",), 2, b"rg: PCRE2: error compiling pattern at offset %b: x" % (b"9" * 5000), ("x(",))
    assert isinstance(error, PatternError)
    assert error.offset is None


@pytest.mark.parametrize(
    "said",
    [
        "rg: error parsing flag -C: value is not a valid number: number too large to fit in target type",
        "rg: error parsing flag --max-filesize: invalid size: size too big in '99999999999999999G'",
        "error: Invalid value for '--max-count <NUM>': number too large to fit in target type",
        "invalid integer found in size '99999999999999999999': number too large to fit in target type",
    ],
)
def test_number_that_is_too_large_is_answered_with_the_limit(said: str) -> None:
    assert str(failure(("rg",), 2, said.encode())).endswith("\nPass a smaller number: rg counts up to 2**64 - 1.")


def test_failure_by_a_signal_names_the_signal() -> None:
    assert "killed by signal 9" in str(failure(("rg",), -9, b"rg: error parsing glob"))
    assert str(failure(("rg",), -9, b"")).startswith(
        "rg was killed by signal 9; the system does that if memory is short, and macOS if the program is in "
        "quarantine\n"
        "Try again with threads=1, or pass the path of another rg as rg="
    )


@pytest.mark.posix
@pytest.mark.fact(27)
def test_path_errors_are_parsed_from_stderr() -> None:
    stderr = (
        b"rg: ./f: Permission denied (os error 13)\n"
        b"rg: missing: IO error for operation on missing: No such file or directory (os error 2)\n"
        b"rg: File system loop found: ./d/loop points to an ancestor ./d\n"
        b"rg: ./odd: name: Input/output error (os error 5)\n"
        b"rg: ./\xff: No such file or directory (os error 2)\n"
        b"rg: ./two\nlines: Permission denied (os error 13)\n"
        b"rg: ./.gitignore: line 1: error parsing glob 'a[': unclosed\n"
        b"rg: ./f: PCRE2: error matching: JIT stack limit reached\n"
        b"rg: what is this\n"
    )
    assert path_errors(stderr) == (
        PathError(path="f", kind="denied", message="Permission denied (os error 13)"),
        PathError(path="missing", kind="missing", message="No such file or directory (os error 2)"),
        PathError(path="d/loop", kind="loop", message="File system loop found: ./d/loop points to an ancestor ./d"),
        PathError(path="odd: name", kind="other", message="Input/output error (os error 5)"),
        PathError(path=os.fsdecode(b"\xff"), kind="missing", message="No such file or directory (os error 2)"),
        PathError(path="two\nlines", kind="denied", message="Permission denied (os error 13)"),
        PathError(path=".gitignore", kind="other", message="line 1: error parsing glob 'a[': unclosed"),
        PathError(path="f", kind="other", message="PCRE2: error matching: JIT stack limit reached"),
        PathError(path=None, kind="other", message="what is this"),
    )
    assert not only_path_errors(stderr)
    assert only_path_errors(stderr.replace(b"rg: what is this\n", b""))
    assert not only_path_errors(b"")


@pytest.mark.posix
def test_path_errors_of_rg_13_are_parsed_without_a_prefix() -> None:
    assert path_errors(b"./f: Permission denied (os error 13)\n./g: Permission denied (os error 13)\n") == tuple(
        PathError(path=path, kind="denied", message="Permission denied (os error 13)") for path in "fg"
    )


@pytest.mark.slow
@pytest.mark.fact(26)
def test_errors_beyond_the_stderr_limit_are_reported_as_left_out() -> None:
    line = b"rg: ./f: Permission denied (os error 13)\n"
    stderr = (line * (MAX_STDERR // len(line) + 1))[: MAX_STDERR + 1]
    errors = path_errors(stderr)
    assert {error.path for error in errors[:-1]} == {"f"}
    assert "are not shown" in errors[-1].message
    assert only_path_errors(stderr)


@pytest.mark.parametrize(
    ("number", "kind"), [(2, "missing"), (3, "missing"), (5, "denied"), (1921, "loop"), (1, "other")]
)
def test_errors_of_windows_have_their_kind(number: int, kind: str) -> None:
    assert kind_of_error(number, windows=True) == kind

"""Fuzz the parser of rg's stderr: any bytes become errors, and the parser never raises.

An input is a byte for rg's exit and options, the bytes that rg wrote, and the patterns, each after a NUL.
"""

from collections.abc import Iterator

import atheris

from harness import fuzz

with atheris.instrument_imports(include=["ripwrap"]):
    from ripwrap import PatternError, SearchError
    from ripwrap._ripgrep.exit_status import Exit, only_path_errors, out_of_threads, path_errors
    from ripwrap._ripgrep.query import Query

_TYPES = ("py", "python", "rust", "c")


def one(data: bytes) -> None:
    """Run one input."""
    how, (stderr, *quoted) = data[:1], data[1:].split(b"\0")
    out_of_threads(stderr)
    only_path_errors(stderr)
    for error in path_errors(stderr):
        str(error), error.as_exception()
        assert type(error).model_validate_json(error.model_dump_json()) == error
    patterns = tuple(pattern.decode("utf-8", "ignore") for pattern in quoted)
    argv = ("rg", "--word-regexp") if how == b"w" else ("rg",)
    failed = Exit(Query("json", "/", (), patterns), argv, -9 if how == b"k" else 2, stderr).failure(_TYPES)
    assert isinstance(failed, SearchError)
    str(failed)
    if isinstance(failed, PatternError) and failed.offset is not None:
        assert failed.pattern in patterns
        assert 0 <= failed.offset <= len(failed.pattern)


def _seeds() -> Iterator[bytes]:
    said = (
        b"rg: regex parse error:\n    (?:foo()\n    ^\nerror: unclosed group\0foo(",
        b"regex parse error:\n    a|foo(\n          ^\nerror: unclosed group\0a\0foo(",
        b"rg: PCRE2: error compiling pattern at offset 12: missing closing parenthesis\0a\0b(c",
        b"rg: error parsing glob 'a[': unclosed character class",
        b"rg: unrecognized file type: pyton",
        b"rg: ./f: Permission denied (os error 13)\nrg: ./two\nlines: Permission denied (os error 13)\n",
        b"./a: IO error for operation on ./a: No such file or directory (os error 2)\n./b: x\n",
        b"rg: File system loop found: ./d/loop points to an ancestor ./d\nrg: ./.gitignore: line 1: error\n",
        b"thread 'main' panicked at 'failed to spawn thread: Os { code: 11 }', /x.rs:2",
        b"rg: PCRE2 is not available in this build of ripgrep",
    )
    for text in said:
        yield from (how + text for how in (b"e", b"w", b"k"))


_WORDS = (
    *(b"rg: ", b"\nrg: ", b" (os error 2)", b"IO error for operation on ", b": line 1: "),
    *(b"\nregex parse error:\n    ", b"\n    ^", b"unclosed group", b"PCRE2: error compiling pattern at offset "),
    *(
        b"error parsing glob",
        b"unrecognized file type: ",
        b"error: look-around",
        b"\nPCRE2 is not available",
        b"(?:",
        b")|(",
    ),
    *(b"failed to spawn thread: Os {", b"\xd9\xa3", b"\xf0\x9f\x98\x80", b"\xff", b"\0"),
)

if __name__ == "__main__":
    fuzz(one, _seeds(), _WORDS)

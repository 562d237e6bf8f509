"""Lines of rg's log, copied from rg 13.0, 14.1 and 15.2, and what is read in them."""

import pytest

from ripwrap import SearchError
from ripwrap._ripgrep.command import files_query
from ripwrap._ripgrep.debug_log import MAX_LINE, LeftOut, LogCollector
from ripwrap._ripgrep.exit_status import Exit

STARTS = {
    "13.0": (
        b"DEBUG|ignore::walk|/usr/share/cargo/registry/ignore-0.4.18/src/walk.rs:1741: ignoring ",
        b"DEBUG|rg::subject|crates/core/subject.rs:74: ignoring ",
        b"DEBUG|globset|/usr/share/cargo/registry/globset-0.4.9/src/lib.rs:431: built glob set; 0 literals\n",
        b"subject",
    ),
    "14.1": (
        b"rg: DEBUG|ignore::walk|crates/ignore/src/walk.rs:1799: ignoring ",
        b"rg: DEBUG|rg::haystack|crates/core/haystack.rs:70: ignoring ",
        b"rg: DEBUG|rg::flags::hiargs|crates/core/flags/hiargs.rs:174: using 2 thread(s)\n",
        b"haystack",
    ),
    "15.2": (
        b"rg: DEBUG|ignore::walk|crates/ignore/src/walk.rs:2011: ignoring ",
        b"rg: DEBUG|rg::haystack|crates/core/haystack.rs:70: ignoring ",
        b"rg: DEBUG|ignore::gitignore|crates/ignore/src/gitignore.rs:409: opened gitignore file: ./.ignore\n",
        b"haystack",
    ),
}
"""Of each version: the start of a line of the walk, of a line of the filter, another line, and the filter's name."""

RULE = b'Ignore(IgnoreMatch(Gitignore(Glob { from: Some("%b"), original: "%b", actual: "x", is_whitelist: false })))'
OVERRIDE = b'Ignore(IgnoreMatch(Override(Glob(Matched(Glob { from: None, original: "%b", actual: "**/b*" })))))'
TYPE = b'Ignore(IgnoreMatch(Types(Glob(Matched { def: FileTypeDef { name: "py", globs: ["*.py"] } }))))'

LINES: list[tuple[bytes, bytes, str, LeftOut]] = [
    (b"./a.log", RULE % (b"./.ignore", b"*.log"), "a.log", LeftOut("ignored", "*.log", "./.ignore")),
    (b"/abs/a", RULE % (b"/abs/.gitignore", b"a"), "/abs/a", LeftOut("ignored", "a", "/abs/.gitignore")),
    (b'./"q"', RULE % (b"./.ignore", rb"\"q\\\""), '"q"', LeftOut("ignored", '"q\\"', "./.ignore")),
    (b"./a: b", RULE % (b"./x: y/.ignore", b"a: *"), "a: b", LeftOut("ignored", "a: *", "./x: y/.ignore")),
    (b"./n\nl.log", RULE % (b"./.ignore", b"*.log"), "n\nl.log", LeftOut("ignored", "*.log", "./.ignore")),
    (
        b"./bad\xef\xbf\xbd",
        RULE % (b"./.ignore", rb"b\u{e9}\t"),
        "bad\ufffd",
        LeftOut("ignored", "b\xe9\t", "./.ignore"),
    ),
    (b"./.hid", b"Ignore(IgnoreMatch(Hidden))", ".hid", LeftOut("hidden")),
    (b"./big", b"3000 bytes", "big", LeftOut("too_large", "3000")),
    (b"./b.py", OVERRIDE % b"!b*", "b.py", LeftOut("glob", "!b*")),
    (b"./c", b"Ignore(IgnoreMatch(Override(Glob(UnmatchedIgnore))))", "c", LeftOut("glob")),
    (b"./d", b"Ignore(IgnoreMatch(Types(Glob(UnmatchedIgnore))))", "d", LeftOut("type")),
    (b"./e.py", TYPE, "e.py", LeftOut("type", "py")),
    (b"./new", b"Ignore(IgnoreMatch(Whatever(1)))", "new", LeftOut("unknown")),
    (b"./odd", b"some other words", "odd", LeftOut("unknown")),
]


def collected(log: bytes, size: int, returncode: int = 0, wanted: set[str] | None = None) -> LogCollector:
    collector = LogCollector(wanted)
    for start in range(0, len(log), size):
        collector.feed(log[start : start + size])
    collector.end_run(Exit(files_query(".", (), {}), ("rg",), returncode, b""))
    return collector


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize("version", STARTS)
def test_lines_of_each_version_have_their_reason(version: str, size: int) -> None:
    walk, of_filter, other, name = STARTS[version]
    passed = b"./lnk: failed to pass %b filter: file type: Some(FileType { is_symlink: true, .. })\n" % name
    lines = [b"%b%b: %b\n" % (walk, path, reason) for path, reason, _, _ in LINES]
    log = other + other.join([*lines, of_filter + passed]) + other
    assert collected(log, size).found == {key: said for _, _, key, said in LINES} | {"lnk": LeftOut("filter")}
    assert collected(log, size, wanted={"a.log"}).found.keys() == {"a.log"}


def test_line_of_any_length_is_kept_in_bounded_memory() -> None:
    walk = STARTS["15.2"][0]
    log = walk + b"./" + b"x" * 10 * MAX_LINE + b"\n" + walk + b"./.hid: Ignore(IgnoreMatch(Hidden))\n"
    found = collected(log, 1 << 16).found
    assert found[".hid"] == LeftOut("hidden")
    assert max(map(len, found)) <= MAX_LINE


@pytest.mark.parametrize(
    ("line", "returncode", "fails"),
    [
        (b"rg: ./sub: Permission denied (os error 13)\n", 2, False),
        (b"./sub: Permission denied (os error 13)\n", 2, False),
        (b"rg: error parsing glob '[': unclosed character class\n", 2, True),
        (b"", 101, True),
    ],
)
def test_errors_among_the_lines_decide_whether_rg_failed(line: bytes, returncode: int, *, fails: bool) -> None:
    walk, _, other, _ = STARTS["15.2"]
    log = other + line + walk + b"./.hid: Ignore(IgnoreMatch(Hidden))\n"
    if fails:
        with pytest.raises(SearchError):
            collected(log, 5, returncode)
    else:
        assert collected(log, 5, returncode).found == {".hid": LeftOut("hidden")}

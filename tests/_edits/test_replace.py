"""Finding what a replacement changes: bytes, encodings, groups, and files that are left out."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

import ripwrap
from ripwrap import CapabilityError, ConflictError, PatternError, sync
from ripwrap._edits.planning import FileChange, Found, Line, plan_files
from ripwrap._system.concurrency import CANCELLED, Cancellation
from ripwrap.binary import RgBinary
from support.effort import times

Plant = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("leaks_nothing")


def replaced(folder: Path, pattern: "str | list[str]", replacement: str, **options: Any) -> dict[str, bytes]:
    """Apply a replacement, and return the contents of all files."""
    sync.replace(pattern, replacement, cwd=folder, **options).apply(journals=folder.parent / "journals")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.rg_ends
def test_text_without_groups_is_replaced_with_every_rg(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"crlf": b"foo\r\nfoo", "bom": b"\xef\xbb\xbffoo\n", "raw": b"\xe9 foo\n", "b/c": b"no\n"})
    assert replaced(folder, "fo+", "$$x", rg=rg) == {
        "crlf": b"$x\r\n$x",
        "bom": b"\xef\xbb\xbf$x\n",
        "raw": b"\xe9 $x\n",
        "b/c": b"no\n",
    }


@pytest.mark.rg_ends
def test_groups_need_rg_15(rg: RgBinary, plant: Plant) -> None:
    folder = plant({"f": "key=value\n"})
    if rg.version < (15,):
        with pytest.raises(CapabilityError, match="replace needs rg 15 or later"):
            replaced(folder, r"(\w+)=(?P<v>\w+)", "$v=$1", rg=rg)
    else:
        assert replaced(folder, r"(\w+)=(?P<v>\w+)", "$v=${1}s", rg=rg) == {"f": b"value=keys\n"}


@pytest.mark.parametrize(
    ("pattern", "replacement", "options", "before", "after"),
    [
        ("^", "# ", {}, b"a\nb", b"# a\n# b"),
        ("x*", "-", {}, b"ab\n", b"-a-b-\n"),
        (r"a\nb", "[$0]", {"multiline": True}, b"a\nb\r\n", b"[a\nb]\r\n"),
        (["(a)", "(b)"], "<$1|$2>", {}, b"ab\n", b"<a|><|b>\n"),
        ("a.c", "x", {"fixed_strings": True}, b"abc a.c\n", b"abc x\n"),
        ("foo", "x", {"word_regexp": True}, b"foo food\n", b"x food\n"),
        ("foo", "x", {"line_regexp": True, "crlf": True}, b"foo\r\nfoo \r\n", b"x\r\nfoo \r\n"),
        ("(?<=a)b", "x", {"pcre2": True}, b"ab b\n", b"ax b\n"),
        ("a", "b", {"max_count": 1}, b"a a\na\n", b"b b\na\n"),
        ("FOO", "x", {"ignore_case": True}, b"foo\n", b"x\n"),
        ("a", r"\n", {}, b"a\n", b"\\n\n"),
        ("a", r"1\n2", {"escapes": True}, b"a\n", b"1\n2\n"),
        (r"(?-u:\xff)", "x", {}, b"a\xff\xfe\xff\n", b"ax\xfex\n"),
        ("b", "x", {"text": True}, b"a\0b\n", b"a\0x\n"),
        ("b", "x", {"null_data": True}, b"a\0b\0", b"a\0x\0"),
        ("é", "e", {"encoding": "latin1"}, b"caf\xe9 \xe8\n", b"cafe \xe8\n"),
        ("e", "é", {"encoding": "latin1"}, b"cafe \xe8\n", b"caf\xe9 \xe8\n"),
        ("a", "é", {"encoding": "utf-16le"}, "aß\na".encode("utf-16-le"), "éß\né".encode("utf-16-le")),
        ("漢", "字", {"encoding": "shift_jis"}, "漢字\n".encode("cp932"), "字字\n".encode("cp932")),
        ("a", "b", {"encoding": "none"}, b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n"),
    ],
)
def test_bytes_after_a_replacement(
    plant: Plant, pattern: Any, replacement: str, options: dict[str, Any], before: bytes, after: bytes
) -> None:
    assert replaced(plant({"f": before}), pattern, replacement, **options) == {"f": after}


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_with_a_mark_stays_utf16(plant: Plant, codec: str) -> None:
    text = "\ufefffoo é 😀 foo\r\nlast foo"
    after = replaced(plant({"f": text.encode(codec)}), "fo(o)", "ß$1")["f"]
    assert after.decode(codec) == text.replace("foo", "ßo")


@pytest.mark.parametrize(
    ("pattern", "options", "before", "after"),
    [
        ("x*", {}, "añb\n", "-a-ñ-b-\n"),
        ("x*", {"pcre2": True}, "añb\n", "-a-ñ-b-\n"),
        ("x*", {"multiline": True}, "ñ\n😀\n", "-ñ-\n-😀-\n"),
        ("(?-u:x*)", {}, "漢\n", "-漢-\n"),
        (r"(?-u:\B)", {}, "漢a\n", "-漢a\n"),
        ("x*", {"no_unicode": True}, "é\n", "-é-\n"),
        ("()", {}, "é😀\n", "-é-😀-\n"),
    ],
)
def test_empty_match_within_a_character_is_none(
    plant: Plant, pattern: str, options: dict[str, Any], before: str, after: str
) -> None:
    """rg's regexes count bytes, and the bytes of a character stay together."""
    folder = plant({"f": before, "bom": f"\ufeff{before}"})
    assert replaced(folder, pattern, "-", **options) == {"f": after.encode(), "bom": f"\ufeff{after}".encode()}
    folder = plant({"f": f"\ufeff{before}".encode("utf-16-le"), "bom": b""})
    assert replaced(folder, pattern, "-", **options)["f"].decode("utf-16-le") == f"\ufeff{after}"


@pytest.mark.parametrize(
    ("pattern", "replacement", "before"),
    [
        (r"(?-u:\xc3)", "x", "añb"),
        (r"(?-u:\xb1)", "", "añb"),
        (r"(?-u:(\xc3)\xb1)", "$1", "añb"),
        (r"(?-u:a.)", "-", "xañb"),
        (r"(?-u:[\x80-\xff])", "?$0", "漢"),
    ],
)
def test_valid_text_does_not_become_invalid(plant: Plant, pattern: str, replacement: str, before: str) -> None:
    """A file is left out by name; a file with other invalid bytes is changed, as rg changes it."""
    for name, text in (("utf-8", before.encode()), ("utf-8 with a mark", f"\ufeff{before}".encode())):
        plan = sync.replace(pattern, replacement, cwd=plant({name: text}), paths=name)
        assert not plan
        assert [error.path for error in plan.errors] == [name]
        assert "would not be valid UTF-8 any more" in plan.errors[0].message
    assert len(sync.replace(pattern, replacement, cwd=plant({"utf-8": before.encode() + b"\xff\n"}), glob="utf-8")) == 1
    plan = sync.replace(pattern, replacement, cwd=plant({"utf-16": f"\ufeff{before}".encode("utf-16-be")}), glob="*16")
    assert [error.path for error in plan.errors] == ["utf-16"]


def test_halves_of_a_character_are_left_out_because_one_of_them_can_be_selected(plant: Plant) -> None:
    """The text would stay valid only with both edits."""
    assert not sync.replace(r"(?-u:\xc3)|(?-u:\xb1)", "x", cwd=plant({"f": "añb"}))


@pytest.mark.parametrize(
    ("pattern", "options", "text"),
    [
        (r"\b", {}, "a word here"),
        (",|$", {}, "a,b"),
        ("(?:^|$)", {}, "a\nb"),
        (r"\b", {"pcre2": True}, "a word here"),
        (r"e|(?<=r)(?!.)", {"pcre2": True}, "e for"),
        ("x*", {}, "é"),
        ("x*", {"multiline": True}, "a\nb"),
        (r"x*", {"multiline": True, "pcre2": True}, "a\nb"),
        (r"a|\z", {"multiline": True}, "ab"),
        (r"a|\z", {}, "ab"),
        (r"a|\n*", {"multiline": True}, "b\nab"),
        (r"a|(?!\n)$", {"multiline": True, "pcre2": True}, "ab"),
        ("(?x) a | $ # c\n", {"multiline": True}, "ab"),
        ("", {"multiline": True, "fixed_strings": True}, "ab"),
        (r"a|(?![^a])", {"multiline": True, "pcre2": True}, "ab"),
        (r"\b", {"crlf": True}, "a\r\nb"),
        (r"\b", {"null_data": True}, "a\0b"),
        (r"\b", {"encoding": "utf-16le"}, "a b"),
        ("A|$", {"ignore_case": True}, "ab"),
        ("", {"fixed_strings": True}, "ab"),
        (["a", "$"], {}, "ab"),
        ("b?|$", {"max_count": 5}, "ba"),
    ],
)
@pytest.mark.parametrize("replacement", ["'", "<$0>"])
def test_file_with_an_empty_match_at_its_end_is_left_out_by_name(
    plant: Plant, pattern: Any, options: dict[str, Any], text: str, replacement: str
) -> None:
    """Without a newline, rg does not print the last match, so the others are not replaced, either."""
    codec = "utf-16-le" if "encoding" in options else "utf-8"
    end = "\0" if "null_data" in options else "\n"
    folder = plant({"f": text.encode(codec), "g": f"{text}{end}".encode(codec)})
    plan = sync.replace(pattern, replacement, cwd=folder, **options)
    line = 2 if {*"\n\0"} & {*text} else 1
    assert [str(error) for error in plan.errors] == [
        f"f: left out: rg does not report the position of the match in line {line}; change the file by hand"
    ]
    assert [file.path for file in plan] == ["g"]


@pytest.mark.parametrize(
    ("pattern", "options", "before", "after"),
    [
        ("b*", {}, "ab", "-a-"),
        ("a|b", {}, "ab", "--"),
        ("a", {}, "ab", "-b"),
        ("a|z*$", {}, "a b z", "- b -"),
        ("^", {}, "ab", "-ab"),
        ("(?<=a)", {"pcre2": True}, "ab", "a-b"),
        ("^|\n", {"multiline": True}, "a\nb", "-a-b"),
        (r"\n", {"multiline": True}, "a\nb", "a-b"),
        (r"\s+", {"multiline": True}, "a\n b", "a-b"),
        ("a|ab", {}, "ab", "-b"),
        (r"\B", {"max_count": 1}, "ab\nc", "a-b\nc"),
        ("a|$", {"max_count": 1}, "ab\nb", "-b-\nb"),
    ],
)
def test_file_without_a_final_newline_is_changed(
    plant: Plant, pattern: str, options: dict[str, Any], before: str, after: str
) -> None:
    """There is no empty match at the end."""
    assert replaced(plant({"f": before}), pattern, "-", **options) == {"f": after.encode()}


def substituted(pattern: str, text: str) -> str:
    """Replace as the regex crate does: an empty match right after another match is none."""
    pieces, done, after = list[str](), 0, -1
    for match in re.finditer(pattern, text):
        if match.end() > match.start() or match.start() != after:
            pieces += text[done : match.start()], "-"
            done = after = match.end()
    return "".join((*pieces, text[done:]))


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.parametrize("pattern", ["x*", r"\b", "$", "a?", "^", ",|$", "é|", "(?:^|$)", "[^a]*", "a|", r"\w*"])
def test_random_files_are_changed_as_a_whole_or_left_out(plant: Plant, pattern: str) -> None:
    """Compared with Python's `re`, line by line."""
    random = Random(pattern)
    texts = {str(n): "".join(random.choices("aabé漢 ,x\n", k=random.randint(1, 9))) for n in range(times(60, 2_000))}
    folder = plant(texts)
    plan = sync.replace(pattern, "-", cwd=folder)
    plan.apply(journals=folder.parent / "journals")
    left_out = {error.path for error in plan.errors}
    for name, text in texts.items():
        if text.isspace():  # rg reads `b"\n"` as one line, as `splitlines()` does
            continue
        lines = (substituted(pattern, line.rstrip("\n")) + "\n" * line.endswith("\n") for line in text.splitlines(True))
        expected = text if name in left_out else "".join(lines)
        assert (folder / name).read_text("utf-8") == expected, (text, name in left_out)
        assert name not in left_out or not text.endswith("\n")


def test_lost_match_is_found_although_the_others_change_nothing(plant: Plant) -> None:
    """The last match alone would change the file."""
    plan = sync.replace("a|$", "a", cwd=plant({"f": "ba b"}))
    assert len(plan.errors) == 1


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("encoding", "before", "after"),
    [
        # A byte order mark of UTF-8 is removed, and the rest is read in the encoding.
        ("latin1", MARK + b"\xc3\xa9aaaaaa b\n", MARK + b"\xc3\xa9Xaa b\n"),
        ("shift_jis", MARK + b"\x83\x8caaaaaa b\n", MARK + b"\x83\x8cXaa b\n"),
        ("utf-16le", MARK + "éaaaaaa\n".encode("utf-16-le"), MARK + "éXaa\n".encode("utf-16-le")),
        ("utf-8", MARK + b"\xc3\xa9aaaaaa\n", MARK + b"\xc3\xa9Xaa\n"),
        # A mark of UTF-16 overrides the encoding.
        ("latin1", "\ufeffÃ©aaaaaa\n".encode("utf-16-le"), "\ufeffÃ©Xaa\n".encode("utf-16-le")),
        ("euc-jp", "\ufeff漢aaaaaa\n".encode("utf-16-be"), "\ufeff漢Xaa\n".encode("utf-16-be")),
        # Labels that Python has for other encodings, or not at all.
        *((label, b"\x80\x81aaaaaa\n", b"\x80\x81Xaa\n") for label in ("cp819", "ibm819", "csisolatin1", "iso-ir-100")),
        *((label, b"\x80\x9eaaaaaa\n", b"\x80\x9eXaa\n") for label in ("csisolatin5", "iso-ir-148", "iso_8859-9:1989")),
        ("dos-874", b"\x81aaaaaa\n", b"\x81Xaa\n"),
        ("visual", b"\xe0aaaaaa\n", b"\xe0Xaa\n"),
        ("Windows-31J", b"\x81\x60aaaaaa\n", b"\x81\x60Xaa\n"),
        # Bytes that rg and Python read differently.
        ("windows-1252", b"\x81aaaaaa\n", b"\x81Xaa\n"),
        ("windows-1255", b"\xcaaaaaaa\n", b"\xcaXaa\n"),
        ("koi8-u", b"\xaeaaaaaa\n", b"\xaeXaa\n"),
        ("iso-8859-8", b"\xa1aaaaaa\n", b"\xa1Xaa\n"),
        ("euc-jp", b"\xa1\xddaaaaaa\n", b"\xa1\xddXaa\n"),
        ("gb18030", b"\xa8\xbcaaaaaa\n", b"\xa8\xbcXaa\n"),
        # Bytes of another line that only rg can read, or that are not valid.
        ("euc-jp", b"\xad\xa1\naaaaaa\n\xad\xa1", b"\xad\xa1\nXaa\n\xad\xa1"),
        ("gb18030", b"\x80\n\xa3\xa0\naaaaaa", b"\x80\n\xa3\xa0\nXaa"),
        ("shift_jis", b"\xa0\xfd\x81\naaaaaa", b"\xa0\xfd\x81\nXaa"),
        ("utf-8", b"\xff\xe9\naaaaaa", b"\xff\xe9\nXaa"),
        ("utf-16be", b"\xd8\0\0\n\0a\0a\0a\0a\0\n", b"\xd8\0\0\n\0X\0\n"),
    ],
)
def test_only_the_match_changes_in_every_encoding(plant: Plant, encoding: str, before: bytes, after: bytes) -> None:
    """rg's offsets count what rg has decoded, which is not always what Python decodes."""
    assert replaced(plant({"f": before}), "aaaa", "X", encoding=encoding) == {"f": after}


@pytest.mark.parametrize(
    ("encoding", "line"),
    [
        ("euc-jp", b"\xad\xa1aaaaaa"),
        ("euc-jp", b"\x8f\xa2\xb7aaaaaa"),
        ("gb18030", b"\x80aaaaaa"),
        ("gb18030", b"aaaa\xa3\xa0"),
        ("gbk", b"\xfe\x59aaaaaa"),
        ("shift_jis", b"\xa0aaaaaa"),
        ("utf-8", b"\xffaaaaaa"),
        ("utf-16le", b"\0\xd8" + "aaaaaa".encode("utf-16-le")),
    ],
)
def test_file_is_left_out_by_name_if_rg_reads_the_line_differently(plant: Plant, encoding: str, line: bytes) -> None:
    """The other files of the plan change."""
    good = "aaaa".encode("utf-16-le" if encoding == "utf-16le" else "ascii")
    plan = sync.replace("aaaa", "X", cwd=plant({"bad": line, "good": good}), encoding=encoding)
    assert [file.path for file in plan] == ["good"]
    (error,) = plan.errors
    assert error.path == "bad"
    assert error.message.startswith("left out: it is not valid ")


@pytest.mark.parametrize("encoding", ["big5", "iso-2022-jp", "x-user-defined", "latin_1", "replacement"])
def test_encoding_that_cannot_be_changed_is_refused(plant: Plant, encoding: str) -> None:
    """The bytes of a character depend on others, or rg does not know the name."""
    with pytest.raises(ValueError, match=f"files in the encoding '{encoding}' cannot be changed"):
        sync.replace("a", "b", cwd=plant({"f": "a"}), encoding=encoding)


def test_match_after_a_rare_form_of_a_character_is_left_out_by_name(plant: Plant) -> None:
    """GB18030 has forms of two and of four bytes, so the offset of a match after one is not certain."""
    plan = sync.replace("aaaa$", "X", cwd=plant({"f": b"\x84\x31\x82\x36aaaaaaaa\n"}), encoding="gb18030")
    assert not plan
    assert [str(error) for error in plan.errors] == [
        "f: left out: the position of a match after byte 0 is not certain; change it by hand"
    ]


def test_rare_form_of_a_character_is_left_out_by_name(plant: Plant) -> None:
    """Shift_JIS has two forms of a Roman digit, and the journal could not restore the rarer one."""
    folder = plant({"f": b"\xfa\x4a a\n", "g": b"\xfa\x4a\x87\x54\n"})
    plan = sync.replace("\u2160", "I", cwd=folder, encoding="shift_jis")
    assert not plan
    assert [(error.path, "has several forms of" in error.message) for error in plan.errors] == [
        ("f", True),
        ("g", True),
    ]
    assert replaced(folder, "a", "b", encoding="shift_jis")["f"] == b"\xfa\x4a b\n"


def test_line_that_is_not_what_rg_has_read_is_not_changed(plant: Plant) -> None:
    """`aaaa` is also at the place where rg has found it, but the line is another one."""
    folder = plant({"f": b"\xe9aaaaaa\n", "g": b"baaaaaa\n"})
    change = FileChange(1, 5, b"aaaa", b"X")
    files, errors = plan_files(
        str(folder), [Found("f", [change], lines=[Line.of(0, 1, b"aaaaaaa\n", b"\n")])], encoding="latin1"
    )
    assert not files
    assert [error.message for error in errors] == [
        "left out: rg and Python read line 1 differently as cp1252; change the file by hand"
    ]
    with pytest.raises(ConflictError, match="g changed while being searched"):
        plan_files(str(folder), [Found("g", [change], lines=[Line.of(0, 1, b"aaaaaaa\n", b"\n")])], encoding="latin1")


@pytest.mark.stress
@pytest.mark.parametrize(
    ("encoding", "codec", "letter"),
    [("latin1", "cp1252", "é"), ("koi8-r", "koi8_r", "ж"), ("sjis", "cp932", "漢"), ("utf-16be", "utf-16-be", "😀")],
)
def test_edits_of_random_lines_are_those_of_the_decoded_text(
    plant: Plant, encoding: str, codec: str, letter: str
) -> None:
    """The new content is the decoded text with the change, encoded again."""
    random = Random(38)
    texts = {str(n): "".join(random.choices(f"a\n{letter}", k=40)) for n in range(times(9, 500))}
    after = replaced(
        plant({name: text.encode(codec) for name, text in texts.items()}), "aa?", letter, encoding=encoding
    )
    assert {name: raw.decode(codec) for name, raw in after.items()} == {
        name: re.sub("aa?", letter, text) for name, text in texts.items()
    }


def test_everything_that_rg_itself_writes(plant: Plant) -> None:
    """`rg --passthru --replace` writes the same bytes where it keeps the encoding and the last newline."""
    rg = sync.resolve()
    text = "def f(a, b):\n    return a  # foo\n\nclass Foo:\n    foo = 'foo'\n" * 20
    for pattern, replacement in (
        (r"(\w+) = '(\w+)'", "$2: $1"),
        (r"\s+#", ""),
        (r"(?i)FOO", "[$0]"),
        (r"^(\s*)", "$1>"),
    ):
        folder = plant({"f": text})
        command = [rg.path, "--no-config", "--passthru", "-N", f"--replace={replacement}", pattern, "f"]
        expected = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
        assert replaced(folder, pattern, replacement) == {"f": expected}, pattern


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "replacement", "options", "message"),
    [
        ("(a)", "$2", {}, r"\$\{2\}, but the pattern has no such group \(it has 1 group\); write \$\$ for a dollar"),
        ("a", "$1", {}, "it has no groups"),
        ("a", "$1", {"fixed_strings": True}, "no such group"),
        ("(a)", "$1x", {}, r"write \$\{1\}x"),
        ("(?P<a>a)", "$b", {}, r"name the group with \(\?P<name>"),
        ("(?<a>a)(b)", "$3", {"pcre2": True}, "it has 2 groups"),
        ("(?<a>a)", "$b", {"pcre2": True}, "no such group"),
        (["(a)", "(b)"], "$3", {}, "it has 2 groups"),
        ("a", "$12345", {}, "no such group"),
    ],
)
def test_reference_to_a_missing_group_is_refused(
    plant: Plant, pattern: Any, replacement: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sync.replace(pattern, replacement, cwd=plant({"f": "ab\n"}), **options)


@pytest.mark.parametrize(
    ("replacement", "advice"),
    [
        (r"\1", "$1"),
        (r"<\2>\1", "$2"),
        (r"\1x", "${1}x"),
        (r"\0", "$0"),
        (r"\g<name>", "${name}"),
        (r"\g<1>", "${1}"),
        (r"$$\1", "$1"),
    ],
)
def test_group_in_the_syntax_of_python_or_sed_is_refused(plant: Plant, replacement: str, advice: str) -> None:
    r"""rg writes `\1` as it is; the error says `$1`."""
    folder = plant({"f": "ab\n"})
    advice = re.escape(advice.removesuffix("x"))
    with pytest.raises(ValueError, match=rf"is not a group, but text; write {advice} for the group; .*escapes=True"):
        sync.replace("(?P<name>a)(b)", replacement, cwd=folder)
    said = sync.Workspace(folder, write=True).replace_content("(a)(b)", replacement, apply=True)
    assert re.search(f"^Error: .* is not a group, but text; write {advice} for the group$", said)
    assert (folder / "f").read_text() == "ab\n"


@pytest.mark.parametrize(
    ("pattern", "replacement", "options", "after"),
    [
        ("(a)b", r"\\1", {"escapes": True}, r"\1"),
        ("(a)b", r"\1$1", {}, r"\1a"),
        ("(a)b", r"\\1", {}, r"\\1"),
        ("ab", r"\1", {"fixed_strings": True}, r"\1"),
        ("ab", r"\n\g", {}, r"\n\g"),
    ],
)
def test_text_that_looks_like_a_group_can_be_written(
    plant: Plant, pattern: str, replacement: str, options: dict[str, Any], after: str
) -> None:
    """With `escapes`, beside a group of rg's syntax, or for plain text."""
    assert replaced(plant({"f": "ab\n"}), pattern, replacement, **options) == {"f": f"{after}\n".encode()}


def test_escape_of_a_group_says_how_to_write_a_group(plant: Plant) -> None:
    r"""With `escapes`, `\1` was refused before, too, but without `$1` in the error."""
    with pytest.raises(ValueError, match=r"unknown escape .* write \$1 for a group, write a backslash as"):
        sync.replace("(a)", r"\1", cwd=plant({"f": "a"}), escapes=True)


@pytest.mark.parametrize(
    ("pattern", "replacement", "options"),
    [
        (["(a)", "(?P<n>b)"], "$1$2$n", {}),
        ("(?<a>a)", "$a$1", {"pcre2": True}),
        (r"(?x) ( a ) # ( comment" + "\n", "$1", {}),
        (r"[(]?(a)\(?", "$1", {}),
        ("(?<a>a)(?=b)", "$a", {"engine": "auto"}),
    ],
)
def test_reference_to_a_group_is_accepted(plant: Plant, pattern: Any, replacement: str, options: Any) -> None:
    assert sync.replace(pattern, replacement, cwd=plant({"f": "ab\n"}), **options) is not None


@pytest.mark.parametrize("name", ["invert_match", "passthru", "replace"])
def test_options_that_contradict_a_replacement_are_refused(plant: Plant, name: str) -> None:
    options: dict[str, Any] = {name: "x" if name == "replace" else True}
    with pytest.raises(ValueError, match=f"{name} does not apply"):
        sync.replace("a", "b", cwd=plant({}), **options)


def test_bad_arguments_are_clear_errors(plant: Plant) -> None:
    folder = plant({"f": "a\n"})
    with pytest.raises(PatternError):
        sync.replace("(", "$1", cwd=folder)
    with pytest.raises(ValidationError, match="unknown option ignore"):
        sync.replace("a", "b", cwd=folder, ignorecase=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="in the encoding 'iso-2022-jp' cannot be changed"):
        sync.replace("a", "b", cwd=folder, encoding="iso-2022-jp")
    with pytest.raises(ValueError, match="cannot contain '漢'"):
        sync.replace("a", "漢", cwd=folder, encoding="latin1")
    with pytest.raises(ValueError, match="cannot contain '漢', because its encoding is cp1251"):
        sync.replace("a", "漢", cwd=folder, encoding="cp1251").apply()
    plan = sync.replace("a", "b", cwd=folder)
    with pytest.raises(ValueError, match="the plan does not change 'g', a path in select"):
        plan.selected(["g"])


def test_hidden_files_and_links_are_left_out_by_default(plant: Plant, needs_posix: None) -> None:
    folder = plant({".hidden": "a\n", "f": "a\n"})
    (folder.parent / "outside").write_text("a\n")
    (folder / "link").symlink_to("../outside")
    assert [file.path for file in sync.replace("a", "b", cwd=folder)] == ["f"]
    assert len(sync.replace("a", "b", cwd=folder, hidden=True, follow=True)) == 3


@pytest.mark.slow
def test_files_that_are_left_out_are_named(plant: Plant) -> None:
    folder = plant({"binary": b"a\n" * 40_000 + b"\0", "f": "a", "half": b"\xff\xfea\0\n"})
    half = sync.replace("a", "b", cwd=folder, paths=folder / "half").errors
    assert [error.message for error in half] == [
        "left out: it is not valid utf-16-le, at byte 2; repair the file, or pass another encoding"
    ]
    plan = sync.replace("$", "b", cwd=folder, glob="!half")
    assert {error.path: error.message for error in plan.errors} == {
        "binary": "left out: it is binary (NUL at byte 80000); text=True changes binary files, too",
        "f": "left out: rg does not report the position of the match in line 1; change the file by hand",
    }
    assert not plan
    assert str(plan) == "Nothing to replace; 2 paths left out."


def test_replacement_that_changes_nothing_is_no_edit(plant: Plant) -> None:
    plan = sync.replace("[ab]", "a", cwd=plant({"f": "ab\n", "g": "a\n"}))
    assert (plan.total_edits, [file.path for file in plan]) == (1, ["f"])


@pytest.mark.anyio
async def test_plan_is_the_same_from_both_twins_and_from_json(plant: Plant) -> None:
    folder = plant({"f": b"\xff a\n", os.fsdecode(b"n\xc3\xa9"): "a\n"})
    plan = await ripwrap.replace("a", "b", cwd=folder)
    blocking = sync.replace("a", "b", cwd=folder)
    assert plan.model_dump() == blocking.model_dump()
    assert sync.ReplacePlan.model_validate_json(plan.model_dump_json()) == blocking


def test_selection_of_paths_and_of_edits(plant: Plant, tmp_path: Path) -> None:
    folder = plant({"f": "a\na a\n", "g": "a\n"})
    plan = sync.replace("a", "b", cwd=folder)
    plan.apply(select=["g"], journals=tmp_path / "j")
    assert (folder / "g").read_text() == "b\n"
    plan.apply(select=lambda file, edit: file.path == "f" and edit.start == 2, journals=tmp_path / "j")
    assert (folder / "f").read_text() == "a\nb a\n"
    assert plan.apply(select=[], journals=tmp_path / "j").files == ()
    plan.undo(select=["g"], journals=tmp_path / "j")
    assert (folder / "g").read_text() == "a\n"


def test_git_applies_the_diff(plant: Plant) -> None:
    before = {"f": "1\n2\na\n4\n5\n6\n7\n8\n9\n10\na a\n", "new\nline": "a", "é": "x\r\na\r\n"}
    for replacement in ("b", "", "x\ny", "a\n"):
        folder = plant(before)
        plan = sync.replace("a", replacement, cwd=folder)
        subprocess.run(["git", "apply", "-p1", "-"], cwd=folder, input=plan.raw_diff(), check=True)
        for name, text in before.items():
            assert (folder / name).read_bytes() == text.replace("a", replacement).encode()


def test_lines_of_a_plan_have_the_offsets_of_a_search(plant: Plant) -> None:
    folder = plant({"f": "é\n2\n3\nx a a\n5\n6\n7\n8\n9\n10\na\n12\n"})
    searched = sync.grep("a", cwd=folder, context=2).files[0].lines()
    planned = sync.replace("a", "b", cwd=folder, context=2).files[0].lines()
    assert [(line.type, line.absolute_offset) for line in planned] == [
        (line.type, line.absolute_offset) for line in searched
    ]


def test_diff_of_joined_and_split_lines(plant: Plant) -> None:
    folder = plant({"f": "1\nx\n3\ny\n5\n"})
    plan = sync.replace(["x\n", "y\n"], "", cwd=folder, multiline=True, context=0)
    assert plan.diff() == "--- a/f\n+++ b/f\n@@ -2 +1,0 @@\n-x\n@@ -4 +2,0 @@\n-y\n"


def test_html_and_rich_previews(plant: Plant) -> None:
    from rich.console import Console

    plan = sync.replace("a", "b<", cwd=plant({"f": "a\n"}))
    assert "<del>a</del><ins>b&lt;</ins>" in plan._repr_html_()
    console = Console(width=80, record=True, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    console.print(plan)
    console.file.close()
    assert console.export_text() == "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b<\n1 replacement in 1 file.\n"
    assert [*plan.grep_lines()] == ["f:1:b<"]


def test_edits_that_were_found_otherwise(plant: Plant) -> None:
    """A plan of any tool: parts of the bytes of files, and what to put there."""
    folder = plant({"f": b"\xef\xbb\xbfabc"})
    files, left_out = plan_files(str(folder), [Found("f", [FileChange(4, 5, b"b", b"")], decoded=False)])
    assert (files[0].diff().splitlines()[-2:], left_out) == (["+\ufeffac", "\\ No newline at end of file"], ())
    with pytest.raises(ValueError, match="two edits of f overlap, at bytes 3-5 and 4-6"):
        plan_files(
            str(folder), [Found("f", [FileChange(3, 5, b"ab", b""), FileChange(4, 6, b"bc", b"x")], decoded=False)]
        )
    with pytest.raises(ConflictError, match="f changed while being searched"):
        plan_files(str(folder), [Found("f", [FileChange(3, 4, b"z", b"")], decoded=False)])


def test_blocking_twin_has_a_time_limit(plant: Plant, stand_in: Callable[..., Path]) -> None:
    rg = stand_in("import signal; signal.pause()")
    with pytest.raises(TimeoutError, match=r"timeout=0\.1 seconds"):
        sync.replace("a", "b", cwd=plant({}), rg=rg, timeout=0.1)


def test_timeout_while_files_are_read_names_the_seconds(plant: Plant) -> None:
    over = Cancellation(0.1)
    over.set()
    before = CANCELLED.set(over)
    try:
        with pytest.raises(TimeoutError, match=r"^the call took more than timeout=0\.1 seconds; allow more time$"):
            plan_files(str(plant({"f": "ab"})), [Found("f", [FileChange(0, 1, b"a", b"b")], decoded=False)])
    finally:
        CANCELLED.reset(before)

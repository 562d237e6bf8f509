"""Anchors of lines, and the tool `resolve`."""

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ripwrap import AccessDeniedError, sync
from ripwrap.workspace import ResolveResult, ToolResult, schemas
from ripwrap.workspace.arguments import Anchor, line_hash, parse_anchor, parse_place
from support.paths import slashed
from support.tools import APIS, Asked

Plant = Callable[..., Path]

DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
LABEL = re.compile(r"^  (\d+)·([0-9a-z]{3})([:-])(?: (.*))?$", re.MULTILINE)
CODE = "import os\n\n\ndef pay(amount):\n    # TODO: cards\n    return amount\n"


def documented_hash(line: str) -> str:
    """Return the hash as `anchors.py` describes it, from a number in base 32."""
    number = zlib.crc32(line[:1000].rstrip().encode()) % 2**15
    return "".join(DIGITS[int(f"{number:015b}"[at : at + 5], 2)] for at in (0, 5, 10))


@pytest.mark.parametrize(("line", "text"), [("", "000"), ("def total(items):", "6bh"), ("    # TODO: taxes", "qdh")])
def test_hash_is_the_one_that_is_documented(line: str, text: str) -> None:
    assert line_hash(line) == text == documented_hash(line)
    assert {line_hash(line + end) for end in ("\n", "\r\n", " \t")} == {text}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=1_100))
def test_hash_has_three_digits_that_models_copy(line: str) -> None:
    assert line_hash(line) == documented_hash(line)
    anchor = Anchor(42, line_hash(line))
    assert parse_anchor(str(anchor)) == parse_anchor(f" 42 • {anchor.hash.upper()}: ") == anchor
    assert parse_place(f"a#b/c d.py#{anchor}") == parse_place(f"a#b/c d.py:{anchor}:") == ("a#b/c d.py", anchor)


@pytest.mark.slow
def test_different_lines_share_a_hash_as_often_as_documented() -> None:
    hashes = [line_hash(f"    total += price_{number}  # {number * 7}") for number in range(20_000)]
    counts = [hashes.count(one) for one in sorted(set(hashes))[:500]]
    pairs = sum(count * (count - 1) / 2 for count in counts) * len(set(hashes)) / 500
    expected = 20_000 * 19_999 / 2 / 32_768
    assert 0.8 * expected < pairs < 1.2 * expected


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_tools_show_anchors_that_resolve(api: str, plant: Plant) -> None:
    asked = Asked(api, plant({"src/till.py": CODE}), anchors=True)
    lines = CODE.split("\n")
    for text in (
        asked.grep_content("TODO", context_lines=1),
        asked.grep_content("TODO", expand="definition"),
        asked.grep_content(r"pay.*\n.*TODO", multiline=True),
        asked.read_file("src/till.py"),
        asked.read_file("src/till.py", ranges="1,4-"),
        asked.codebase_search("pay cards"),
    ):
        found = LABEL.findall(text)
        assert len(found) >= 3
        for number, digits, _, shown in found:
            assert lines[int(number) - 1] == shown
            assert slashed(asked.resolve(f"src/till.py#{number}·{digits}")) == (
                f"File: src/till.py\n  {number}·{digits}: {shown}".rstrip() + f"\n\n(Line {number} is unchanged.)"
            )


@pytest.mark.slow
def test_answers_without_anchors_are_unchanged(plant: Plant) -> None:
    root = plant({"src/till.py": CODE})
    plain, marked = sync.Workspace(root), sync.Workspace(root, anchors=True)
    asks: tuple[Callable[[sync.Workspace], ToolResult], ...] = (
        lambda one: one.grep_content_result("TODO"),
        lambda one: one.read_file_result("src/till.py"),
        lambda one: one.codebase_search_result("pay cards"),
    )
    for ask in asks:
        without, with_anchors = ask(plain), ask(marked)
        assert "'anchors'" not in str(without.structured())
        assert re.sub(r"(?m)^(  \d+)·[0-9a-z]{3}", r"\1", str(with_anchors)) == str(without)
        assert type(with_anchors).model_validate_json(with_anchors.model_dump_json()) == with_anchors
    assert "resolve" not in [tool.__name__ for tool in plain.tools]
    assert [tool.__name__ for tool in marked.tools] == [*(tool.__name__ for tool in plain.tools), "resolve"]
    assert [*schemas()] == [tool.__name__ for tool in plain.tools]
    assert [*schemas(anchors=True)] == [tool.__name__ for tool in marked.tools]
    assert plain.call("resolve", {"anchor": "a#1·000"}).startswith("Error: there is no tool 'resolve'")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_all_tools_show_the_same_anchor_of_a_line(plant: Plant, encoding: str, newline: str) -> None:
    """Also for lines that are cut, have control characters, or are not UTF-8."""
    lines = ["def käse():", f"    a = '{'x' * 3_000}'  # TODO", "    b = '\x1b[1m'  # TODO  ", "    return 'ä'  # TODO"]
    root = plant({"a.py": newline.join([*lines, ""]).encode(encoding)})
    asked = sync.Workspace(root, anchors=True, max_line=60)
    texts = (
        asked.read_file("a.py"),
        asked.grep_content("TODO|def", context_lines=0),
        asked.grep_content("def", context_lines=0, expand="definition"),
        asked.codebase_search("käse b return"),
    )
    anchors = [{number: digits for number, digits, _, _ in LABEL.findall(text)} for text in texts]
    assert list(anchors[0]) == ["1", "2", "3", "4"]
    for found in anchors:
        assert found.items() <= anchors[0].items()
    assert anchors[0] == anchors[1] == anchors[2]
    if encoding != "latin-1":
        assert [*anchors[0].values()] == [documented_hash(line) for line in lines]


@pytest.mark.slow
def test_answers_with_anchors_fit_the_budget(plant: Plant) -> None:
    root = plant({f"m{number}.py": "needle = 1\n" * 300 for number in range(9)})
    for max_chars in (1_000, 5_000):
        asked = sync.Workspace(root, anchors=True, max_chars=max_chars)
        for text in (
            asked.grep_content("needle"),
            asked.grep_content("needle", expand="definition"),
            asked.read_file("m1.py"),
            asked.codebase_search("needle", "m1.py"),
        ):
            assert len(text) <= max_chars
            assert LABEL.search(text)


def resolved(root: Path, anchor: Anchor) -> ResolveResult:
    return sync.Workspace(root).resolve_result(f"a.py#{anchor}")


def test_moved_gone_and_ambiguous_lines_are_told_apart(plant: Plant) -> None:
    root = plant({"a.py": CODE})
    anchor = Anchor(6, line_hash("    return amount"))
    found = resolved(root, anchor)
    assert (found.state, found.line, found.text, found.others) == ("unchanged", 6, "    return amount", ())
    (root / "a.py").write_text("# new\n# new\n" + CODE)
    found = resolved(root, anchor)
    assert (found.state, found.line, found.text, found.others) == ("moved", 8, "    return amount", ())
    assert found.message == "Line 6 moved to line 8."
    (root / "a.py").write_text(CODE.replace("return amount", "pass") + "    return amount\n" * 2)
    found = resolved(root, anchor)
    assert (found.state, found.line, found.others) == ("moved", 7, (8,))
    assert found.message == (
        f"Line 6 moved, but 2 lines have the hash {anchor.hash}: 7, 8. "
        "Line 7 is the nearest; read the lines around it to be sure."
    )
    (root / "a.py").write_text(CODE.replace("return amount", "pass"))
    found = resolved(root, anchor)
    assert (found.state, found.line, found.text, found.others) == ("gone", None, "", ())
    assert str(found) == (
        f"Line 6 changed or is gone: the file has 6 lines, none of them with the hash {anchor.hash}. Search again."
    )
    (root / "a.py").write_text("")
    assert resolved(root, anchor).message.startswith("Line 6 is gone: the file has 0 lines")


@pytest.mark.slow
def test_nearest_of_many_lines_is_found_in_bounded_memory(plant: Plant) -> None:
    root = plant({"a.py": "\n" * 5_000 + "x\n" + "\n" * 200_000})
    found = resolved(root, Anchor(5_001, line_hash("")))
    assert (found.state, found.line, len(found.others)) == ("moved", 5_000, 20)
    assert found.others[:3] == (5_002, 4_999, 5_003)
    assert "205000 lines have the hash 000" in found.message and "and others" in found.message


words = st.sampled_from(["a = 1", "b = 2", "    c = 3", "", "}", "d"])
edits = st.lists(
    st.tuples(st.sampled_from(["insert", "delete", "change", "move"]), st.integers(0, 30), words | st.text(max_size=5)),
    max_size=8,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, min_size=1, max_size=25), edits, st.integers(0, 24))
@example(["a = 1", "b = 2"], [("insert", 0, "x")], 1)
def test_line_is_found_after_edits(tmp_path: Path, lines: list[str], changes: list[Any], at: int) -> None:
    at %= len(lines)
    anchor = Anchor(at + 1, line_hash(lines[at]))
    tags: list[object] = [None] * len(lines)
    tags[at] = "the line"
    texts = [*lines]
    for kind, number, text in changes:
        place = number % (len(texts) + 1)
        line = re.sub(r"[\r\n\ud800-\udfff\0]", "", text)
        if kind == "insert":
            texts.insert(place, line)
            tags.insert(place, None)
        elif place < len(texts) and kind == "delete":
            del texts[place], tags[place]
        elif place < len(texts) and kind == "change":
            texts[place], tags[place] = line, None
        elif place < len(texts):
            texts.append(texts.pop(place))
            tags.append(tags.pop(place))
    (tmp_path / "a.py").write_text("".join(f"{line}\n" for line in texts), "utf-8", newline="")
    found = resolved(tmp_path, anchor)
    same = [number for number, text in enumerate(texts, 1) if documented_hash(text) == anchor.hash]
    same.sort(key=lambda number: (abs(number - anchor.line), number))
    if anchor.line in same:
        assert (found.state, found.line, found.others) == ("unchanged", anchor.line, ())
    elif same:
        assert (found.state, found.line, found.others) == ("moved", same[0], tuple(same[1:]))
    else:
        assert (found.state, found.line, found.others) == ("gone", None, ())
    if "the line" in tags:
        today = tags.index("the line") + 1
        assert today in (found.line, *found.others) or found.state == "unchanged"
    if found.line is not None:
        assert (
            found.text.rstrip() == texts[found.line - 1].rstrip() or not found.text.isprintable() or "\\x" in found.text
        )


@pytest.mark.posix
@pytest.mark.parametrize(
    ("anchor", "error"),
    [
        ("src/till.py", "anchor must be PATH#LINE·HASH, like \"src/till.py#42·k7q\", got 'src/till.py'"),
        ("src/till.py#42", "anchor must be PATH#LINE·HASH"),
        ("42·k7q", "anchor must be PATH#LINE·HASH"),
        ("src/till.py#42·k7", "anchor must be PATH#LINE·HASH"),
        ("src/till.py#42·k-q", "anchor must be PATH#LINE·HASH"),
        ("src/till.py#0·k7q", "anchor must be PATH#LINE·HASH"),
        ("src/till.py#1·u7q", "anchor must be PATH#LINE·HASH"),
        ("x" * 500, "anchor must be PATH#LINE·HASH"),
        ("src#1·k7q", "src is a directory; pass an anchor with the path of a file"),
        ("nothing.py#1·k7q", "nothing.py does not exist in "),
        ("../x.py#1·k7q", "../x.py is outside of the allowed directories"),
        ("link#1·k7q", "link is outside of the allowed directories"),
        ("binary#1·k7q", "binary is binary (3 bytes); resolve shows text only"),
    ],
)
def test_what_is_no_anchor_has_one_clear_error(plant: Plant, anchor: str, error: str) -> None:
    root = plant({"src/till.py": CODE, "binary": b"a\0b"})
    (root / "link").symlink_to("/etc/passwd")
    said = sync.Workspace(root, anchors=True).call("resolve", {"anchor": anchor})
    assert said.startswith(f"Error: {error}")
    assert "\n" not in said and len(said) < 400


@pytest.mark.posix
@pytest.mark.parametrize("name", ["new\nline.py", "a#1·k7q.py", "a:b#.py"])
def test_anchor_in_a_file_with_an_odd_name_is_found(plant: Plant, name: str) -> None:
    asked = sync.Workspace(plant({name: CODE}), anchors=True)
    assert asked.resolve_result(f"{name}#1·{documented_hash('import os')}").state == "unchanged"


def test_resolve_result_raises(plant: Plant) -> None:
    with pytest.raises(AccessDeniedError):
        sync.Workspace(plant({"a": ""})).resolve_result("../a#1·k7q")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            {"start_line": "5·k7q"},
            "start_line must be a number (the tool `resolve` returns the line number of an anchor), got",
        ),
        (
            {"end_line": "5·k7q:"},
            "end_line must be a number (the tool `resolve` returns the line number of an anchor), got",
        ),
        (
            {"ranges": "4·abc-5·k7q"},
            'ranges must be like "10-40,80-95" (the tool `resolve` returns the line number of an anchor), got',
        ),
    ],
)
def test_anchor_in_place_of_a_number_is_refused(plant: Plant, given: dict[str, Any], error: str) -> None:
    asked = sync.Workspace(plant({"a.py": CODE}), anchors=True)
    assert asked.call("read_file", {"path": "a.py", **given}).startswith(f"Error: {error}")


def test_file_that_is_read_too_slowly_is_an_error(plant: Plant) -> None:
    root = plant({"a.py": "x\n" * 5_000})
    said = sync.Workspace(root, timeout=0).resolve("a.py#4000·k7q")
    assert said == "Error: the file was not read within 0 seconds; search the file with grep_content"


def test_resolve_is_described_to_models() -> None:
    description, arguments, _ = schemas(anchors=True)["resolve"]
    assert "`42·k7q: …`" in description
    assert arguments["required"] == ["anchor"]
    assert "#" in arguments["properties"]["anchor"]["description"]


@pytest.mark.slow
def test_hash_of_a_masked_line_tells_nothing_of_its_secret(plant: Plant) -> None:
    texts = [f'def log_in():\n    password = "hunter-{number}-secret"\n    return password\n' for number in (1, 2)]
    shown: list[str] = []
    for text in texts:
        asked = sync.Workspace(plant({"a.py": text}), anchors=True, redact=True)
        answers = (
            asked.read_file("a.py"),
            asked.grep_content("return", context_lines=1),
            asked.grep_content("return", expand="definition"),
            asked.codebase_search("log in password"),
        )
        assert all("hunter" not in answer and "[redacted: password]" in answer for answer in answers)
        (anchor,) = {
            f"{number}·{digits}"
            for answer in answers
            for number, digits, _, _ in LABEL.findall(answer)
            if number == "2"
        }
        shown += [*answers, asked.resolve(f"a.py#{anchor}")]
        assert "(Line 2 is unchanged.)" in shown[-1] and "hunter" not in shown[-1]
    assert shown[:5] == shown[5:]


@pytest.mark.slow
@pytest.mark.parametrize("newline", ["", "\n"])
def test_hash_of_a_long_masked_line_is_the_same_in_all_tools(plant: Plant, newline: str) -> None:
    """Also if its end is not read, and so a secret across that end is not known."""
    line = f'password = "{"a1" * 10_000}" {newline}# needle\n'
    asked = sync.Workspace(plant({"a.py": line}), anchors=True, redact=True)
    found = asked.grep_content(r"password[\s\S]*needle", context_lines=0, multiline=bool(newline))
    anchors = [f"{number}·{digits}" for number, digits, _, _ in LABEL.findall(found)]
    assert len(anchors) == line.count("\n")
    for anchor in anchors:
        assert "is unchanged" in asked.resolve(f"a.py#{anchor}")

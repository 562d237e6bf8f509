"""Edits of configuration texts: what is added can be removed, and every other byte stays."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import Workspace, sync
from ripwrap._agents import json_text
from ripwrap._agents.json_text import JsonEntry, TextBlock, TomlEntry, parse
from ripwrap._agents.plan import BODY, CLIENTS, SKILL, FileEdit, targets
from ripwrap.workspace.codebase_search import CodebaseSearchArguments
from ripwrap.workspace.tool import tools_of

SERVER, _, HOOK = (target.edit for target in targets("claude", None, hook=True))
VSCODE, OPENCODE, CODEX = (targets(name, None, hook=False)[0].edit for name in ("vscode", "opencode", "codex"))
GUIDE = TextBlock(BODY)


def round_trip(edit: FileEdit, text: str) -> str:
    """Add, add again, and remove; return the text with the addition."""
    added = edit.add(text, "")
    more = len(added) - len(text)  # the addition is in one piece
    assert any(added[:at] + added[at + more :] == text for at in range(len(text) + 1))
    assert edit.add(added, "") == added
    assert edit.remove(added).text == text
    assert edit.remove(text).text == text
    return added


KEYS = st.sampled_from(["mcpServers", "servers", "hooks", "PreToolUse", "a", "ä\ud800", "//", "/* x", '"', "}", "\\"])
SPACES = st.text(" \t\n", max_size=4) | st.sampled_from(["", "\n  ", "\r\n\t", "\r"])
COMMENTS = st.sampled_from(["// x, }\n", "/* a\n b */", "//\r\n", "/**/", '// {"\n'])


@st.composite
def json_texts(draw: st.DrawFn, *, comments: bool, depth: int = 0, top: bool = True) -> str:
    """Return a text of JSON with random white space, and perhaps comments and trailing commas."""

    def space() -> str:
        return draw(SPACES) + (draw(COMMENTS) + draw(SPACES) if comments and draw(st.booleans()) else "")

    kind = "{" if top or depth == 1 else draw(st.sampled_from("{{[x"))
    if depth > 3 or kind == "x":
        return json.dumps(draw(st.sampled_from([None, 1, -2.5e7, "", "a // b", "\u2028,}", True])))
    names = draw(st.lists(KEYS, unique=True, max_size=3)) if kind == "{" else [""] * draw(st.integers(0, 2))
    below = (draw(json_texts(comments=comments, depth=depth + 1, top=False)) for _ in names)
    items = [
        f"{space()}{json.dumps(name) + space() + ':' + space() if kind == '{' else ''}{value}{space()}"
        for name, value in zip(names, below, strict=True)
    ]
    tail = "," if comments and items and draw(st.booleans()) else ""
    return f"{space() if top else ''}{kind}{','.join(items)}{tail}{space()}{'}' if kind == '{' else ']'}" + (
        space() if top else ""
    )


def has_place(edit: FileEdit, text: str) -> bool:
    """Return True unless the place of the entry is taken by another kind of value."""
    assert isinstance(edit, JsonEntry)
    place = parse(text, comments=edit.comments).value
    keys = edit.keys(place)
    for number, key in enumerate(keys, 1):
        if not isinstance(place, dict) or key not in place:
            return isinstance(place, dict)
        place = place[key]
        if isinstance(place, list):
            return edit.name is None and number == len(keys)
    return isinstance(place, dict) and edit.name is not None


@given(json_texts(comments=False), st.sampled_from([SERVER, HOOK]))
def test_json_is_restored_whatever_its_white_space(text: str, edit: FileEdit) -> None:
    if has_place(edit, text):
        assert len(round_trip(edit, text)) - len(text) < 400
    else:
        with pytest.raises(ValueError, match=r"is not an (object|array)"):
            edit.add(text, "")


@given(json_texts(comments=True), st.sampled_from([VSCODE, OPENCODE]))
def test_json_with_comments_is_restored(text: str, edit: FileEdit) -> None:
    if has_place(edit, text):
        round_trip(edit, text)


TABLES = st.sampled_from(
    ["", 'model = "o"\n', "# c\n", "[mcp_servers.x]\ncommand = 'a'\n", "[[a.b]]\nc = 1\n", "[mcp_servers]\n", "\n", " "]
)


@given(st.lists(TABLES, unique=True, max_size=4), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_toml_is_restored(parts: list[str], newline: str, cut: bool) -> None:
    text = "".join(sorted(parts, key=lambda part: part.startswith("["))).replace("\n", newline)
    text = text.removesuffix(newline) if cut else text
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # `[mcp_servers]` after one of its tables
        return
    added = round_trip(CODEX, text)
    assert tomllib.loads(added)["mcp_servers"]["ripwrap"] == {"command": "ripwrap", "args": ["mcp", "--root", "."]}
    assert "\r\n" not in text or "\n" not in added.replace("\r\n", "")


@given(st.text("a \n\r<!->#", max_size=30) | st.sampled_from(["# T\r\n\r\ntext", "x\r", "a\nb\r", "a\r\nb\n"]))
def test_markdown_is_restored(text: str) -> None:
    round_trip(GUIDE, text)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("made", ["made.json", "dir/"])
def test_new_file_is_removed_unless_something_was_added(client: str, made: str) -> None:
    for target in targets(client, None, hook=True):  # type: ignore[arg-type]
        text = target.edit.add(None, made)
        assert target.edit.add(text, "") == text
        assert target.edit.remove(text) == (None, made)
        for newline in ("\r\n", "\n"):
            assert target.edit.remove(text.replace("\n", newline)) == (None, made)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"mcpServers": {"ripwrap": X}}', "{}"),
        ('{"mcpServers": {"b": {}, "ripwrap": X}}', '{"mcpServers": {"b": {}}}'),
        ('{"mcpServers": {"b": {}, "ripwrap": X, "c": 1}}', '{"mcpServers": {"b": {}, "c": 1}}'),
        ('{\n  "mcpServers": {\n    "b": {},\n    "ripwrap": X\n  }\n}', '{\n  "mcpServers": {\n    "b": {}\n  }\n}'),
        ('{"x": 1, "mcpServers": {"ripwrap": X}}', '{"x": 1}'),
        ('{"mcpServers": {"ripwrap" :\n X\n ,\n"b": 2}}', '{"mcpServers": {\n \n"b": 2}}'),
    ],
)
def test_entry_is_removed_after_a_program_has_written_the_file_anew(before: str, after: str) -> None:
    """The mark says what install made, so that it is found in any layout and order."""
    value = json.loads(SERVER.add("{}", ""))["mcpServers"]["ripwrap"]
    for indent in (None, 4):
        assert SERVER.remove(before.replace("X", json.dumps(value, indent=indent))).text == after


def test_member_after_the_entry_does_not_get_into_a_comment() -> None:
    added = VSCODE.add('{"servers": { // mine\n  "b": {}\n}}', "").replace(',\n  "b"', ', "b"')
    assert VSCODE.remove(added).text == '{"servers": { // mine\n  "b": {}\n}}'


def test_object_that_install_made_stays_if_it_has_another_member_or_a_comment() -> None:
    added = VSCODE.add("{\n}\n", "")
    commented = added.replace('{"ripwrap"', '{ /* mine */ "ripwrap"')
    assert VSCODE.remove(commented).text == '{\n  "servers": { /* mine */ }\n}\n'
    other = added.replace('{"ripwrap"', '{"b": {}, "ripwrap"')
    assert VSCODE.remove(other).text == '{\n  "servers": {"b": {}}\n}\n'
    made = VSCODE.add(None, ".vscode/")
    assert VSCODE.remove(f"// mine\n{made}").text == "// mine\n{\n}\n"


@pytest.mark.parametrize(
    ("edit", "text", "says"),
    [
        (SERVER, "", "Expecting value"),
        (SERVER, "[]", "it is not an object of JSON"),
        (SERVER, '{"a": 1,}', "line 1 column"),
        (SERVER, "{} // x", "Extra data"),
        (SERVER, '{"a": NaN}', "NaN is not JSON"),
        (SERVER, '{"mcpServers": null}', '"mcpServers" is not an object'),
        (SERVER, '{"mcpServers": {}, "mcpServers": {}}', 'it has the key "mcpServers" twice'),
        (SERVER, '{"mcpServers": {"ripwrap": {"command": "x"}}}', 'it has another entry "ripwrap"'),
        (SERVER, '{"mcpServers": {"ripwrap": 1, "ripwrap": 2}}', 'it has the key "ripwrap" twice'),
        (SERVER, '{"a": ' + "9" * 5000 + "}", "Exceeds the limit"),
        (HOOK, '{"hooks": {"PreToolUse": {}}}', '"PreToolUse" is not an array'),
        (VSCODE, "{} /* x", "a comment has no end"),
        (VSCODE, "{,}", "Expecting property name"),
        (VSCODE, '{"a": 1,,}', "Expecting property name"),
        (VSCODE, '{"a": "x', "Unterminated string"),
        (CODEX, "a = ", "Invalid value"),
        (CODEX, "mcp_servers = {a = {}}\n", "it cannot be edited without loss"),
        (CODEX, "mcp_servers = 1\n", "it cannot be edited without loss"),
        (CODEX, "[[mcp_servers]]\na = 1\n", "it cannot be edited without loss"),
        (CODEX, "[mcp_servers.ripwrap]\ncommand = 'x'\n", r"it has another table \[mcp_servers.ripwrap\]"),
        (TextBlock(BODY, SKILL), "mine\n", "it is there already, and install did not write it"),
    ],
)
def test_text_that_cannot_be_edited_is_refused(edit: FileEdit, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        edit.add(text, "")


def test_edited_text_with_another_meaning_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The insertion is compared with the value that is expected, so a fault of ours loses nothing."""
    for wrong in ("{", '{"mcpServers": {}}', '{"a": 2, "mcpServers": {}}'):
        monkeypatch.setattr(json_text, "_inserted", lambda *_, wrong=wrong: wrong)
        with pytest.raises(ValueError, match=r"it cannot be edited without loss; add or remove by hand: \{"):
            SERVER.add('{"a": 1}', "")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"mcpServers":' * 3 + "[" * 100_000])
def test_deep_json_is_an_error(text: str) -> None:
    with pytest.raises((RecursionError, ValueError)):
        SERVER.add(text, "")


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["/*", '"', "/*/", ", ", '","', "{", "// ", "\\", " \n"])
def test_hostile_text_is_read_once(unit: str) -> None:
    """A quadratic scan of 500,000 characters would take an hour; the timeout of the suite would end it."""
    for prefix in ("", "{", '{"a": "'):
        with pytest.raises((ValueError, RecursionError)):
            VSCODE.add(prefix + unit * (500_000 // len(unit)), "")


def test_beginnings_of_blocks_without_end_are_read_once() -> None:
    begin = GUIDE.add("", "").partition("\n")[0]
    text = f"{begin}\n" * 100_000
    assert GUIDE.remove(text).text == text


def test_equal_entry_of_the_user_is_kept() -> None:
    mine = '{"mcpServers": {"ripwrap": {"args": ["mcp", "--root", "."], "type": "stdio", "command": "ripwrap"}}}'
    assert SERVER.add(mine, "") == mine and SERVER.remove(mine).text == mine
    table = '[mcp_servers.ripwrap]\ncommand = "ripwrap"\nargs = ["mcp", "--root", "."]\n'
    assert CODEX.add(table, "") == table and CODEX.remove(table).text == table


def test_settings_below_the_block_of_toml_are_not_moved_into_another_table() -> None:
    added = CODEX.add('[mcp_servers.x]\ncommand = "x"\n', "")
    with pytest.raises(ValueError, match="without loss"):
        CODEX.remove(added + 'cwd = "/"\n')
    assert CODEX.remove(added + "[tui]\n").text == '[mcp_servers.x]\ncommand = "x"\n[tui]\n'


def test_older_guide_is_replaced_in_place() -> None:
    added = GUIDE.add("before\n", "") + "after\n"
    older = added.replace("ripgrep", "rg")
    assert GUIDE.add(older, "") == added != older


def test_servers_of_opencode_2_are_found() -> None:
    text = '{"mcp": {"servers": {"x": {"type": "local", "command": ["x"]}}}}'
    assert "ripwrap" in json.loads(round_trip(OPENCODE, text))["mcp"]["servers"]
    named: dict[str, Any] = json.loads(
        round_trip(OPENCODE, '{"mcp": {"servers": {"type": "local", "command": ["x"]}}}')
    )
    assert list(named["mcp"]) == ["ripwrap", "servers"]


def test_kinds_of_edits() -> None:
    assert isinstance(SERVER, JsonEntry) and not SERVER.comments
    assert isinstance(VSCODE, JsonEntry) and VSCODE.comments and isinstance(CODEX, TomlEntry)


def test_sentences_that_the_guide_quotes_are_those_of_the_tools(plant: Callable[..., Path]) -> None:
    """It quoted a sentence that no tool says."""
    tools = sync.Workspace(plant({"a.py": "x\n"}))
    nothing, failed = tools.grep_content("absent"), tools.grep_content("(")
    quoted = re.findall(r'"([^"]+)"', BODY)
    assert len(quoted) == 2
    assert nothing.startswith(quoted[0]) and failed.startswith(quoted[1])
    assert {*re.findall(r"`(\w+)`", BODY)} - {"ripwrap", "grep", "rg", "find", "cat"} <= {
        *tools_of(Workspace), *(name for tool in tools_of(Workspace).values() for name in tool.arguments.model_fields)
    }  # fmt: skip


def test_page_names_the_default_of_codebase_search() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "agents.md").read_text("utf-8")
    default = CodebaseSearchArguments.model_fields["limit"].default
    assert re.findall(r"at most `limit` results \((\d+)\)", page) == [str(default)]

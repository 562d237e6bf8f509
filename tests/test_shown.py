"""No text of a file, name, argument, host or archive reaches a model, a terminal, a log or a page as a control.

Each test plants all hostile characters in one kind of place, and looks for any of them in everything that a sink gets.
"""

import io
import json
import logging
import os
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ripwrap import RipwrapError, cli, remote, sync
from ripwrap._text import shown, shown_json
from ripwrap.models import PathError
from support.cli import on_terminal
from support.git import require_git

Plant = Callable[..., Path]

C0 = "".join(map(chr, (*range(0x20), 0x7F)))
C1 = "".join(map(chr, range(0x80, 0xA0)))
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
HIDDEN = "\u2028\u2029\u00ad\u180e\u200b\u2060\ufeff\U000e0041\U000e007f"
SEQUENCE = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m"
"""A text that writes to the clipboard, clears a terminal, and sets a color (OSC 52, CSI, and CSI in C1)."""

HOSTILE = f"{SEQUENCE}{C0}{C1}{BIDI}{HIDDEN}"
IN_NAME = "".join(one for one in HOSTILE if one not in "\0/")
HARMLESS = (
    "caf\u00e9 \u05d0\u05d1 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0915\u094d\u200d\u0937 \u2708\ufe0f "
    "\U0001f469\u200d\U0001f4bb \u3000 \u00a0 x"
)


def controls(text: str, allowed: str = "\n\t") -> list[str]:
    """Return the characters of a text that a terminal may obey, or that a person may not see."""
    return [
        character
        for character in text
        if character not in allowed
        and character not in "\u200c\u200d"
        and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


def strings(value: Any) -> Iterator[str]:
    """Yield all strings and keys in JSON values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        known: dict[str, Any] = value
        for key, one in known.items():
            yield from strings(key)
            yield from strings(one)
    elif isinstance(value, (list, tuple)):
        entries: list[Any] = [*value]
        for one in entries:
            yield from strings(one)


def names() -> list[str]:
    """Return names of files that together have all hostile characters; a name has at most 255 bytes."""
    return [f"{IN_NAME[at : at + 40]}needle" for at in range(0, len(IN_NAME), 40)]


def tree(plant: Plant) -> Path:
    """Plant hostile names, lines, headings and parts of archives."""
    line = HOSTILE.replace("\n", "").replace("\0", "")
    files: dict[Any, Any] = {f"{name}.py": f"def needle():\n    x = '{line}'\n" for name in names()}
    files |= {
        "a.py": f"class Outer:\n    def needle(self, x='{line}'):\n        return needle\n",
        "b.md": f"# needle {line}\n\ntext needle {line}\n\n## {line} inner\n\nneedle\n",
        "c.json": f'{{"{line} key": {{\n  "needle": 1\n}}}}\n',
        "d.txt": f"needle\r\n{line}\r\nneedle \rmore\n",
        "e.ipynb": json.dumps(
            {"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": f"needle {line}", "outputs": []}]}
        ),
        f"{names()[0]}/sub/needle.txt": "needle\n",
        f"x{names()[1]}.ignored": "needle\n",
        ".ignore": f"*.ignored\n{line}[\n",
        b"bytes\xff\x9b\xc2needle.txt": b"needle \xff\xfe \xc2\n",
    }
    folder = plant(files)
    with zipfile.ZipFile(folder / "f.zip", "w") as archive:
        for name in names():
            archive.writestr(f"{name}.txt", f"needle {line}\n")
    return folder


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("grep_content", {"pattern": "needle", "max_matches": 100, "context": 1}),
    ("grep_content", {"pattern": "needle", "sections": True}),
    ("grep_content", {"pattern": "needle", "expand": "definition"}),
    ("grep_content", {"pattern": "(?s)needle.*needle", "multiline": True}),
    ("grep_content", {"pattern": "needle", "output_mode": "count"}),
    ("grep_content", {"pattern": "needle", "output_mode": "files_with_matches", "max_matches": 3}),
    ("grep_content", {"pattern": "needle", "inside": "zip"}),
    ("grep_content", {"pattern": "needle", "inside": "ipynb"}),
    ("grep_content", {"pattern": "no such text"}),
    ("find_files", {"pattern": "*needle*"}),
    ("find_files", {"pattern": "*.ignored"}),
    ("find_files", {"pattern": "sub", "entry_type": "directory"}),
    ("ls", {}),
    ("ls", {"limit": 3}),
    ("tree", {}),
    ("codebase_search", {"query": "needle inner"}),
    ("read_file", {"path": "a.py"}),
    ("read_file", {"path": "b.md"}),
    ("read_file", {"path": "d.txt"}),
    ("replace_content", {"pattern": "needle", "replacement": "pin"}),
    ("resolve", {"anchor": "a.py#1·aaa"}),
    ("index_codebase", {}),
    ("index_status", {}),
    ("index_health_check", {}),
)

ARGUMENTS: tuple[tuple[str, str, dict[str, Any]], ...] = tuple(
    (tool, name, rest)
    for tool, names_of, rest in (
        ("grep_content", ("pattern", "path", "file_pattern", "file_type", "rev", "inside", "other"), {"pattern": "x"}),
        ("find_files", ("pattern", "path", "entry_type", "sort"), {}),
        ("ls", ("path", "ignore", "limit"), {}),
        ("tree", ("path", "limit"), {}),
        ("codebase_search", ("query", "path"), {"query": "x"}),
        ("read_file", ("path", "ranges", "start_line"), {"path": "a.py"}),
        ("replace_content", ("pattern", "replacement", "path", "file_type"), {"pattern": "x", "replacement": "y"}),
        ("resolve", ("anchor",), {}),
        ("index_codebase", ("unknown",), {}),
    )
    for name in names_of
)  # fmt: skip


@pytest.fixture
def workspace(plant: Plant) -> Iterator[sync.Workspace]:
    folder = tree(plant)
    made = sync.Workspace(folder, index="project", anchors=True, write=True, max_chars=200_000, show_denied="name")
    yield made
    made.close()


@pytest.mark.parametrize("character", HOSTILE + "\udc80\udcff\ud800")
def test_hostile_character_is_escaped_wherever_it_stands(character: str) -> None:
    for text in (character, f"a{character}b", f"{character}\n{character}", character * 3):
        assert controls(shown(text), allowed="") == []
        assert controls(shown(text, lines=True)) == []
        assert shown(shown(text)) == shown(text)
        if character > "\udfff" or character < "\ud800":
            raw = json.dumps({"a": text}, ensure_ascii=False).encode()
            assert controls(shown_json(raw).decode()) == []
            assert json.loads(shown_json(raw)) == {"a": text}


def test_other_text_is_shown_as_it_is() -> None:
    assert shown(HARMLESS) == HARMLESS
    assert shown(f"a\tb\n{HARMLESS}\r\nc", lines=True) == f"a\tb\n{HARMLESS}\nc"
    assert shown("\x1b\x9b\u202e\U000e0041\t\n") == r"\x1b\x9b\u202e\U000e0041\x09\x0a"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse these names")
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_answers_of_tools_have_no_control(tool: str, arguments: dict[str, Any], workspace: sync.Workspace) -> None:
    result = workspace.call_result(tool, arguments)
    for text in (workspace.text(result), str(result), *strings(workspace.structured(result))):
        assert controls(text) == []
    assert (
        "needle" in str(result)
        or tool in ("index_codebase", "index_status", "index_health_check", "resolve")
        or ("no such" in str(arguments) or arguments.get("inside"))
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse these names")
@pytest.mark.parametrize(("tool", "name", "rest"), ARGUMENTS)
def test_errors_of_tools_echo_no_control(tool: str, name: str, rest: dict[str, Any], workspace: sync.Workspace) -> None:
    for hostile in (HOSTILE, IN_NAME, f"{IN_NAME}(", f"[{SEQUENCE}", f"{{{SEQUENCE}", SEQUENCE, f"a.py#{SEQUENCE}"):
        assert controls(workspace.call(tool, {**rest, name: hostile})) == []
        assert controls(workspace.call(tool, {**rest, f"x{hostile}": 1})) == []
        assert controls(workspace.call(hostile, rest)) == []


def test_notes_of_an_error_are_shown_without_controls(folder: Path) -> None:
    error = ValueError(HOSTILE)
    error.add_note(HOSTILE)
    assert controls(sync.Workspace(folder).error_text(error)) == []


@pytest.mark.slow
@pytest.mark.extra
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse these names")
async def test_mcp_sends_no_control(plant: Plant, anyio_backend: str) -> None:
    pytest.importorskip("mcp")
    from mcp import Client, MCPError, types

    from ripwrap import mcp

    folder = tree(plant)
    made = mcp.server(folder, index="project", anchors=True, write=True)
    async with Client(made) as client:
        for tool, arguments in CALLS:
            sent = await client.call_tool(tool, arguments)
            for text in strings(sent.model_dump(mode="json")):
                assert controls(text) == []
        for path in (f"{SEQUENCE}", "a.py", "x?y=" + SEQUENCE):
            said = ""
            try:
                read = await client.read_resource(f"file://{folder}/{path}")
                said = "".join(one.text for one in read.contents if isinstance(one, types.TextResourceContents))
            except MCPError as error:
                said = str(error)
            assert said
            assert controls(said) == []
        with pytest.raises(MCPError) as raised:
            await client.call_tool(SEQUENCE, {})
        assert controls(str(raised.value)) == []
        with pytest.raises(MCPError) as raised:
            await client.get_prompt(SEQUENCE, {})
        assert controls(str(raised.value)) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse these names")
@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "needle"), ("search", "needle", "-C1", "--json"), ("search", "needle", "--count"),
        ("search", "needle", "-l"), ("search", "needle", "--max-columns", "9"), ("search", "needle", "--limit", "3"),
        ("files",), ("files", "--json"), ("tree",), ("rank", "needle inner"), ("rank", "needle inner", "--json"),
        ("replace", "needle", "pin"), ("search", "needle", "--inside", "zip"),
        ("code", "def $F(): $$$", "--lang", "python"),
        ("search", "needle", "-C1", "--jsonl"), ("search", "needle", "--null-data"), ("read", "a.py"),
        ("expand", "a.py:2"), ("doctor",),
    ],
)  # fmt: skip
def test_command_line_shows_no_control_on_a_terminal(arguments: tuple[str, ...], plant: Plant) -> None:
    folder = tree(plant)
    environment = {"TERM": "dumb", "NO_COLOR": "1", "RIPWRAP_CACHE_DIR": str(folder.parent / "cache")}
    try:
        text = on_terminal(*arguments, cwd=folder, environment=environment)
    except AssertionError as error:  # another exit code than 0: the text is in the error
        text = str(error)
    assert controls(text) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse these names")
def test_command_line_writes_exact_bytes_into_a_pipe(plant: Plant) -> None:
    folder = plant({"\x1b[2J.txt": "needle \x1b[31m \x9b \u202e\n"})
    for arguments, wanted in (
        (("search", "needle"), "\x1b[2J.txt:1:needle \x1b[31m \x9b \u202e\n"),
        (("files",), "\x1b[2J.txt\n"),
        (("tree",), "\x1b[2J.txt\n"),
    ):
        argv = [sys.executable, "-m", "ripwrap", *arguments]
        assert subprocess.run(argv, cwd=folder, capture_output=True, check=True).stdout.decode() == wanted


@pytest.mark.parametrize(
    "arguments",
    [("search", f"{SEQUENCE}("), ("search", "x", SEQUENCE), ("search", "x", f"--{SEQUENCE}"), ("index", SEQUENCE),
     ("search", "x", "-t", SEQUENCE), ("search", "x", "-g", f"[{SEQUENCE}"), ("search", "x", "--on", SEQUENCE),
     ("search", "x", "--rg", SEQUENCE), ("search", "x", "--context", SEQUENCE), ("search", "x", "--rev", SEQUENCE),
     ("undo", "--journal", SEQUENCE), ("scan", "--rules", SEQUENCE)],
)  # fmt: skip
def test_errors_of_the_command_line_echo_no_control(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert cli.run([*arguments]) == 2
    assert controls(capsys.readouterr().err) == []


@pytest.mark.posix
@pytest.mark.parametrize("lines", [SEQUENCE, HOSTILE.replace("\0", "")])
def test_stderr_of_a_host_is_shown_without_controls(
    lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "ssh"
    program.write_text(f"#!{sys.executable}\nimport os, sys\nos.write(2, {lines.encode()!r}); sys.exit(255)\n")
    program.chmod(0o755)
    with pytest.raises(RipwrapError) as raised:
        sync.grep("x", on=remote.ssh("box", program=program))
    assert controls(str(raised.value)) == []
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert cli.run(["search", "x", "--on", "ssh:box"]) == 2
    assert controls(capsys.readouterr().err) == []


def test_log_records_have_no_control_in_their_arguments(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("ripwrap")
    with caplog.at_level("DEBUG", logger="ripwrap"):
        logger.warning("%s: line %d: %s", f"a\nforged: {HOSTILE}", 7, ValueError(HOSTILE))
        logger.warning("%s of %.1f: %r", Path(IN_NAME), 0.5, IN_NAME)
    assert [controls(record.getMessage(), allowed="") for record in caplog.records] == [[], []]
    assert "line 7:" in caplog.text
    assert len(caplog.text.splitlines()) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse these names")
def test_pages_and_texts_of_the_library_have_no_control_and_models_are_exact(plant: Plant) -> None:
    folder = tree(plant)
    found = sync.grep("needle", cwd=folder, context=1, limit=1000)
    plan = sync.replace("needle", "pin\x1b[2J", cwd=folder)
    text = sync.tree_text(cwd=folder)
    replaced = sync.grep("needle", cwd=folder, replace="\x1b[2J\u202e")
    results: list[Any] = [found, plan, text, replaced]
    for one in results:
        assert controls(str(one)) == []
        assert controls(one._repr_html_()) == []
        assert controls(on_console(one)) == []
    for error in (*found.errors, *plan.errors, *sync.rank("needle", cwd=folder)):
        assert controls(str(error)) == [] or not isinstance(error, PathError)
    for match in sync.search("needle", cwd=folder, glob="a.py"):
        assert controls(str(sync.expand(match, cwd=folder))) == []
    lines = {match.lines for file in found for match in file.matches}
    assert any("\x1b]52" in line and "\x9b" in line for line in lines)
    assert any("\x1b" in file.path for file in found)
    assert any("\x1b" in entry.name for entry in text)
    assert "\x1b" in replaced.files[0].diff()


def on_console(made: Any) -> str:
    from rich.console import Console

    printed = io.StringIO()
    Console(file=printed, width=400, force_terminal=False).print(made)
    return printed.getvalue()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse these names")
def test_authors_and_subjects_of_git_are_shown_without_controls(plant: Plant, folder: Path) -> None:
    require_git()
    plant({f"{names()[0]}.py": "needle\n"})
    hostile = HOSTILE.replace("\0", "").replace("\n", "")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    author = {f"GIT_{who}_{what}": hostile for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for argv in (["init", "-q"], ["add", "-A"], ["commit", "-qm", f"subject {hostile}"]):
        subprocess.run(["git", *argv], cwd=folder, env={**environment, **author}, check=True)
    for flags in (("--history",), ("--history", "--jsonl"), ("--rev", "HEAD")):
        text = on_terminal("search", "needle", *flags, cwd=folder, environment={"TERM": "dumb", "NO_COLOR": "1"})
        assert "needle" in text
        assert controls(text) == []
    assert controls(sync.Workspace(folder).call("grep_content", {"pattern": "needle", "rev": "HEAD"})) == []


TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("grep_content", {"pattern": "needle", "sections": True}),
        ("grep_content", {"pattern": "needle", "expand": "definition"}),
        ("codebase_search", {"query": "needle"}),
        ("codebase_search", {"query": f"needle {TOKEN}"}),
        ("codebase_search", {"query": "inner needle"}),
    ],
)
@pytest.mark.parametrize("index", [False, True])
def test_secret_in_the_outer_part_of_a_name_is_masked(
    tool: str, arguments: dict[str, Any], plant: Plant, *, index: bool, tmp_path: Path
) -> None:
    body = "\n" * 30
    folder = plant(
        {
            "a.py": f"class {TOKEN}:\n{body}    class Inner:\n        def inner(self):\n            needle\n",
            "b.ts": f"namespace {TOKEN} {{{body}  export class B {{\n    inner() {{\n      needle\n    }}\n  }}\n}}\n",
            "c.json": f'{{\n  "{TOKEN}": {{{body}    "inner": {{\n      "a": "needle"\n    }}\n  }}\n}}\n',
            "d.md": f"# {TOKEN}\n\n## inner\n\nneedle\n",
        }
    )
    workspace = sync.Workspace(folder, index=tmp_path / "index" if index else False, redact=True)
    result = workspace.call_result(tool, arguments)
    text = f"{result}\n{json.dumps(workspace.structured(result))}\n{result!r}"
    assert "needle" in text
    assert TOKEN not in text.replace(f"'query': 'needle {TOKEN}'", "").replace(str(arguments.get("query")), "")
    workspace.close()

"""`grep_then_read.py` lets a model search and read in a folder until it answers."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.runs import load, run

pytestmark = pytest.mark.slow

TRANSCRIPT = """# grep_content {"pattern": "cards (", "fixed_strings": true, "context_lines": 0}
File: shop/till.py
  5: # cards (one)
  --
  9: # cards (two)

(2 matches in 1 file.)

# read_lines {"path": "shop/till.py", "line": 5}
2: b
3: c
4: d
5: # cards (one)
6: f
7: g
8: h

shop/till.py:5: # cards (one)
"""


def test_model_searches_then_reads_then_answers(plant: Callable[..., Path]) -> None:
    folder = plant({"shop/till.py": "a\nb\nc\nd\n# cards (one)\nf\ng\nh\n# cards (two)\n"})
    assert run("grep_then_read.py", "cards (", folder) == (0, TRANSCRIPT, "")


def test_answer_without_a_match_says_nothing_found(plant: Callable[..., Path]) -> None:
    code, out, err = run("grep_then_read.py", "cards", plant({"a.txt": "x\n", "b": b"\0 cards"}))
    assert (code, err) == (1, "")
    assert out.endswith("\n\nI found nothing about it.\n")


def test_file_name_that_is_not_utf8_is_shown_but_not_readable(plant: Callable[..., Path]) -> None:
    code, out, err = run("grep_then_read.py", "cards", plant({b"n\xff.txt": b"cards \xff\n"}))
    assert (code, err) == (0, "")
    assert "File: n�.txt\n  1: cards �\n" in out
    assert out.splitlines()[-1].startswith("n�.txt:1: Error: n�.txt is not a file")


def test_missing_rg_is_printed_and_exits_with_2(plant: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_RG", "/no/such/rg")
    code, out, _ = run("grep_then_read.py", "cards", plant({"a.txt": "cards\n"}))
    assert code == 2
    assert out.count("Error: ") == 2  # the tool's result, and the model's answer


def test_grep_then_read_searches_the_demo_by_default(clone: Path) -> None:
    code, out, _ = run("grep_then_read.py", "taxes", cwd=clone)
    assert (code, out.splitlines()[-1]) == (0, "shop/cart.py:5: # TODO: taxes")
    assert out == run("grep_then_read.py", "taxes", "demo", cwd=clone)[1]


CALLS = [
    ("read_lines", '{"path": "a.txt", "line": 2, "around": 0}', "2: two\n"),
    ("read_lines", '{"path": "a.txt", "line": "2", "around": 1}', "1: one\n2: two\n3: three\n"),
    ("read_lines", '{"path": "a.txt", "line": 9}', "The file has no such lines."),
    ("read_lines", '{"path": "a.txt", "line": -9}', "The file has no such lines."),
    ("read_lines", '{"path": "../secret.txt", "line": 1}', "Error: ../secret.txt is outside the folder"),
    ("read_lines", '{"path": "link", "line": 1}', "Error: link is outside the folder"),
    ("read_lines", '{"path": "none", "line": 1}', "Error: none is not a file"),
    ("read_lines", '{"path": ".", "line": 1}', "Error: . is not a file"),
    ("read_lines", '{"path": "a.txt", "line": 1, "around": 51}', "Error: 1 validation error"),
    ("read_lines", '{"path": "a.txt"}', "Error: 1 validation error"),
    ("read_lines", '{"path": "a.txt", "line": "x"}', "Error: 1 validation error"),
    ("read_lines", "[]", "Error: "),
    ("read_lines", "{", "Error: "),
    ("grep_content", '{"pattern": "t", "path": ".."}', "Error: "),
    ("grep_content", '{"pattern": "wo", "context_lines": 0}', "File: a.txt\n  2: two\n"),
    ("rm", "{}", "Error: "),
]


@pytest.mark.posix
@pytest.mark.parametrize(("name", "arguments", "begins"), CALLS)
def test_every_tool_call_gets_an_answer(plant: Callable[..., Path], name: str, arguments: str, begins: str) -> None:
    folder = plant({"in/a.txt": "one\ntwo\nthree\n", "secret.txt": "secret\n"}) / "in"
    (folder / "link").symlink_to("../secret.txt")
    answer = asyncio.run(load("grep_then_read").Toolbox(str(folder)).call(name, arguments))
    assert answer.startswith(begins)
    assert "secret\n" not in answer


def test_model_gets_both_tools_with_schemas(plant: Callable[..., Path]) -> None:
    offers = load("grep_then_read").Toolbox(str(plant({}))).offers()
    assert [offer["name"] for offer in offers] == ["grep_content", "read_lines"]
    assert all(offer["description"] and offer["parameters"]["type"] == "object" for offer in offers)
    properties = offers[1]["parameters"]["properties"]
    assert {name: about["type"] for name, about in properties.items()} == {
        "path": "string",
        "line": "integer",
        "around": "integer",
    }
    assert offers[1]["parameters"]["required"] == ["path", "line"]


def test_endless_model_is_stopped(plant: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    example = load("grep_then_read")

    async def endless(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        assert [message["role"] for message in messages[1::2]] == ["assistant"] * (len(messages) // 2)
        reply: dict[str, Any] = example.asks(len(messages), "ls")
        return reply

    answer = asyncio.run(example.run(endless, example.Toolbox(str(plant({"a.txt": ""}))), "anything"))
    assert answer == "I gave up: too many calls."
    assert capsys.readouterr().out.count("# ls {}\n") == example.MAX_TURNS

"""Tests that need no rg: with texts, recorded output, models, and an rg that fails."""

from collections.abc import Callable
from pathlib import Path

import pytest
import todos

from ripwrap import testing

RECORDED = Path(__file__).with_name("todos.jsonl")


@pytest.fixture(autouse=True)
def no_rg(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search that would run a real rg fail."""
    monkeypatch.setenv("RIPWRAP_RG", "/no/rg")


def test_authors_are_counted(fake_rg: Callable[..., testing.FakeRg]) -> None:
    rg = fake_rg({"a.py": "# TODO(ann): one\n", "b.txt": "TODO(eve): not Python\n"})
    assert todos.count() == {"ann": 1}
    assert rg.patterns == [(todos.PATTERN,)]


def test_recorded_answer_is_counted(fake_rg: Callable[..., testing.FakeRg]) -> None:
    fake_rg(recorded={todos.PATTERN: RECORDED})
    assert todos.count() == {"ann": 1, "bob": 1}


def test_authors_of_matches_are_counted() -> None:
    match = testing.match("# TODO(ann): one\n", of="TODO(ann)")
    assert todos.authors([match, match]) == {"ann": 2}


@pytest.mark.parametrize("behavior", ["fails", "killed", "truncated", "garbage"])
def test_failure_of_rg_is_an_error(behavior: testing.Behavior) -> None:
    with testing.misbehaving(behavior), pytest.raises(todos.TodosError, match="cannot count the TODOs of"):
        todos.count()


def test_missing_rg_is_an_error() -> None:
    with pytest.raises(todos.TodosError, match="/no/rg"):
        todos.count()

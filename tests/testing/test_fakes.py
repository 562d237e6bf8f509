"""The fake rg answers as rg does, and the misbehaving rg raises what rg would."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripwrap import BinaryNotFoundError, DecodeError, RgBinary, RipwrapError, SearchOptions, sync, testing
from ripwrap.models import Message
from support.effort import times

pytestmark = pytest.mark.posix

WORDS = st.sampled_from(["TODO", "todo", "x", "é", "a b", ".", "two", "", "TODOTODO", "\r", "\tx"])
LINES = st.lists(WORDS, min_size=0, max_size=3).map(" ".join)
TEXTS = st.lists(LINES, max_size=6).map("\n".join).flatmap(lambda text: st.sampled_from([text, f"{text}\n"]))
NAMES = st.sampled_from(["a.py", "b.txt", "src/a.py", "src/deep/c.py", ".hidden", "src/.git/d.py", "é.py", "src/b.md"])
FIXED: dict[str, Any] = {
    "glob": st.sampled_from(["*.py", "!*.py", "src/**", "/a.py", ["*.py", "!src"]]),
    "context": st.integers(0, 2),
    "before_context": st.integers(0, 2),
    "max_count": st.integers(1, 3),
    **dict.fromkeys(
        ("ignore_case", "smart_case", "fixed_strings", "word_regexp", "line_regexp", "hidden"), st.booleans()
    ),
}


def exact(messages: list[Message]) -> list[Any]:
    """Return messages without times and what differs between versions of rg: numbers of bytes and of searches."""
    left_out = {"elapsed", "elapsed_total", "bytes_printed", "bytes_searched", "searches"}

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(inner) for key, inner in value.items() if key not in left_out}
        return [without(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    return [without(message.model_dump()) for message in messages]


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=times(6, 300), suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(NAMES, TEXTS, max_size=5),
    st.sampled_from(["TODO", "t.", "[xé]", "^x", "x$", "a b", "TODO|two", "(?i)todo", "."]),
    st.fixed_dictionaries({"sort": st.just("path")}, optional=FIXED),
)
def test_fake_answers_as_rg_does(rg: RgBinary, texts: dict[str, str], pattern: str, options: SearchOptions) -> None:
    with testing.tree(texts) as root:
        real = exact(list(sync.search_messages(pattern, cwd=root, **options, rg=rg.path)))
        counted = list(sync.count_matches(pattern, cwd=root, **options, rg=rg.path))
    with testing.fake(texts):
        assert exact(list(sync.search_messages(pattern, **options))) == real
        assert list(sync.count_matches(pattern, **options)) == counted


def test_fake_lists_files_and_remembers_calls(fake_rg: Callable[..., testing.FakeRg]) -> None:
    rg = fake_rg({"src/a.py": "", "b.py": "x", ".c": ""}, types={"py": ["*.py"]})
    assert sorted(sync.files(type="py")) == ["b.py", "src/a.py"]
    assert list(sync.files(paths="src")) == ["src/a.py"]
    assert [match.path for match in sync.search(["x", "y"], hidden=True)] == ["b.py"]
    assert rg.patterns == [("x", "y")] and len(rg.calls) == 3


def test_recorded_output_is_replayed(rg: RgBinary, tmp_path: Path) -> None:
    with testing.tree({"a.py": "# TODO\n", "b.bin": b"TODO \xff\n"}) as root:
        raw = subprocess.run(
            [rg.path, "--json", "TODO", "--sort=path"], cwd=root, capture_output=True, check=True
        ).stdout
    (tmp_path / "todo.jsonl").write_bytes(raw)
    for recorded in (raw, tmp_path / "todo.jsonl"):
        with testing.fake(recorded={"TODO": recorded}):
            assert [(one.path, one.raw_lines) for one in sync.search("TODO", type="py")] == [
                ("a.py", b"# TODO\n"),
                ("b.bin", b"TODO \xff\n"),
            ]
            with pytest.raises(RipwrapError, match=r"for \['FIXME'\], only for \['TODO'\]"):
                list(sync.search("FIXME"))


@pytest.mark.parametrize(
    ("pattern", "options", "text"),
    [
        ("x", {"pcre2": True}, "the fake rg does not know --pcre2; use ripwrap.testing.tree"),
        ("x", {"type": "py"}, "does not know the file type py; pass fake"),
        (r"\p{Greek}", {}, "Python's re, which does not accept"),
        ("x", {"paths": "gone"}, "gone: No such file or directory"),
        ("x", {"glob": "{a"}, "unclosed"),
    ],
)
def test_fake_refuses_what_it_cannot_follow(pattern: str, options: Any, text: str) -> None:
    with testing.fake({"a.py": "x"}), pytest.raises(RipwrapError, match=text):
        list(sync.search_messages(pattern, **options))


@pytest.mark.slow
def test_fake_ends_with_its_block(no_rg: None) -> None:
    with testing.fake({"a": "x"}):
        assert sync.resolve().version == (15, 2, 0)
        with testing.fake({"b": "x"}):
            assert [match.path for match in sync.search("x")] == ["b"]
        assert [match.path for match in sync.search("x")] == ["a"]
    assert "RIPWRAP_RG" not in os.environ
    with pytest.raises(BinaryNotFoundError):
        sync.resolve()


@pytest.mark.parametrize(
    ("behavior", "error"),
    [
        ("fails", "an error of the misbehaving rg"),
        ("killed", "killed by signal 11"),
        ("truncated", "record"),
        ("garbage", "JSON"),
    ],
)
def test_misbehaving_rg_raises(behavior: testing.Behavior, error: str) -> None:
    with testing.misbehaving(behavior), pytest.raises((RipwrapError, DecodeError), match=error):
        list(sync.search("x"))


@pytest.mark.slow
@pytest.mark.parametrize("behavior", ["silent", "endless", "ignores_signals"])
def test_misbehaving_rg_reaches_the_timeout(behavior: testing.Behavior, leaks_nothing: None) -> None:
    with testing.misbehaving(behavior):
        assert sync.grep("x", timeout=0.3).stop_reason in ("timeout", "limit")


def test_unknown_behavior_is_refused() -> None:
    with pytest.raises(ValueError, match="behavior must be one of silent, slow"), testing.misbehaving("odd"):  # type: ignore[arg-type]
        pass

"""`Index.grep()` has the same answer as `grep()`, for any pattern and while files change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from ripwrap import GrepResult, sync
from ripwrap.binary import RgBinary
from ripwrap.errors import RipwrapError
from support.effort import times
from support.grep import same
from support.patterns import ENCODINGS, NOISE, Sample, encoded, samples

VISIBLE = {"hidden": False, "follow": False}
_NAMES = ("a.txt", "sub/b.py", "sub/deep/c.c", "d.bin", "-e", "f \u00e9.txt", "\udcff.txt", ".h", "i.log")
_MAYBE_LONG = "sub/deep/c.c"
"""The one file that may be larger than the indexed part: decoding its matches takes longer than all others."""


_flags = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans()
        for name in (
            "ignore_case", "smart_case", "fixed_strings", "word_regexp", "line_regexp", "invert_match", "multiline",
            "crlf", "no_unicode", "text", "binary", "null_data", "stop_on_nonmatch",
        )
    },
)  # fmt: skip
_others = st.one_of(
    st.just({}),
    st.just({}),
    st.sampled_from(
        [
            {"max_count": 1}, {"context": 0}, {"limit": 1, "offset": 1}, {"max_files": 1}, {"glob": "*.txt"},
            {"pcre2": True}, {"engine": "auto"}, {"encoding": "latin1"}, {"hidden": True}, {"replace": "x"},
        ]
    ),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(1800)
def test_index_grep_equals_grep_for_any_pattern(tmp_path: Path, rg: RgBinary) -> None:
    root = tmp_path / "tree"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / ".gitignore").write_text("*.log\n")

    @st.composite
    def contents(draw: st.DrawFn, name: str, texts: list[str]) -> bytes:
        parts = draw(st.lists(st.one_of(st.sampled_from(texts), NOISE), max_size=3))
        encodings = (*ENCODINGS, "long") if name == _MAYBE_LONG else ENCODINGS
        return encoded("\n".join(parts), draw(st.sampled_from(encodings)))

    @settings(max_examples=times(8, 2000), suppress_health_check=list(HealthCheck))
    @given(data=st.data(), found=st.lists(samples(), min_size=1, max_size=2), flags=_flags, others=_others)
    def compare(data: st.DataObject, found: list[Sample], flags: dict[str, bool], others: dict[str, Any]) -> None:
        texts = [text for sample in found for text in (*sample, sample[1].swapcase())]
        patterns, options = [pattern for pattern, _ in found], {**VISIBLE, **flags, **others}
        for _ in range(2):
            files = data.draw(st.fixed_dictionaries({}, optional={name: contents(name, texts) for name in _NAMES}))
            for name in _NAMES:
                if name in files:
                    (root / name).write_bytes(files[name])
                else:
                    (root / name).unlink(missing_ok=True)
            expected, result = (
                _answer(sync.grep, patterns, {**options, "cwd": root, "rg": rg.path}),
                _answer(opened.grep, patterns, options),
            )
            if isinstance(expected, GrepResult) and isinstance(result, GrepResult):
                assert same(result, expected)
                if result.candidates is not None and result.files_total is not None:
                    event(f"found {bool(result)}, fewer candidates {result.candidates < result.files_total}")
            else:
                assert result == expected

    with sync.Index(root, location=tmp_path / "index", chunker="windows", rg=rg.path) as opened:
        compare()


def _answer(grep: Callable[..., GrepResult], patterns: list[str], options: dict[str, Any]) -> GrepResult | type:
    try:
        return grep(patterns, timeout=None, **options)  # its default of 10 s is too short under load
    except RipwrapError as error:
        return type(error)

"""Literals that every match of a pattern must contain, compared with matches of rg."""

import subprocess
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ripwrap import sync
from ripwrap._ripgrep.literals import AllOf, AnyOf, Required, fold, required_literals
from ripwrap.binary import RgBinary
from ripwrap.errors import SearchError
from ripwrap.options import SearchOptions
from support.patterns import NOISE, Sample, samples

needle, both = b"needle", AllOf((b"needle", b"haystack"))
either = AnyOf((b"needle", b"haystack"))


@pytest.mark.parametrize(
    ("pattern", "required"),
    [
        ("needle", needle),
        ("Needle", needle),
        (r"\bneedle\b", needle),
        (r"^\s*needle\(", b"needle("),
        (r"needle.*haystack", both),
        (r"needle[a-z]?haystack", both),
        (r"needle(?:x|y)haystack", AnyOf((b"needlexhaystack", b"needleyhaystack"))),
        (r"(?:sk|rk)_(?:test|live)", AnyOf((b"sk_test", b"sk_live", b"rk_test", b"rk_live"))),
        (r"needle[_-]?hay", AnyOf((b"needlehay", b"needle_hay", b"needle-hay"))),
        ("[Nn]eedle|(?:ne|n)edle", AnyOf((b"needle", b"nedle"))),
        ("(?:needle|x)?hay", b"hay"),
        ("need(?:le){1,2}", b"need"),
        ("[abcd](?:x|y)[efgh]needle", AnyOf((b"eneedle", b"fneedle", b"gneedle", b"hneedle"))),
        ("needle|haystack", either),
        ("(needle|haystack)+", either),
        ("(?:needle)", needle),
        ("(?P<name>needle)", needle),
        ("((needle))", needle),
        ("x(y|needle)", None),
        ("needle|x", None),
        ("needle|", None),
        ("(needle)?", None),
        ("(needle)*x{0,}", None),
        ("(needle){0}", None),
        ("(?:needle){2,}", needle),
        ("needles*", needle),
        ("needles?", needle),
        ("needles{0,3}", needle),
        ("needlee+", b"needlee"),
        ("needl+eyes", AllOf((b"needl", b"leyes"))),
        ("n(?:x)?eedle", AnyOf((b"needle", b"nxeedle"))),
        ("a+?needle??", b"aneedl"),
        (r"need\x6ce", needle),
        (r"need\x{6C}e", needle),
        (r"need\u006ce", needle),
        (r"needle\.", b"needle."),
        (r"\p{Greek}needle\pLneedle", needle),
        (r"[]needle]needle", needle),
        (r"[^]needle]needle", needle),
        (r"[\]needle]needle", needle),
        (r"[[:alpha:]x]needle", needle),
        (r"[x[yneedle]]needle", needle),
        (r"\b{start}needle\<x\>", b"needlex"),
        ("(?i)needle", needle),
        ("(?i:NEEDLE)", needle),
        ("(?i)né|needle", None),
        ("é needle", b"\xc3\xa9 needle"),
        ("(?i)é needle", b" needle"),
        ("(?-u)é needle", b" needle"),
        ("漢", "漢".encode()),
        ("(?x) need le # haystack", needle),
        ("(?x) need\\ le\n#", b"need le"),
        ("(?x)needle +x", needle),
        ("(?x)needles *x", needle),
        ("(?x)needles+ ?x", needle),
        ("(?x:need le) hay", b"needle hay"),
        ("(?x)needle\u00a0s", None),
        ("(?x)[ ]]needle", None),
        ("(?x)( ?i)needle", None),
        ("(?s-m:needle.)", needle),
        ("", None),
        ("ne", None),
        (".", None),
        (r"\w+\s", None),
        (r"(needle)\1", None),
        ("needle(?=x)", None),
        ("(?<!needle)x", None),
        ("(?z)needle", None),
        (r"needle\Q", None),
        (r"needle\x6", None),
        ("needle[", None),
        ("needle(", None),
        ("needle)", None),
        ("*needle", None),
        ("needle{x}", None),
        ("needle\\", None),
        ("needle\nhaystack", both),
        ("needle\ufffdhaystack", both),
        ("(" * 60 + "needle" + ")" * 60, None),
        ("|".join(f"needle{number}" for number in range(300)), None),
    ],
)
def test_required_literals_of_a_pattern(pattern: str, required: Required | None) -> None:
    assert required_literals([pattern], {}) == required


@pytest.mark.parametrize(
    ("patterns", "options", "required"),
    [
        (["needle", "haystack"], {}, either),
        (["needle", "needle"], {}, needle),
        (["needle", "x"], {}, None),
        (["nee.dle*"], {"fixed_strings": True}, b"nee.dle*"),
        (["needle|hay", "(?i)"], {"fixed_strings": True}, AnyOf((b"needle|hay", b"(?i)"))),
        (["é needle"], {"fixed_strings": True}, "é needle".encode()),
        (["é needle"], {"fixed_strings": True, "ignore_case": True}, b" needle"),
        (["é needle"], {"smart_case": True}, b" needle"),
        (["é needle"], {"no_unicode": True}, b" needle"),
        (["needle"], {"word_regexp": True, "multiline": True, "crlf": True}, needle),
        (["needle"], {"engine": "default"}, needle),
        (["needle"], {"engine": "auto"}, None),
        (["needle"], {"pcre2": True}, None),
        (["needle"], {"encoding": "utf-16le"}, None),
        (["needle"], {"invert_match": True}, None),
    ],
)
def test_required_literals_depend_on_options(
    patterns: list[str], options: SearchOptions, required: Required | None
) -> None:
    assert required_literals(patterns, options) == required


def test_fold_maps_characters_that_rg_equates_with_ascii_letters() -> None:
    assert fold("KELVIN \u212a \u017f É".encode()) == "kelvin k s É".encode()


_CHANGES = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("()[]{}|*+?\\.^$#ix-: ")), min_size=1, max_size=3)


def changed(pattern: str, changes: list[tuple[int, str]]) -> str:
    for place, character in changes:
        pattern = pattern[:place] + character + pattern[place:]
    return pattern


search_options: st.SearchStrategy[SearchOptions] = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans()
        for name in ("ignore_case", "smart_case", "fixed_strings", "word_regexp", "line_regexp", "no_unicode", "crlf")
    },
)  # type: ignore[assignment]


def contains(text: bytes, required: Required) -> bool:
    if isinstance(required, bytes):
        return required in text
    return (all if isinstance(required, AllOf) else any)(contains(text, part) for part in required.parts)


@pytest.mark.slow
@pytest.mark.rg_matrix
@given(
    found=st.lists(samples(), min_size=1, max_size=2),
    options=search_options,
    around=st.tuples(NOISE, NOISE),
    swap=st.booleans(),
)
def test_every_match_of_rg_contains_the_required_literals(
    tmp_path_factory: pytest.TempPathFactory,
    rg: RgBinary,
    found: list[Sample],
    options: dict[str, Any],
    around: tuple[str, str],
    swap: bool,
) -> None:
    patterns = [pattern for pattern, _ in found]
    required = required_literals(patterns, options)  # type: ignore[arg-type]
    body = found[0][1].swapcase() if swap else found[0][0] if options.get("fixed_strings") else found[0][1]
    text = f"{around[0]}{body}{around[1]}".encode()
    file = tmp_path_factory.getbasetemp() / "sample"
    file.write_bytes(text)
    try:
        matched = bool(sync.grep(patterns, cwd=file.parent, paths="sample", rg=rg.path, **options))
    except SearchError:
        event("refused by rg")
        return
    event(f"matched: {matched}, literals: {required is not None}")
    assert not matched or required is None or contains(fold(text), required)


@given(sample=samples(), changes=_CHANGES)
def test_required_literals_never_raises(sample: Sample, changes: list[tuple[int, str]]) -> None:
    required_literals([changed(sample[0], changes)], {})


@pytest.mark.slow
@given(sample=samples(), changes=_CHANGES)
def test_every_match_of_a_mutated_pattern_contains_the_required_literals(
    tmp_path_factory: pytest.TempPathFactory, rg: RgBinary, sample: Sample, changes: list[tuple[int, str]]
) -> None:
    pattern, text = changed(sample[0], changes), sample[1]
    required = required_literals([pattern], {})
    if required is None:
        return
    file = tmp_path_factory.getbasetemp() / "sample"
    file.write_bytes(text.encode())
    argv = [rg.path, "--no-config", "-q", f"--regexp={pattern}", "--", str(file)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30)
    assert done.returncode != 0 or contains(fold(text.encode()), required)

"""Queries: what is derived from their options, and the queries that are made from them."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from ripwrap._ripgrep.command import files_query, in_paths, render, search_query
from ripwrap._ripgrep.process import MAX_FLAG, SHORT_COMMAND, SHORT_TEXTS, split
from ripwrap._ripgrep.query import Mode, Output
from ripwrap.options import SearchOptions, option_hints


@pytest.mark.parametrize(
    ("mode", "options", "output", "counts", "lists_zeros"),
    [
        ("json", {}, "json", False, False),
        ("count", {}, "counts", True, False),
        ("count-matches", {}, "counts", False, False),
        ("files-with-matches", {}, "counts", True, False),
        ("files-without-match", {}, "counts", True, True),
        ("files-with-matches", {"multiline": True}, "paths", False, False),
        ("files-without-match", {"invert_match": True}, "counts", True, True),
    ],
)
def test_query_knows_the_form_of_rgs_output(
    mode: Mode, options: SearchOptions, output: Output, counts: bool, lists_zeros: bool
) -> None:
    query = search_query("x", ".", (), options, mode)
    assert (query.output, query.counts, query.lists_zeros) == (output, counts, lists_zeros)
    assert ("--count" in render(query)) is counts
    assert ("--include-zero" in render(query)) is lists_zeros


def test_options_are_texts_and_later_changes_of_the_callers_list_have_no_effect() -> None:
    globs = ["a"]
    query = search_query("x", ".", (), {"glob": globs, "ignore_file": [Path("b"), "c"], "type": "py"})
    globs.append("d")
    assert query.values("glob") == ("a",)
    assert query.values("ignore_file") == ("b", "c")
    assert query.values("type") == ("py",)
    assert query.values("iglob") == ()


def test_option_of_another_query_takes_precedence() -> None:
    query = search_query("x", ".", (), {"encoding": "utf-8", "max_count": 2, "glob": "a"})
    other = query.with_(encoding="utf-16le").without("glob", "max_depth")
    assert other.options == {"encoding": "utf-16le", "max_count": 2}
    assert query.options["encoding"] == "utf-8"
    assert "--encoding=utf-16le" in render(other)


def test_listing_of_the_files_has_only_the_options_that_choose_files() -> None:
    query = search_query("x", "/tmp", ["a", "-"], {"glob": "*.py", "ignore_case": True, "hidden": False}, "count")
    listing = query.only_files()
    assert render(listing) == render(files_query("/tmp", ["a", "-"], {"glob": "*.py", "hidden": False}))
    assert render(query.types()) == ("--no-config", "--type-list", "--")
    assert render(query.with_(type_add="web:*.vue").types())[1] == "--type-add=web:*.vue"


def test_other_paths_are_checked_and_normalised() -> None:
    query = search_query("x", ".", ["a"], {})
    assert in_paths(query, ["./b", "c"]).paths == ("b", "c")
    assert in_paths(query, ()).paths == (".",)
    with pytest.raises(ValueError, match="NUL"):
        in_paths(query, ["a\0"])


def test_newer_rg_is_needed_only_for_options_that_are_given() -> None:
    assert search_query("x", ".", (), {"replace": "y", "stop_on_nonmatch": False}).needs == (("replace", (15,)),)
    assert search_query("x", ".", (), {"replace": "y"}, "count").needs == ()
    assert search_query("x", ".", (), {"stop_on_nonmatch": True}, "count").needs == (("stop_on_nonmatch", (14,)),)


def test_short_texts_make_a_short_command_line() -> None:
    """`split()` does not make the arguments of a query with short texts, so this must hold for all options together."""
    every: dict[str, Any] = {}
    for name, hint in option_hints().items():
        kind = hint.__origin__
        every[name] = True if kind is bool else 2**31 if name.endswith(("context", "depth", "count")) else "none"
    every |= {"threads": 1024, "engine": "default", "mmap": False, "include_git": False, "iglob": "x"}
    every |= {"max_filesize": 1, "dfa_size_limit": 1, "regex_size_limit": 1}
    given = cast("SearchOptions", every)
    query = replace(search_query(["x"] * 50, ".", ["y"] * 20, given, "count", include_zero=True), stats=True)
    arguments, texts = render(query), [*query.texts()]
    least = sum(map(len, texts)) + MAX_FLAG * len(texts)
    assert sum(map(len, arguments)) < least + SHORT_COMMAND - SHORT_TEXTS
    assert split(query) == (query,)
    assert len(split(search_query("x", ".", ["y" * 4000] * 600, {}))) > 1

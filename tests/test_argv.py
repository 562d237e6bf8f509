"""Options become arguments; nothing else does."""

from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ripwrap._rg.argv import files_command, search_command
from ripwrap.options import FileOptions, Flag, SearchOptions

DEFAULTS = ("--glob=!.git", "--hidden", "--follow", "--no-require-git")


def search_flags(**options: Any) -> tuple[str, ...]:
    """The arguments that options make, between what always stands before and after."""
    arguments = search_command("x", ".", (), options).arguments  # type: ignore[arg-type]
    assert arguments[:3] == ("--no-config", "--line-buffered", "--json")
    assert arguments[-3:] == ("--regexp=x", "--", ".")
    return arguments[3:-3]


def test_defaults_are_the_seeds() -> None:
    assert search_flags() == DEFAULTS
    assert files_command(".", (), {}).arguments == (
        "--no-config",
        "--line-buffered",
        "--files",
        "--null",
        *DEFAULTS,
        "--",
        ".",
    )


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"type": "py"}, ["--type=py"]),
        ({"type": ["py", "c"], "type_not": ("js",)}, ["--type=py", "--type=c", "--type-not=js"]),
        ({"no_ignore": True, "no_ignore_vcs": True}, ["--no-ignore", "--no-ignore-vcs"]),
        ({"max_depth": 0, "max_count": 3}, ["--max-depth=0", "--max-count=3"]),
        ({"max_filesize": "50K"}, ["--max-filesize=50K"]),
        ({"max_filesize": 1024}, ["--max-filesize=1024"]),
        ({"ignore_case": True, "case_sensitive": False}, ["--ignore-case"]),
        ({"multiline": True, "multiline_dotall": True}, ["--multiline", "--multiline-dotall"]),
        ({"before_context": 1, "after_context": 2, "context": 3}, ["--before-context=1", "--after-context=2"]),
        ({"before_context": 1, "context": 3}, ["--before-context=1", "--after-context=3"]),
        ({"after_context": 0, "context": 3}, ["--before-context=3", "--after-context=0"]),
        ({"encoding": "utf-16le", "replace": "$1"}, ["--encoding=utf-16le", "--replace=$1"]),
        ({"sort": "path", "threads": 1}, ["--sort=path", "--threads=1"]),
        ({"replace": ""}, ["--replace="]),
        ({"ignore_file": Path("a")}, ["--ignore-file=a"]),
        ({"ignore_file": ["a", Path("-b")]}, ["--ignore-file=a", "--ignore-file=-b"]),
        ({"type_add": "web:*.vue", "type_clear": ["js"]}, ["--type-add=web:*.vue", "--type-clear=js"]),
        ({"mmap": True}, ["--mmap"]),
        ({"mmap": False}, ["--no-mmap"]),
        ({"engine": "auto", "regex_size_limit": "1G", "dfa_size_limit": 5}, ["--engine=auto", "--regex-size-limit=1G"]),
    ],
)
def test_an_option_is_the_flag_of_its_name(options: dict[str, Any], flags: list[str]) -> None:
    assert set(flags) <= set(search_flags(**options))


@pytest.mark.parametrize(("option", "flag"), [("hidden", "--hidden"), ("follow", "--follow")])
def test_false_turns_a_default_off(option: str, flag: str) -> None:
    assert flag not in search_flags(**{option: False})
    assert "--no-require-git" not in search_flags(no_require_git=False)


def test_every_boolean_option_makes_its_flag_when_true_and_nothing_when_false() -> None:
    for key, hint in get_type_hints(SearchOptions, include_extras=True).items():
        if hint.__origin__ is bool and key not in ("include_git", "mmap"):
            flag = "--" + key.replace("_", "-")
            assert flag in search_flags(**{key: True})
            assert flag not in search_flags(**{key: False})


def test_every_option_is_declared_with_a_help_text() -> None:
    for hint in get_type_hints(SearchOptions, include_extras=True).values():
        (flag,) = (mark for mark in hint.__metadata__ if isinstance(mark, Flag))
        assert flag.help.endswith(".")


def test_file_options_are_search_options_too() -> None:
    shared = get_type_hints(FileOptions, include_extras=True).items()
    assert shared <= get_type_hints(SearchOptions, include_extras=True).items()


def test_git_is_left_out_after_all_globs_of_the_caller() -> None:
    flags = search_flags(glob=["*", "!x"], iglob="*")
    assert [flag for flag in flags if "glob" in flag] == [
        "--glob=*",
        "--glob=!x",
        "--iglob=*",
        "--glob=!.git",
        "--iglob=!.git",
    ]
    assert "--glob=!.git" not in search_flags(include_git=True, iglob="*")


def test_several_patterns_are_several_regexps() -> None:
    assert search_command(["a", "b"], ".", (), {}).arguments[-4:] == ("--regexp=a", "--regexp=b", "--", ".")


@pytest.mark.fact(1)
def test_paths_stand_behind_a_double_dash() -> None:
    arguments = search_command("x", ".", ["--pre=x", Path("src"), "-"], {}).arguments
    assert arguments[arguments.index("--") :] == ("--", "--pre=x", "src", "./-")
    assert search_command("x", ".", "src", {}).arguments[-1] == "src"
    given = [".//", "./.", ".", "././/a//b", "./-", "..", "./../x", ".hidden", "/./x"]
    wanted = (".", ".", ".", "a//b", "./-", "..", "../x", ".hidden", "/./x")
    assert files_command(".", given, {}).arguments[-len(wanted) :] == wanted


@given(st.text(), st.lists(st.text(min_size=1)), st.lists(st.text()))
@pytest.mark.fact(4)
def test_no_string_ever_becomes_a_flag(pattern: str, paths: list[str], globs: list[str]) -> None:
    options: SearchOptions = {"glob": globs, "type": globs, "replace": pattern}
    if "\0" in "".join([pattern, *paths, *globs]):
        with pytest.raises(ValueError, match="NUL"):
            search_command(pattern, ".", paths, options)
        return
    command = search_command(pattern, ".", paths, options)
    flags = command.arguments[: command.arguments.index("--")]
    known = {"--no-config", "--line-buffered", "--json", "--hidden", "--follow", "--no-require-git"}
    for flag in flags:
        assert flag in known or flag.startswith(("--glob=", "--type=", "--replace=", "--regexp="))
    assert len(command.arguments) == len(flags) + 1 + max(len(paths), 1)


@pytest.mark.parametrize(
    "options",
    [
        {"max_cuont": 1},
        {"max_count": "1"},
        {"max_count": -1},
        {"max_count": True},
        {"hidden": 1},
        {"glob": 1},
        {"glob": ["*.py", 1]},
        {"sort": "size"},
        {"max_filesize": "10T"},
        {"encoding": None},
        {"engine": "perl"},
        {"ignore_file": b"x"},
        {"ignore_file": 1},
        {"file": "patterns"},
        {"search_zip": True},
        {"pre": "program"},
        {"json": True},
    ],
)
@pytest.mark.fact(5)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValidationError) as caught:
        search_command("x", ".", (), options)  # type: ignore[arg-type]
    assert all(error["loc"][0] == name for error in caught.value.errors())


def test_an_option_that_is_spelled_much_like_another_is_told_so() -> None:
    with pytest.raises(ValidationError) as caught:
        search_command("x", ".", (), {"max_cuont": 1, "ignorecase": True, "zzz": 1})  # type: ignore[typeddict-unknown-key]
    assert sorted(caught.value.__notes__) == [
        "ignorecase is no option; did you mean ignore_case?",
        "max_cuont is no option; did you mean max_count?",
    ]


def test_search_options_are_no_file_options() -> None:
    with pytest.raises(ValidationError, match="ignore_case"):
        files_command(".", (), {"ignore_case": True})  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("pattern", "cwd", "paths", "options"),
    [("a\0b", ".", (), {}), ("x", ".\0", (), {}), ("x", ".", ("a\0",), {}), ("x", ".", (), {"glob": "\0"})],
)
def test_a_nul_is_refused(pattern: str, cwd: str, paths: tuple[str, ...], options: Any) -> None:
    with pytest.raises(ValueError, match="NUL"):
        search_command(pattern, cwd, paths, options)


def test_what_rg_would_misunderstand_is_refused() -> None:
    with pytest.raises(ValueError, match="no pattern"):
        search_command([], ".", (), {})
    with pytest.raises(ValueError, match="path is empty"):
        search_command("x", ".", [""], {})
    with pytest.raises(TypeError, match="not bytes"):
        search_command([b"x"], ".", (), {})  # type: ignore[list-item]
    with pytest.raises(TypeError, match="not bytes"):
        search_command("x", ".", [b"x"], {})  # type: ignore[list-item]

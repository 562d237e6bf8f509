"""Arguments of rg: each option becomes its flag, and no other string becomes one."""

import itertools
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import ripwrap
from ripwrap import sync
from ripwrap._ripgrep.command import _is_plain, _validate, files_query, normalise_path, render, search_query
from ripwrap._text import suggest
from ripwrap.options import FileOptions, Flag, SearchOptions, option_hints
from support.paths import native

DEFAULTS = ("--glob=!.git", "--glob=!.ripgrep/", "--hidden", "--follow", "--no-require-git")


def search_flags(**options: Any) -> tuple[str, ...]:
    """Return the arguments that options add between the fixed ones."""
    arguments = render(search_query("x", ".", (), options))  # type: ignore[arg-type]
    assert arguments[:2] == ("--no-config", "--json")
    assert arguments[-3:] == ("--regexp=x", "--", ".")
    return arguments[2:-3]


def test_default_options_become_these_arguments() -> None:
    assert search_flags() == DEFAULTS
    assert render(files_query(".", (), {})) == (
        "--no-config",
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
def test_option_becomes_the_flag_of_the_same_name(options: dict[str, Any], flags: list[str]) -> None:
    assert set(flags) <= set(search_flags(**options))


@pytest.mark.parametrize(("option", "flag"), [("hidden", "--hidden"), ("follow", "--follow")])
def test_false_turns_a_default_off(option: str, flag: str) -> None:
    assert flag not in search_flags(**{option: False})
    assert "--no-require-git" not in search_flags(no_require_git=False)


def test_boolean_options_add_their_flag_only_when_true() -> None:
    for key, hint in option_hints().items():
        if hint.__origin__ is bool and key not in ("include_git", "mmap", "case_sensitive"):
            flag = "--" + key.replace("_", "-")
            assert flag in search_flags(**{key: True})
            assert flag not in search_flags(**{key: False})


def test_every_option_is_declared_with_a_help_text() -> None:
    for hint in option_hints().values():
        (flag,) = (mark for mark in hint.__metadata__ if isinstance(mark, Flag))
        assert 0 < len(flag.help) <= 60 and not flag.help.endswith(".")


def test_file_options_are_a_subset_of_search_options() -> None:
    shared = option_hints(FileOptions).items()
    assert shared <= option_hints().items()


def test_folders_of_git_and_rg_are_excluded_after_the_callers_globs() -> None:
    """`.ripgrep/` is excluded together with `.git`."""
    flags = search_flags(glob=["*", "!x"], iglob="*")
    assert [flag for flag in flags if "glob" in flag] == [
        "--glob=*",
        "--glob=!x",
        "--iglob=*",
        "--glob=!.git",
        "--glob=!.ripgrep/",
        "--iglob=!.git",
        "--iglob=!.ripgrep/",
    ]
    assert [flag for flag in search_flags(include_git=True, iglob="*") if "glob" in flag] == ["--iglob=*"]


def test_each_pattern_becomes_one_regexp_flag() -> None:
    assert render(search_query(["a", "b"], ".", (), {}))[-4:] == ("--regexp=a", "--regexp=b", "--", ".")


@pytest.mark.fact(1)
def test_paths_follow_a_double_dash() -> None:
    arguments = render(search_query("x", ".", ["--pre=x", Path("src"), "-"], {}))
    assert arguments[arguments.index("--") :] == ("--", "--pre=x", "src", native("./-"))
    assert render(search_query("x", ".", "src", {}))[-1] == "src"
    given = [".//", "./.", ".", "././/a//b", "./-", "..", "./../x", ".hidden", "/./x"]
    wanted = (".", ".", ".", "a//b", "./-", "..", "../x", ".hidden", "/./x")
    assert render(files_query(".", given, {}))[-len(wanted) :] == tuple(map(native, wanted))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        *(("-", r".\-"), ("./-", r".\-"), (r".\-", r".\-"), ("sub/", "sub\\"), ("Z:/a/sub", r"Z:\a\sub")),
        *((r"Z:\a/sub", r"Z:\a\sub"), ("//host/share", r"\\host\share"), (".//a/b", r"a\b"), (r".\./a", "a")),
        *(("./", "."), (r".\.", "."), ("../a", r"..\a"), (".hidden/x", r".hidden\x")),
    ],
)
def test_paths_have_one_kind_of_separator_on_windows(given: str, wanted: str) -> None:
    assert normalise_path(given, "\\") == wanted
    assert normalise_path(wanted, "\\") == wanted


def test_backslash_is_part_of_a_name_on_posix() -> None:
    assert normalise_path(r".\a", "/") == r".\a"


@given(st.text(), st.lists(st.text(min_size=1)), st.lists(st.text()))
@pytest.mark.fact(4)
def test_no_string_ever_becomes_a_flag(pattern: str, paths: list[str], globs: list[str]) -> None:
    options: SearchOptions = {"glob": globs, "type": globs, "replace": pattern}
    if "\0" in "".join([pattern, *paths, *globs]):
        with pytest.raises(ValueError, match="NUL"):
            search_query(pattern, ".", paths, options)
        return
    arguments = render(search_query(pattern, ".", paths, options))
    flags = arguments[: arguments.index("--")]
    known = {"--no-config", "--json", "--hidden", "--follow", "--no-require-git"}
    for flag in flags:
        assert flag in known or flag.startswith(("--glob=", "--type=", "--replace=", "--regexp="))
    assert len(arguments) == len(flags) + 1 + max(len(paths), 1)


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
        {"encoding": 8},
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
def test_invalid_option_error_names_the_option(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValidationError) as caught:
        search_query("x", ".", (), options)  # type: ignore[arg-type]
    assert all(error["loc"][0] == name for error in caught.value.errors())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_cuont", "max_count"),
        ("ignorecase", "ignore_case"),
        ("case_insensitive", "ignore_case"),
        ("path", "paths"),
        ("include", "glob"),
        ("file_pattern", "glob"),
        ("max_results", "limit"),
        ("max_matches", "limit"),
        ("literal", "fixed_strings"),
        ("context_lines", "context"),
        ("include_hidden", "hidden"),
        ("exclude", 'glob="!…"'),
        ("query", "pattern"),
    ],
)
def test_unknown_option_error_suggests_the_right_one(name: str, meant: str) -> None:
    with pytest.raises(ValidationError) as caught:
        search_query("x", ".", (), {name: "y", "zzz": 1})  # type: ignore[misc]
    assert f"unknown option {name}; did you mean {meant}?" in str(caught.value)
    assert "unknown option zzz; see ripwrap.SearchOptions [" in str(caught.value)
    assert [(error["type"], error["loc"]) for error in caught.value.errors()] == [
        ("extra_forbidden", (name,)),
        ("extra_forbidden", ("zzz",)),
    ]


def test_opposite_option_is_not_suggested() -> None:
    """For `--files-without-match`, the command line suggested `--files-with-matches`."""
    assert suggest("files_without_match", ["files_with_matches", "files_without_matches"]) == "files_without_matches"
    assert suggest("files_without_match", ["files_with_matches"]) == ""


def test_unknown_option_error_of_files_suggests_only_its_own_arguments() -> None:
    with pytest.raises(ValidationError, match=r"did you mean paths\?"):
        ripwrap.files(path="x")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match=r"did you mean cwd\?"):
        sync.tree_text(path="x")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match=r"unknown option ignore_case; see ripwrap\.FileOptions \["):
        ripwrap.files(ignore_case=True)  # type: ignore[call-arg]


@given(st.lists(st.text("ab", min_size=1, max_size=9), min_size=1), st.integers(0, 60))
def test_batches_have_every_path_once_in_order_and_fit_on_a_command_line(paths: list[str], spare: int) -> None:
    """The paths of one call need as few command lines as possible."""
    command = files_query(".", paths, {"hidden": False})
    fixed = render(files_query(".", (), {"hidden": False}))[:-1]
    batches = list(command.batches(spare, len))
    assert [path for batch in batches for path in batch.paths] == paths
    for batch, after in itertools.pairwise(batches):
        assert len("".join((*batch.paths, after.paths[0]))) > spare  # the next path would not fit
    for batch in batches:
        assert render(batch)[: len(fixed)] == fixed
        assert len(batch.paths) == 1 or sum(map(len, batch.paths)) <= spare


@pytest.mark.parametrize(
    ("options", "sorts"),
    [
        ({}, False),
        ({"sort": "path"}, False),
        ({"sort": "modified"}, True),
        ({"sortr": "path"}, True),
        ({"sort": "modified", "sortr": "none"}, False),
        ({"sort": "none", "sortr": "created"}, True),
    ],
)
def test_command_knows_whether_rg_sorts_all_files_together(options: Any, sorts: bool) -> None:
    assert files_query(".", ("--sort=modified",), options).sorts_all is sorts


def test_threads_above_1024_are_refused() -> None:
    """rg takes all memory for 99,999,999 threads (22 GB)."""
    assert "--threads=1024" in render(files_query(".", (), {"threads": 1024}))
    for threads in (1025, 99_999_999):
        with pytest.raises(ValidationError, match=f"threads must be .*1024.*, got {threads}") as caught:
            ripwrap.search("x", threads=threads)
        assert caught.value.error_count() == 1
        with pytest.raises(ValidationError, match="1024"):
            ripwrap.files(threads=threads)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"max_filesize": "1MB"},
            "max_filesize must be a number of bytes, or a string such as '50K', '80M' or '1G', got '1MB'",
        ),
        ({"type": 5}, "type must be a string or a sequence of strings, got 5"),
        ({"glob": ["a", 1]}, "glob must be a string or a sequence of strings, got ['a', 1]"),
        ({"ignore_file": 1}, "ignore_file must be a path or a sequence of paths, got 1"),
        ({"max_count": -1}, "max_count must be an int, 0 or more, got -1"),
        ({"hidden": "yes"}, "hidden must be True or False, got 'yes'"),
        ({"replace": 1}, "replace must be a string, got 1"),
        ({"engine": "re2"}, "engine must be 'default', 'pcre2' or 'auto', got 're2'"),
    ],
)
def test_invalid_option_error_is_one_sentence(options: Any, says: str) -> None:
    """Pydantic reported an error for each member of a union."""
    with pytest.raises(ValidationError) as caught:
        search_query("x", ".", (), options)
    assert [error["msg"] for error in caught.value.errors()] == [says]
    assert "pydantic.dev" not in str(caught.value)


def test_problems_beside_an_unknown_option_are_reported_too() -> None:
    options: Any = {"max_count": "3", "max_depth": -1, "sort": "size", "ignore_file": 1, "glob": 1, "type": b"x"}
    with pytest.raises(ValidationError) as alone:
        search_query("x", ".", (), options)
    options["zzz"] = 1
    with pytest.raises(ValidationError) as caught:
        search_query("x", ".", (), options)
    assert [(error["loc"], error["msg"]) for error in caught.value.errors()] == [
        *((error["loc"], error["msg"]) for error in alone.value.errors()),
        (("zzz",), "unknown option zzz; see ripwrap.SearchOptions"),
    ]


def test_file_operations_reject_search_options() -> None:
    with pytest.raises(ValidationError, match="ignore_case"):
        files_query(".", (), {"ignore_case": True})  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("pattern", "cwd", "paths", "options"),
    [("a\0b", ".", (), {}), ("x", ".\0", (), {}), ("x", ".", ("a\0",), {}), ("x", ".", (), {"glob": "\0"})],
)
def test_nul_in_any_argument_is_rejected(pattern: str, cwd: str, paths: tuple[str, ...], options: Any) -> None:
    with pytest.raises(ValueError, match="NUL"):
        search_query(pattern, cwd, paths, options)


def test_empty_and_bytes_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="no pattern"):
        search_query([], ".", (), {})
    with pytest.raises(ValueError, match="path is empty"):
        search_query("x", ".", [""], {})
    with pytest.raises(TypeError, match="got bytes"):
        search_query([b"x"], ".", (), {})  # type: ignore[list-item]
    with pytest.raises(TypeError, match="got bytes"):
        search_query("x", ".", [b"x"], {})  # type: ignore[list-item]


VALUES: list[Any] = [
    *(
        True,
        False,
        0,
        1,
        1024,
        1025,
        -1,
        1.0,
        None,
        "",
        "a",
        "é",
        "\ud800",
        "50K",
        "K",
        "none",
        "path",
        "pcre2",
        "auto",
    ),
    *([], (), ["a"], ("a", "b"), ["a", 1], ["\ud800"], {"a"}, b"a", Path("a"), [Path("a")], iter("a")),
]


@pytest.mark.parametrize("kind", [FileOptions, SearchOptions])
def test_options_are_checked_with_or_without_pydantic_alike(kind: Any) -> None:
    """Each option with values of each type: the same result, of the same types, or an error in both ways."""
    names, adapter, plain = get_type_hints(kind), TypeAdapter(kind), 0
    for name, hint in option_hints(kind).items():
        for value in VALUES:
            try:
                expected = adapter.validate_python({name: value})
            except ValidationError:
                assert not _is_plain(value, hint), (name, value)
                continue
            checked = _validate(kind, names, {name: value})
            assert repr(checked) == repr(expected if value is not None else {}) or not isinstance(
                value, (str, int, list, tuple)
            )
            plain += _is_plain(value, hint)
    assert plain > 2 * len(names)
    several = dict(reversed([("glob", ["*.py"]), ("hidden", True), ("sort", "path"), ("threads", 1)]))
    assert list(_validate(kind, names, several)) == list(adapter.validate_python(several))

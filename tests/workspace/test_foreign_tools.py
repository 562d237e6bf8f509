"""Tools of other programs: each argument that they publish is accepted, or the error names what does the same.

`tests/data/foreign_tools.json` has the names and types that the programs publish, and the version of each.
"""

import json
import re
import subprocess
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import Workspace, sync
from ripwrap._text import ALIASES, WORDS
from ripwrap.binary import RgBinary
from ripwrap.workspace import arguments as module
from ripwrap.workspace.arguments import MAX_NUMBER, find_tool, parse_arguments, snake_case
from ripwrap.workspace.tool import tools_of

DATA = json.loads((Path(__file__).parents[1] / "data" / "foreign_tools.json").read_text("utf-8"))
TOOLS = tools_of(Workspace)
PUBLISHED = [
    (program, tool, argument, kind)
    for program, about in DATA.items()
    for tool, taken in about["tools"].items()
    for argument, kind in taken.items()
]
NAMED = {
    *(
        "max_matches_per_file",
        "respect_gemini_ignore",
        "pages",
        "mode",
        "indentation",
        "include_kinds",
        "exclude_kinds",
    ),
    *("include_body", "include_info", "substring_matching", "depth", "max_answer_chars", "occurrence_ids", "edits"),
    *("containing_symbol_name_path", "restrict_search_to_code_files", "expected_count", "old_string", "new_string"),
    *("include", "exclude", "exclude_patterns", "regex", "offset", "sort_by", "recursive"),
    *("replace_all", "allow_multiple", "allow_multiple_occurrences", "use_default_excludes"),
}
"""Arguments of which some value cannot be honoured."""

VALUES: dict[str, tuple[Any, ...]] = {
    "string": ("a.py", "x"),
    "integer": (1, 3),
    "boolean": (True, False),
    "array": (["a.py"],),
    "object": ({"respect_git_ignore": True},),
}
TEXTS = {"output_mode": ("content", "count"), "mode": ("literal", "regex", "slice"), "sortBy": ("name", "size")}


def needed(tool: Any, argument: str) -> dict[str, Any]:
    """Return values for the arguments that a tool needs besides one."""
    fields = tool.arguments.model_fields.items()
    own = module._names(tool.arguments).get(snake_case(argument))
    return {name: "a.py" for name, field in fields if field.is_required() and name != own}


def verdict(tool: Any, argument: str, value: Any) -> str:
    """Return the error for an argument; empty if it is accepted."""
    try:
        parse_arguments(tool.arguments, {**needed(tool, argument), argument: value})
    except ValueError as error:
        return str(error)
    return ""


def names_an_own_argument(tool: Any, said: str) -> bool:
    """Return True if an error names an argument of the tool to use instead, beside the list of all."""
    hint = said.partition("; ")[2].partition("allowed are")[0]
    return any(re.search(rf"\b{name}\b", hint) for name in tool.arguments.model_fields)


@pytest.mark.parametrize(("program", "name", "argument", "kind"), PUBLISHED)
def test_published_argument_is_accepted_or_named(program: str, name: str, argument: str, kind: str) -> None:
    for value in TEXTS.get(argument, VALUES[kind]):
        tool = find_tool(name, TOOLS.values(), {argument: value})
        said = verdict(tool, argument, value)
        if said:
            assert snake_case(argument) in NAMED and names_an_own_argument(tool, said), said


def test_table_has_eight_programs_and_their_arguments() -> None:
    eight = {"Claude Code", "Gemini CLI", "Codex", "Copilot", "Cursor", "Cline", "Serena", "opencode"}
    assert eight < DATA.keys()
    assert all(re.search(r"\d", about["source"]) for about in DATA.values())
    accepted = [
        one
        for one in PUBLISHED
        if not any(
            verdict(find_tool(one[1], TOOLS.values(), {one[2]: value}), one[2], value)
            for value in TEXTS.get(one[2], VALUES[one[3]])
        )
    ]
    assert len(PUBLISHED) >= 218 and len(accepted) >= 166


@pytest.mark.parametrize(
    ("tool", "sent", "means"),
    [
        ("read", {"target_file": "a"}, {"path": "a"}),
        ("read", {"absolute_path": "a", "start_line": -5}, {"path": "a", "tail": 5}),
        ("read", {"filePath": "a", "offset": "-5"}, {"path": "a", "tail": 5}),
        ("read_file", {"path": "a", "start_line_one_indexed": 3, "should_read_entire_file": False},
         {"path": "a", "start_line": 3}),
        ("list_dir", {"relative_workspace_path": "a", "explanation": "z"}, {"path": "a"}),
        ("list_files", {"path": "a", "recursive": False}, {"path": "a", "max_depth": 1}),
        ("list_files", {"path": "a", "recursive": "true"}, {"path": "a"}),
        ("list_directory", {"file_filtering_options": {"respect_git_ignore": False}}, {"include_ignored": True}),
        ("glob", {"glob_pattern": "*.py"}, {"pattern": "*.py"}),
        ("glob", {"file_pattern": "*.py", "respect_git_ignore": False}, {"pattern": "*.py", "include_ignored": True}),
        ("tree", {"max_depth": 2}, {"max_depth": 2}),
        ("tree", {"depth": 2}, {"max_depth": 2}),
        ("grep_search", {"query": "x", "isRegexp": False}, {"pattern": "x", "fixed_strings": True}),
        ("grep_search", {"query": "x", "isRegexp": True}, {"pattern": "x"}),
        ("grep", {"pattern": "x", "total_max_matches": 4, "after": 2},
         {"pattern": "x", "max_matches": 4, "after_context": 2}),
        ("grep", {"pattern": "x", "-P": True, "glob_pattern": "*.c"}, {"pattern": "x", "file_pattern": "*.c"}),
        ("grep", {"pattern": "x", "-w": True}, {"pattern": r"\bx\b"}),
        ("grep", {"pattern": "x|äb", "--word-regexp": "true"}, {"pattern": r"\b(?:x|äb)\b"}),
        ("grep", {"pattern": "x", "whole_word": True, "fixed_strings": True}, {"pattern": r"\bx\b"}),
        ("grep", {"pattern": "x.", "-w": False}, {"pattern": "x."}),
        ("grep", {"pattern": "x", "path": []}, {"pattern": "x"}),
        ("read_many_files", {"include": ["a.py"]}, {"path": "a.py"}),
        ("codebase_search", {"query": "x", "target_directories": [], "search_only_prs": False}, {"query": "x"}),
        ("find_related", {"file_path": "a.py", "line": 3, "top_k": 5}, {"like": "a.py:3", "limit": 5}),
        ("grep", {"pattern": "x", "--ignore-case": True}, {"pattern": "x", "case_insensitive": True}),
        ("grep", {"pattern": "x", "respect_git_ignore": False, "include_ignored": False}, {"pattern": "x"}),
        ("grep_content", {"pattern": "x", "head_limit": 0}, {"pattern": "x", "max_matches": MAX_NUMBER}),
        ("find_symbol", {"name_path": "A", "include_kinds": [], "max_answer_chars": -1}, {"name": "A"}),
        ("list_code_usages", {"symbolName": "A", "exclude": "*.c"}, {"name": "A", "file_pattern": "!*.c"}),
        ("references", {"symbol": "A"}, {"name": "A"}),
        ("replace_content", {"needle": "x", "repl": "y", "mode": "literal"},
         {"pattern": "x", "replacement": "y", "fixed_strings": True}),
        ("replace_in_files", {"needle": "x", "repl": "y", "dry_run": False},
         {"pattern": "x", "replacement": "y", "apply": True}),
    ],
)  # fmt: skip
def test_habit_means_an_argument(tool: str, sent: dict[str, Any], means: dict[str, Any]) -> None:
    model = find_tool(tool, TOOLS.values(), sent).arguments
    read = parse_arguments(model, sent)
    plain = model.model_construct(**means)
    unlike = {name for name in model.model_fields if getattr(read, name) != getattr(plain, name)}
    assert unlike <= {"context_lines"}


@pytest.mark.parametrize(
    ("tool", "sent", "says"),
    [
        ("grep", {"pattern": "x.y", "-w": True}, "before and after the word in pattern"),
        ("grep", {"pattern": "x|y", "--word-regexp": True, "-F": True}, "before and after the word in pattern"),
        ("codebase_search", {"query": "x", "search_only_prs": True}, "history searches the texts of commits"),
        ("grep", {"pattern": "x", "-v": True}, "read_file shows all lines"),
        ("grep", {"pattern": "x", "-L": True}, "find_files lists all files of path"),
        ("glob", {"pattern": "x", "recursive": False}, "a pattern of find_files that begins with a slash"),
        ("list_dir", {"offset": 9}, "a larger limit shows more"),
        ("edit", {"pattern": "x", "replacement": "y", "replace_all": False}, "all that pattern matches is replaced"),
        ("edit", {"old_string": "x"}, "pass the old text as pattern, with fixed_strings=True"),
        ("read_many_files", {"include": ["*.py"]}, "find_files finds files; pass their paths as path"),
    ],
)
def test_what_cannot_be_honoured_names_what_does_it(tool: str, sent: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=r"^unknown argument ") as caught:
        parse_arguments(find_tool(tool, TOOLS.values(), sent).arguments, sent)
    assert says in str(caught.value)


UNKNOWN = sorted({*module._INSTEAD, *module._MEANS, *ALIASES, *WORDS, *chain(*ALIASES.values()), *WORDS.values()})


@given(
    st.sampled_from([*TOOLS.values()]), st.sampled_from(UNKNOWN) | st.text(max_size=12), st.sampled_from(["x", True])
)
def test_suggestion_is_an_argument_of_that_very_tool(tool: Any, name: str, value: Any) -> None:
    said = verdict(tool, name, value)
    if said.startswith("unknown argument"):
        own = tool.arguments.model_fields
        hint = said.rpartition("allowed are")[0] or said.partition("; ")[2]
        meant = re.findall(r"did you mean (\S+)\?", hint)
        assert set(meant) <= own.keys()
        for argument in {name for one in TOOLS.values() for name in one.arguments.model_fields} - own.keys():
            for found in re.finditer(rf"\b{argument}\b(?!\.)", hint.replace(repr(name), "")):
                # Other tools have arguments, too, and are named before them.
                before = hint[: found.start()]
                assert re.search(r"\b(?:find_files|ls|read_file|grep_content|replace_content)\b", before) or (
                    argument in WORDS_OF_TEXTS
                ), (argument, said)


WORDS_OF_TEXTS = {
    "name",
    "path",
    "limit",
    "offset",
    "sort",
    "tail",
    "head",
    "pattern",
    "force",
    "query",
    "anchor",
    "apply",
}
"""Arguments that are words of a sentence, too."""


@pytest.mark.anyio
@pytest.mark.parametrize("made", [Workspace, sync.Workspace])
async def test_names_of_other_programs_work_as_python_arguments(plant: Callable[..., Path], made: Any) -> None:
    workspace = made(plant({"src/a.py": "needle = 1\n", "b.py": "needle = 2\n"}))

    async def text(answer: Any) -> str:
        return str(answer if isinstance(answer, str) or not hasattr(answer, "__await__") else await answer)

    plain = await text(workspace.grep_content("needle", "src"))
    assert "src/a.py" in plain and "b.py" not in plain
    assert await text(workspace.grep_content("needle", search_path="src")) == plain
    assert await text(workspace.grep_content_result("needle", search_path="src")) == plain
    assert await text(workspace.grep_content("needle", serch_path="src")) == (
        "Error: unknown argument 'serch_path'; did you mean path? "
        f"allowed are {', '.join(TOOLS['grep_content'].arguments.model_fields)}"
    )
    read = await text(workspace.call("read_multiple_files", {"paths": ["b.py", "src/a.py"]}))
    assert "File: b.py" in read and "File: src/a.py" in read
    assert "Allowed directory: " in await text(workspace.call("list_allowed_directories"))
    assert "b.py" in await text(workspace.call("get_file_info", {"path": "b.py"}))


@pytest.mark.parametrize("pattern", ["ab", "a|ab", "ab|a", "ä", "a_b|x1", "B"])
@pytest.mark.parametrize("ignores", [False, True])
def test_whole_words_are_those_of_rg(plant: Callable[..., Path], rg: RgBinary, pattern: str, ignores: bool) -> None:
    words = ["a", "ab", "abb", "a_b", "ä", "äb", "x1", "x12", "b", "B", "a.ab", "(ab)", "-ab-", "aab"]
    root = plant({"a.txt": "".join(f"{one} {two}\n" for one in words for two in words)})
    found = sync.Workspace(root, rg=rg, max_chars=100_000).call(
        "grep", {"pattern": pattern, "-w": True, "-i": ignores, "context_lines": 0, "max_matches": 1_000}
    )
    command = [str(rg.path), "--no-config", "-nw", *(["-i"] if ignores else []), "-e", pattern, str(root / "a.txt")]
    said = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    assert re.findall(r"^  (\d+):", found, re.MULTILINE) == re.findall(r"^(\d+):", said, re.MULTILINE)

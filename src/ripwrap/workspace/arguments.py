"""Arguments of the tools: a Pydantic model for each tool, and functions that parse what a language model sends; no I/O.

Each `…Arguments` model holds the types, defaults and bounds of one tool. The methods of `Workspace` repeat types and
defaults, because frameworks read signatures; a test compares models and methods. The descriptions are only in the
docstrings of these methods; `describe_tools()` and `schemas()` read the descriptions from there.

Language models do not always send the declared arguments. They use the names of rg's flags, argument names of tools
that they were trained on, numbers as strings, and `null`. `parse_arguments()` accepts all of these. For anything else,
it raises an error of one line, which says what is allowed.
"""

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from pydantic import (
    AliasChoices,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError
from typing_extensions import TypedDict

from ripwrap._text import cut_text
from ripwrap.errors import Hint
from ripwrap.options import ALIASES, suggest
from ripwrap.workspace.anchors import MAX_QUOTED_CHARS, SEPARATOR, parse_anchor

OutputMode: TypeAlias = Literal["content", "files_with_matches", "count"]
FileOrder: TypeAlias = Literal["path", "newest"]
Expand: TypeAlias = Literal["none", "definition"]
EntryType: TypeAlias = Literal["file", "directory", "any"]

MAX_NUMBER = 1_000_000
"""Largest number that a tool accepts, except for line numbers."""

MAX_ARGUMENT_CHARS = 20_000
"""Maximum number of characters of the texts in the arguments of one call, all together.

The work that a tool does with a text, before rg or a worker thread does the rest, is linear in its length. At this
length it takes a few milliseconds.
"""

MAX_LINE_NUMBER = 1_000_000_000
"""Largest value of `start_line` and `end_line`; the numbers in `ranges` may have up to 18 digits."""


class _VisibilityOptions(TypedDict, total=False):
    include_hidden: bool
    include_ignored: bool


class GrepContentOptions(_VisibilityOptions, total=False):
    """Options of `grep_content()` besides `pattern` and `path`."""

    context_lines: int
    before_context: int
    after_context: int
    max_matches: int
    max_files: int
    file_pattern: str
    file_type: str
    case_insensitive: bool
    fixed_strings: bool
    multiline: bool
    output_mode: OutputMode
    offset: int
    sections: bool
    expand: Expand
    rev: str
    inside: str


class FindFilesOptions(_VisibilityOptions, total=False):
    """Options of `find_files()` besides `pattern` and `path`."""

    entry_type: EntryType
    sort: FileOrder
    limit: int
    offset: int


class LsOptions(_VisibilityOptions, total=False):
    """Options of `ls()` besides `path`."""

    ignore: list[str]
    limit: int
    max_depth: int


class TreeOptions(_VisibilityOptions, total=False):
    """Options of `tree()` besides `path`."""

    limit: int


class CodebaseSearchOptions(TypedDict, total=False):
    """Options of `codebase_search()` besides `query` and `path`."""

    limit: int


class ReadFileOptions(TypedDict, total=False):
    """Options of `read_file()` besides `path`, `start_line` and `end_line`."""

    ranges: str


class ReplaceContentOptions(_VisibilityOptions, total=False):
    """Options of `replace_content()` besides `pattern`, `replacement` and `path`."""

    apply: bool
    file_pattern: str
    file_type: str
    case_insensitive: bool
    fixed_strings: bool
    multiline: bool


TOOL_NAMES = {
    "grep": "grep_content",
    "ripgrep": "grep_content",
    "rg": "grep_content",
    "grep_search": "grep_content",
    "search_file_content": "grep_content",
    "search_content": "grep_content",
    "glob": "find_files",
    "search_files": "find_files",
    "file_search": "find_files",
    "find_by_name": "find_files",
    "list_files": "ls",
    "read_folder": "ls",
    "list": "ls",
    "list_dir": "ls",
    "list_directory": "ls",
    "directory_tree": "tree",
    "semantic_search": "codebase_search",
    "search_codebase": "codebase_search",
    "search_code": "codebase_search",
    "code_search": "codebase_search",
    "read": "read_file",
    "view": "read_file",
    "view_file": "read_file",
    "cat": "read_file",
    "open_file": "read_file",
    "get_file_contents": "read_file",
}
"""Map from the names of tools in other programs, in lower case, to the names of ripwrap's tools."""

_ENTRY_TYPES = {"f": "file", "files": "file", "d": "directory", "dir": "directory", "folder": "directory"}
"""Map from values that find, fd and other programs use for a type of entry to the values of `entry_type`."""
_MAX_JSON_CHARS = 12
"""Number of characters that a character of a text may take in JSON: two escapes such as `\\ud83d`."""

_IMPLYING = {"case_sensitive": "case_insensitive", "limit": "end_line"}
"""Map from an argument that only other programs have to the argument of ripwrap's tools that is set instead."""

_IGNORED_NAMES = frozenset({"-n", "line_number", "line_numbers", "explanation"})
"""Arguments that are ignored: answers always have line numbers, and language models write comments in `explanation`."""


_ONE_SIDE = frozenset({*ALIASES["before_context"], *ALIASES["after_context"]})
_BOTH_SIDES = frozenset({"context_lines", *ALIASES["context_lines"]})

A = TypeVar("A", bound="ToolArguments")


def _parse_strings(value: Any) -> Any:
    """Convert a text to a list of strings; the text is a JSON array, or has commas between the strings.

    Return any other value, and a text that begins with `[` but is not JSON, as it is.
    """
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return comma_separated(value)


def _join_globs(value: Any) -> Any:
    """Join globs, given as a list or as the text of a JSON array, into one string with commas between them.

    Return any other value as it is.
    """
    if isinstance(value, str) and value.lstrip().startswith('["'):
        value = _parse_strings(value)
    return ",".join(map(str, cast("list[object]", value))) if isinstance(value, list) else value


def _join_ranges(value: Any) -> Any:
    """Join ranges of lines, given as a list or as the text of a JSON array, into one string such as `10-40,80-95`.

    A value that is neither a list nor a JSON array is returned as it is. The list may be one pair of numbers, or
    contain strings, numbers and pairs of numbers. -1 as the second number of a pair is the end of the file.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _parse_strings(value)
    if not isinstance(value, list):
        return value
    items = cast("list[object]", value)
    if len(items) == 2 and all(isinstance(item, int) for item in items):
        items = [items]
    return ",".join(_range_text(item) for item in items)


def _range_text(item: object) -> str:
    match item:
        case [int(start), -1]:
            return f"{start}-"
        case [int(start), int(end)]:
            return f"{start}-{end}"
        case _:
            return str(item)


def _refuse_anchor(value: Any) -> Any:
    """Return a value. Raise an error for an anchor such as `42·k7q`, because the line of an anchor may have moved."""
    anchor = parse_anchor(value) if isinstance(value, str) else None
    if anchor is not None:
        raise PydanticCustomError("anchor", "a number (the tool `resolve` returns the line number of an anchor)", {})
    return value


def _parse_entry_type(value: Any) -> Any:
    return _ENTRY_TYPES.get(value, value) if isinstance(value, str) else value


Number: TypeAlias = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
LineNumber: TypeAlias = Annotated[int, Field(ge=0, le=MAX_LINE_NUMBER), BeforeValidator(_refuse_anchor)]
Ranges: TypeAlias = Annotated[str, BeforeValidator(_join_ranges)]
Globs: TypeAlias = Annotated[str, BeforeValidator(_join_globs)]
Strings: TypeAlias = Annotated[list[str], BeforeValidator(_parse_strings)]


def _given(values: Mapping[str, Any], name: str) -> bool:
    """Return True if an argument is given, by its name or by an alias."""
    return not values.keys().isdisjoint((name, *ALIASES.get(name, ())))


class ToolArguments(
    BaseModel,
    frozen=True,
    extra="forbid",
    coerce_numbers_to_str=True,
    defer_build=True,
    alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(name, *ALIASES.get(name, ()))),
):
    """Base class of the arguments of all tools."""

    @model_validator(mode="before")
    @classmethod
    def _lift_limit(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Replace `head_limit=0` by the largest number that is allowed, because in other tools 0 means no limit."""
        no_limit = str(given.get("head_limit")).strip() == "0"
        return {**given, "head_limit": MAX_NUMBER} if no_limit else given


class GrepContentArguments(ToolArguments, frozen=True):
    """Arguments of `grep_content()`."""

    pattern: str
    path: str = "."
    context_lines: Number = 2
    before_context: Number = 0
    after_context: Number = 0
    max_matches: Number = 100
    max_files: Number = 0
    file_pattern: Globs = ""
    file_type: str = ""
    case_insensitive: bool = False
    fixed_strings: bool = False
    multiline: bool = False
    output_mode: OutputMode = "content"
    offset: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False
    sections: bool = False
    expand: Expand = "none"
    rev: str = ""
    inside: Globs = ""

    @model_validator(mode="before")
    @classmethod
    def _read_flags(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Set `context_lines` and `case_insensitive` if other arguments imply their values.

        If `-B` or `-A` is given, but not `context_lines`, then `context_lines` is 0, as in rg. With `before_context`
        and `after_context`, `context_lines` keeps its default. `case_sensitive=False` sets `case_insensitive` to True,
        unless `case_insensitive` is given, too.
        """
        values = dict(given)
        if _ONE_SIDE & values.keys() and not _BOTH_SIDES & values.keys():
            values["context_lines"] = 0
        if values.pop("case_sensitive", None) in (False, "false") and not _given(values, "case_insensitive"):
            values["case_insensitive"] = True
        return values


class FindFilesArguments(ToolArguments, frozen=True):
    """Arguments of `find_files()`."""

    pattern: str = "*"
    path: str = "."
    entry_type: Annotated[EntryType, BeforeValidator(_parse_entry_type)] = "file"
    sort: FileOrder = "path"
    limit: Number = 100
    offset: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False


class LsArguments(ToolArguments, frozen=True):
    """Arguments of `ls()`."""

    path: str = "."
    ignore: Strings = []
    limit: Number = 1000
    max_depth: Number = 0
    include_hidden: bool = False
    include_ignored: bool = False


class TreeArguments(ToolArguments, frozen=True):
    """Arguments of `tree()`."""

    path: str = "."
    limit: Number = 50
    include_hidden: bool = False
    include_ignored: bool = False


class CodebaseSearchArguments(ToolArguments, frozen=True):
    """Arguments of `codebase_search()`."""

    query: str
    path: str = "."
    limit: Number = 10


class LineRange(NamedTuple):
    """Range of lines of a file.

    Attributes:
        start: Number of the first line, from 1.
        end: Number of the last line; `None` is the last line of the file.
    """

    start: int
    end: int | None

    def __str__(self) -> str:
        """Return the range in the format of the argument `ranges`, such as `10-40`, or `80-` without an end."""
        return f"{self.start}-{self.end or ''}"


class ReadFileArguments(ToolArguments, frozen=True):
    """Arguments of `read_file()`."""

    path: str
    start_line: LineNumber = 1
    end_line: LineNumber = 0
    ranges: Ranges = ""

    @model_validator(mode="before")
    @classmethod
    def _read_limit(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Replace `limit`, which in other programs is the number of lines to read, by `end_line`.

        Drop `limit` if it is 0, or if `end_line` is given.
        """
        values = dict(given)
        limit = values.pop("limit", 0)
        start = next((values[name] for name in ("start_line", *ALIASES["start_line"]) if name in values), 1)
        if limit and not _given(values, "end_line"):
            try:
                values["end_line"] = max(int(start), 1) + int(limit) - 1
            except (TypeError, ValueError):
                values["end_line"] = limit  # validation refuses it with an error that quotes the given value
        return values

    def line_ranges(self) -> list[LineRange]:
        """Return the ranges of lines in order; join ranges that overlap or touch.

        Raises:
            ValueError: `ranges` is not a list of ranges or is given together with `start_line` or `end_line`, or a
                range ends before its start.
        """
        if not self.ranges.strip():
            return [_range(max(self.start_line, 1), self.end_line or None, "start_line", "end_line")]
        if self.start_line > 1 or self.end_line:
            raise ValueError(
                "ranges cannot be combined with start_line or end_line; leave out ranges, or start_line and end_line"
            )
        merged: list[LineRange] = []
        for one in sorted(map(_parse_range, self.ranges.split(","))):
            last = merged[-1] if merged else None
            if last is not None and (last.end is None or one.start <= last.end + 1):
                end = None if last.end is None or one.end is None else max(last.end, one.end)
                merged[-1] = LineRange(last.start, end)
            else:
                merged.append(one)
        return merged


def _parse_range(text: str) -> LineRange:
    found = re.fullmatch(r"\s*(\d{1,18})\s*(?:(-)\s*(\d{1,18})?\s*)?", text)
    if found is None:
        way = " (the tool `resolve` returns the line number of an anchor)" if SEPARATOR in text else ""
        raise ValueError(f'ranges must be like "10-40,80-95"{way}, got {_quoted(repr(text.strip()))}')
    start = max(int(found[1]), 1)
    end = start if not found[2] else int(found[3]) if found[3] else None
    return _range(start, end, "the start of a range", "its end")


def _range(start: int, end: int | None, first: str, last: str) -> LineRange:
    if end is not None and end < start:
        raise ValueError(f"{first} ({start}) is after {last} ({end}); swap the two numbers")
    return LineRange(start, end)


class ResolveArguments(ToolArguments, frozen=True):
    """Arguments of `resolve()`."""

    anchor: str


class ReplaceContentArguments(ToolArguments, frozen=True):
    """Arguments of `replace_content()`."""

    pattern: str
    replacement: str
    path: str = "."
    apply: bool = False
    file_pattern: Globs = ""
    file_type: str = ""
    case_insensitive: bool = False
    fixed_strings: bool = False
    multiline: bool = False
    include_hidden: bool = False
    include_ignored: bool = False


class IndexCodebaseArguments(ToolArguments, frozen=True):
    """Model without fields, because `index_codebase()` takes no arguments."""


class IndexStatusArguments(ToolArguments, frozen=True):
    """Model without fields, because `index_status()` takes no arguments."""


class IndexHealthCheckArguments(ToolArguments, frozen=True):
    """Model without fields, because `index_health_check()` takes no arguments."""


def tool_name(name: str, known: tuple[str, ...]) -> str:
    """Return the name of a tool, given that name or a name that other programs use for the tool.

    Upper case and prefixes such as `functions.` and `mcp__server__` are accepted.

    Raises:
        ValueError: No tool has that name.
    """
    plain = _snake_case(re.sub(r"^(?:functions\.|mcp__.*__)", "", name))
    found = plain if plain in known else TOOL_NAMES.get(plain.replace("_", ""), TOOL_NAMES.get(plain))
    if found is None:
        raise ValueError(f"there is no tool {name!r}; the tools are {', '.join(known)}")
    return found


def parse_arguments(model: type[A], arguments: Mapping[str, Any] | str) -> A:
    """Return the arguments of a tool, given a mapping or the text of a JSON object.

    Raises:
        ValueError: An argument is unknown, missing or invalid. The message is one line.
    """
    names = _names(model)
    mapping = _mapping(arguments)
    _check_length(sum(len(name) + _text_length(value) for name, value in mapping.items()))
    given = _known(mapping, names)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise ValueError("; ".join(_error_text(problem, names) for problem in error.errors())) from None


def parameter_descriptions(method: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each parameter of a method, from the lines `name (type): text` of its docstring."""
    return dict(re.findall(r"^    (\w+) \(.+?\): (.+)$", inspect.getdoc(method) or "", re.MULTILINE))


def schema_of(model: type[ToolArguments], descriptions: Mapping[str, str], *, strict: bool = False) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without titles.

    Args:
        model: Arguments of the tool.
        descriptions: Descriptions of the arguments.
        strict: Require all arguments, and allow null for each argument that has a default.
    """
    schema = model.model_json_schema(by_alias=False)
    required = schema.get("required", [])
    properties: dict[str, dict[str, Any]] = {}
    for name, made in schema["properties"].items():
        about = {key: value for key, value in made.items() if key != "title"} | {"description": descriptions[name]}
        properties[name] = _strict_property(about) if strict else about
    if strict:
        required = [*properties]
    named = {"required": required} if required or strict else {}
    return {"type": "object", "properties": properties, "additionalProperties": False} | named


def _strict_property(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument for a provider's strict mode.

    The schema has neither the keyword `default` nor bounds; null stands for the default value.
    """
    value = {key: about[key] for key in ("type", "items", "enum") if key in about}
    if "default" not in about:
        return {"description": about["description"], **value}
    description = f"{about['description']} Null means {json.dumps(about['default'])}."
    return {"description": description, "anyOf": [value, {"type": "null"}]}


def comma_separated(text: str) -> list[str]:
    """Return the texts between commas, such as globs, without white space around them; leave out empty texts.

    A comma in braces or brackets is part of a glob.
    """
    parts: list[str] = []
    start = depth = 0
    for found in re.finditer(r"[{}\[\],]", text):
        letter = found[0]
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth <= 0:
            parts.append(text[start : found.start()])
            start = found.end()
    return [stripped for part in (*parts, text[start:]) if (stripped := part.strip())]


def _mapping(arguments: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(arguments, str):
        _check_length(len(arguments) // _MAX_JSON_CHARS)
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError as error:
            raise ValueError(f"the arguments are not valid JSON ({error}); pass a JSON object") from None
        except RecursionError:
            raise ValueError("the arguments are nested too deeply; pass a JSON object of plain values") from None
    if not isinstance(arguments, Mapping):
        raise ValueError(f"the arguments must be a JSON object, got {type(arguments).__name__}")
    return arguments


def _check_length(length: int) -> None:
    if length > MAX_ARGUMENT_CHARS:
        raise ValueError(
            f"the arguments have more than {MAX_ARGUMENT_CHARS:,} characters; pass shorter texts, in several calls"
        )


def _text_length(value: object) -> int:
    """Return about how many characters the texts in a value have; an item of a list counts as at least one."""
    length, waiting = 0, [value]
    while waiting and length <= MAX_ARGUMENT_CHARS:
        value = waiting.pop()
        match value:
            case str(text):
                length += len(text)
            case list() | tuple() | set() | dict():
                several = cast("list[object]", value)
                length += len(several)
                waiting += several if len(several) <= MAX_ARGUMENT_CHARS else ()
            case _:
                pass
    return length


def _known(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Drop arguments that are null or without effect, and write names such as `filePattern` in snake case.

    Raises:
        ValueError: An argument is unknown, or is given twice with different values.
    """
    known: dict[str, Any] = {}
    for name, value in given.items():
        plain = name if name in names else _snake_case(name)
        if value is None or (plain in _IGNORED_NAMES and plain not in names):
            continue
        if plain not in names and _IMPLYING.get(plain) in names:
            known[plain] = value
            continue
        if plain not in names:
            meant = suggest(plain, names)
            own = ", ".join(dict.fromkeys(names.values()))
            hint = f"did you mean {meant}? " if meant else ""
            allowed = f"allowed are {own}" if own else "the tool takes no arguments"
            raise ValueError(f"unknown argument {name!r}; {hint}{allowed}")
        twice = [other for other in known if names.get(other) == names[plain]]
        if not twice:
            known[plain] = value
        elif known[twice[0]] != value:
            raise ValueError(f"{twice[0]} and {name} name the same argument, but their values differ; pass only one")
    return known


@functools.cache
def _names(model: type[ToolArguments]) -> dict[str, str]:
    """Map each name that is accepted for an argument to the argument's own name."""
    names = {name: name for name in model.model_fields}
    for name in model.model_fields:
        for alias in ALIASES.get(name, ()):
            names.setdefault(alias, name)
    return names


def _error_text(problem: ErrorDetails, names: Mapping[str, str]) -> str:
    name = names.get(str(problem["loc"][0]), str(problem["loc"][0]))
    given = _quoted(repr(problem["input"]))
    match problem["type"]:
        case "missing":
            return f"{name} is missing; it has no default"
        case "greater_than_equal":
            return f"{name} must be 0 or more, got {given}"
        case "less_than_equal":
            return f"{name} must be {problem.get('ctx', {}).get('le')} or less, got {given}"
        case "literal_error":
            return f"{name} must be {problem.get('ctx', {}).get('expected')}, got {given}"
        case kind:
            what = {
                "int": "a whole number",
                "finite": "a whole number",
                "bool": "true or false",
                "string": "a string",
                "list": "a list of strings",
            }
            expected = next((text for start, text in what.items() if kind.startswith(start)), problem["msg"])
            return f"{name} must be {expected}, got {given}"


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace("-", "_") if name[:1] != "-" else name


def _quoted(text: str) -> str:
    return cut_text(text, MAX_QUOTED_CHARS)


_ARGUMENTS = {
    "hidden": "include_hidden",
    "no_ignore": "include_ignored",
    "fixed_strings": "fixed_strings",
    "ignore_case": "case_insensitive",
    "multiline": "multiline",
    "glob": "file_pattern",
    "type": "file_type",
    "inside": "inside",
    "rev": "rev",
    "paths": "path",
    "cwd": "path",
}
"""Map from options of the library to arguments of the tools, for error messages that mention options."""

_TOOLS = {"refresh": "index_codebase", "prune": "index_codebase"}
"""Map from functions of the library to the tools that do the same.

Error messages mention functions of the library, but a language model can only call tools.
"""


def spell_as_argument(hint: Hint) -> str | None:
    """Translate a hint in a message: an option to an argument of the tools, a method to the name of a tool.

    A hint to install a package stays a command, and `location=` becomes `index=`, an argument of `Workspace`. Return
    `None` for an option that is not an argument of a tool, and for a method without a tool that does the same.
    """
    if hint.kind == "install":
        return str(hint)
    if hint.kind == "call":
        return _TOOLS.get(hint.target)
    if hint.option == "location" and hint.kind == "pass":  # an argument of the `Workspace`
        return f"index={'' if hint.value is None else repr(hint.value)}"
    name = _ARGUMENTS.get(hint.option)
    if name is None:
        return None
    return name if hint.value is None else f"{name}={hint.value!r}"

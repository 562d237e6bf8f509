"""What a model sends as a tool's arguments to what the tool takes: other names, numbers as strings, `null`; pure.

The tool's signature is what it takes; its names, and those of rg and of the tools that models were trained on, are
understood. What cannot be understood is one line that says what is allowed.
"""

import difflib
import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast, get_origin, get_type_hints

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, create_model
from typing_extensions import TypedDict

OutputMode: TypeAlias = Literal["content", "files_with_matches", "count"]
FileOrder: TypeAlias = Literal["path", "newest"]


class _Seen(TypedDict, total=False):
    include_hidden: bool
    include_ignored: bool


class GrepContentOptions(_Seen, total=False):
    """What `grep_content()` takes besides `pattern` and `path`; it says what they mean."""

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


class FindFilesOptions(_Seen, total=False):
    """What `find_files()` takes besides `pattern` and `path`."""

    sort: FileOrder
    limit: int
    offset: int


class LsOptions(_Seen, total=False):
    """What `ls()` takes besides `path`."""

    ignore: list[str]
    limit: int
    max_depth: int


class TreeOptions(_Seen, total=False):
    """What `tree()` takes besides `path`."""

    limit: int


class CodebaseSearchOptions(TypedDict, total=False):
    """What `codebase_search()` takes besides `query` and `path`."""

    limit: int


MAX_NUMBER = 1_000_000
"""The largest number that a tool takes."""

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
}
"""Other names of the tools; case does not count."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "pattern": ("query", "regex"),
    "query": ("question", "search_term", "q"),
    "path": ("search_path", "directory", "dir", "target_directory", "dir_path"),
    "context_lines": ("context", "-C", "C"),
    "before_context": ("-B", "B"),
    "after_context": ("-A", "A"),
    "max_matches": ("head_limit", "limit", "max_results", "-m"),
    "limit": ("head_limit", "max_results", "max_entries"),
    "file_pattern": ("glob", "include", "include_pattern", "-g"),
    "file_type": ("type", "-t"),
    "case_insensitive": ("-i", "ignore_case"),
    "fixed_strings": ("-F", "literal", "literal_text"),
    "multiline": ("-U",),
    "include_hidden": ("hidden",),
    "include_ignored": ("no_ignore",),
    "ignore": ("exclude", "exclude_patterns"),
    "max_depth": ("depth",),
}
"""For each argument the other names that it goes by; a name in camel case is also understood."""

_WITHOUT_EFFECT = frozenset({"-n", "line_number", "line_numbers", "explanation"})  # there always are; a remark
_SIDES = frozenset({*NAMES["before_context"], *NAMES["after_context"]})
_BOTH = frozenset({"context_lines", *NAMES["context_lines"]})


def tool_name(name: str, known: tuple[str, ...]) -> str:
    """The tool that a name means.

    Raises:
        ValueError: None of them.
    """
    plain = _snake(re.sub(r"^(?:functions\.|mcp__.*__)", "", name))
    found = plain if plain in known else TOOL_NAMES.get(plain.replace("_", ""), TOOL_NAMES.get(plain))
    if found is None:
        raise ValueError(f"there is no tool {name!r}; there are {', '.join(known)}")
    return found


def understood(function: Callable[..., Any], arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """The arguments for a tool, all of them, by its own names.

    Raises:
        ValueError: One is unknown, missing, or not what it should be; the message is one line.
    """
    model, names = _model(function)
    given = _known(_mapping(arguments), names)
    if "context_lines" in names and _SIDES & given.keys() and not _BOTH & given.keys():
        given["context_lines"] = 0  # as rg's own letters
    if given.pop("case_sensitive", None) in (False, "false"):
        given.setdefault("case_insensitive", True)
    if str(given.get("head_limit")).strip() == "0":
        given["head_limit"] = MAX_NUMBER  # where models know it from, 0 is no limit
    for name, value in given.items():
        if isinstance(value, str) and get_origin(model.model_fields[names[name]].annotation) is list:
            given[name] = _strings(value)
        elif names[name] == "file_pattern":
            given[name] = _one_string(value)
    try:
        return dict(model.model_validate(given))
    except ValidationError as error:
        raise ValueError("; ".join(_complaint(problem, names) for problem in error.errors())) from None


def own(local: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a method, out of its `locals()`."""
    return {name: value for name, value in local.items() if name != "self"}


def schema_of(function: Callable[..., Any]) -> tuple[str, dict[str, Any]]:
    """The description of a tool, and the JSON schema of its arguments with what its docstring says of each."""
    description, _, arguments = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:\n")
    said = dict(re.findall(r"^ *(\w+) \([^)]*\): (.+)$", arguments, re.MULTILINE))
    schema = _model(function)[0].model_json_schema(by_alias=False)
    properties = {
        name: {key: value for key, value in about.items() if key != "title"} | {"description": said[name]}
        for name, about in schema["properties"].items()
    }
    kept = {"type": "object", "properties": properties, "additionalProperties": False}
    return description, kept | ({"required": schema["required"]} if "required" in schema else {})


def _strings(text: str) -> list[str] | str:
    """A list that came as JSON in a string, or as names with commas."""
    if text.lstrip().startswith("["):
        try:
            strings: list[str] = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return strings
    return comma_separated(text)


def _one_string(value: Any) -> Any:
    """Globs that came as a list, or as JSON in a string, with commas between them."""
    if isinstance(value, str) and value.lstrip().startswith('["'):
        value = _strings(value)
    return ",".join(map(str, cast("list[object]", value))) if isinstance(value, list) else value


def comma_separated(text: str) -> list[str]:
    """Globs between commas, but for the commas in braces and brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _mapping(arguments: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError as error:
            raise ValueError(f"the arguments are not JSON: {error}") from None
        except RecursionError:
            raise ValueError(
                "the arguments are nested too deeply; they should be a JSON object of plain values"
            ) from None
    if not isinstance(arguments, Mapping):
        raise ValueError(f"the arguments should be a JSON object, not {type(arguments).__name__}")
    return arguments


def _known(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Those that say something, each by a name that the model knows."""
    known: dict[str, Any] = {}
    for name, value in given.items():
        plain = name if name in names else _snake(name)
        if value is None or (plain in _WITHOUT_EFFECT and plain not in names):
            continue
        if plain == "case_sensitive" and "case_insensitive" in names:
            known[plain] = value
            continue
        if plain not in names:
            near = difflib.get_close_matches(plain, names, 1)
            own = ", ".join(dict.fromkeys(names.values()))
            hint = f"did you mean {near[0]}? " if near else ""
            raise ValueError(f"unknown argument {name!r}; {hint}allowed are {own or 'none'}")
        twice = [other for other in known if names.get(other) == names[plain]]
        if not twice:
            known[plain] = value
        elif known[twice[0]] != value:
            raise ValueError(f"{twice[0]} and {name} are the same argument, with different values; give one of them")
    return known


@functools.cache
def _model(function: Callable[..., Any]) -> tuple[type[BaseModel], dict[str, str]]:
    """What checks the arguments of a tool, and all names that they go by, each with its own."""
    hints = get_type_hints(function)
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    names: dict[str, str] = {one.name: one.name for one in parameters}
    fields: dict[str, Any] = {}
    for one in parameters:
        also = [name for name in NAMES.get(one.name, ()) if name not in names]
        names.update(dict.fromkeys(also, one.name))
        bounds: dict[str, Any] = {"ge": 0, "le": MAX_NUMBER} if hints[one.name] is int else {}
        default = ... if one.default is one.empty else one.default
        fields[one.name] = (hints[one.name], Field(default, validation_alias=AliasChoices(one.name, *also), **bounds))
    config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, frozen=True)
    model: type[BaseModel] = create_model(function.__name__, __config__=config, **fields)
    return model, names


def _complaint(problem: Any, names: Mapping[str, str]) -> str:
    name = names.get(str(problem["loc"][0]), str(problem["loc"][0]))
    given = _cut(repr(problem["input"]))
    match problem["type"]:
        case "missing":
            return f"{name} is missing; it has no default"
        case "greater_than_equal":
            return f"{name} should be 0 or more, not {given}"
        case "less_than_equal":
            return f"{name} should be {MAX_NUMBER} or less, not {given}"
        case "literal_error":
            return f"{name} should be {problem['ctx']['expected']}, not {given}"
        case kind:
            what = {
                "int": "a whole number",
                "finite": "a whole number",
                "bool": "true or false",
                "string": "a string",
                "list": "a list of strings",
            }
            should = next((text for start, text in what.items() if kind.startswith(start)), problem["msg"])
            return f"{name} should be {should}, not {given}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace("-", "_") if name[:1] != "-" else name


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"

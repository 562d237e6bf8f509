"""Arguments of the tools: the base class of their models, and functions that parse what a language model sends; no I/O.

Each tool has a model of its arguments, with their types, defaults and bounds. Its methods repeat types and defaults,
because frameworks read signatures; a test compares models and methods. The descriptions are only in the docstrings of
the methods; `ToolMethods` and `schemas()` read them there.

Language models do not always send the declared arguments. They use the names of rg's flags, argument names of tools
that they were trained on, numbers as strings, and `null`. `parse_arguments()` accepts all of these. For anything else,
it raises an error of one line, which says what is allowed.
"""

import functools
import inspect
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError
from typing_extensions import TypedDict

from ripwrap._text import ALIASES, WORDS, cut_text, suggest
from ripwrap.errors import Hint, RipwrapError

Needed: TypeAlias = Literal["index", "anchors", "write"]

TOOL_ERRORS = (RipwrapError, ValueError, OSError, MemoryError)
"""Errors for which a tool returns a text instead of raising them."""


class Named(Protocol):
    """What has the names of a tool: its specification, or its definition in the MCP server."""

    @property
    def name(self) -> str:
        """Name of the tool."""
        ...

    @property
    def aliases(self) -> Sequence[str]:
        """Names of the tool in other programs, in lower case; `name(argument)` for calls with this argument."""
        ...

    @property
    def needs(self) -> Needed | None:
        """Argument of `Workspace` without which the tool is not offered; `None` if it is always offered."""
        ...


N = TypeVar("N", bound=Named)


def tool_names(
    tools: Mapping[str, Named], *, index: bool = False, anchors: bool = False, write: bool = False
) -> tuple[str, ...]:
    """Return the names of the tools of a workspace that was made with these options; each option adds tools."""
    given: dict[str | None, bool] = {None: True, "index": index, "anchors": anchors, "write": write}
    return tuple(name for name, tool in tools.items() if given[tool.needs])


def find_tool(name: str, tools: Iterable[N], arguments: Mapping[str, object] | None = None) -> N:
    """Return a tool, given its name or an alias; the alias `search_files(regex)` is for calls with this argument."""
    plain = _plain_name(name)
    known = {tool.name: tool for tool in tools}
    aliases = {alias: tool for tool in known.values() for alias in tool.aliases}
    given = [f"({snake_case(one)})" for one, value in (arguments or {}).items() if value not in (None, "")]
    keys = (f"{one}{argument}" for argument in (*given, "") for one in (plain.replace("_", ""), plain))
    found = known.get(plain) or next((aliases[key] for key in keys if key in aliases), None)
    if found is None:
        raise ValueError(f"there is no tool {name!r}; the tools are {', '.join(known)}")
    return found


def implied_arguments(name: str) -> Mapping[str, Any]:
    """Return the arguments that a name of a tool in another program implies, such as `get_symbols_overview`."""
    return _IMPLIED.get(_plain_name(name), {})


def _plain_name(name: str) -> str:
    return snake_case(re.sub(r"^(?:functions\.|mcp__.*__)", "", name))


def snake_case(name: str) -> str:
    """Return `filePattern`, `file-pattern` or `--file-pattern` in snake case; leave a flag such as `-i` as it is."""
    name = name.removeprefix("--")
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace("-", "_") if name[:1] != "-" else name


HASHED_CHARS = 1_000
"""Maximum number of characters of a line that are hashed."""

MAX_QUOTED_CHARS = 80
"""Maximum number of characters of a wrong value that an error message quotes."""

SEPARATOR = "·"
"""Character between the number of a line and its hash (U+00B7)."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_READ_AS = str.maketrans("ilo", "110")
"""Table that replaces the letters i and l by the digit 1, and o by 0, as in Crockford's base 32."""
_ANCHOR = re.compile(r"\s*([1-9]\d{0,9})\s*[·•⋅∙]\s*([0-9a-tv-zA-TV-Z]{3})\s*[:-]?\s*")
"""Pattern of an anchor such as `42·k7q`. It also accepts other dots that look like `·`, upper-case letters, the letters
i, l and o, spaces around the parts, and `:` or `-` at the end.
"""


class Anchor(NamedTuple):
    """Number of a line, from 1, and hash of the text of that line."""

    line: int
    hash: str

    def __str__(self) -> str:
        """Return the anchor as the tools show it, such as `42·k7q`."""
        return f"{self.line}{SEPARATOR}{self.hash}"


def line_hash(text: str) -> str:
    """Return the hash of a line: three characters, each a digit or a lowercase letter.

    Only the first 1,000 characters count, and white space at the end of them is ignored.
    """
    number = zlib.crc32(text[:HASHED_CHARS].rstrip().encode("utf-8", "surrogatepass"))
    return _ALPHABET[number >> 10 & 31] + _ALPHABET[number >> 5 & 31] + _ALPHABET[number & 31]


def line_hashes(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the hash of each line."""
    return tuple(map(line_hash, lines))


def parse_anchor(text: str) -> Anchor | None:
    """Parse a text such as `42·k7q`; return None if the text is not an anchor."""
    found = _ANCHOR.fullmatch(text)
    return None if found is None else Anchor(int(found[1]), found[2].lower().translate(_READ_AS))


def parse_place(text: str) -> tuple[str, Anchor]:
    """Return the path and the anchor in a text such as `src/till.py#42·k7q`."""
    found = re.fullmatch(rf"(.+)[#:]({_ANCHOR.pattern})", text, re.DOTALL)
    anchor = None if found is None else parse_anchor(found[2])
    if found is None or anchor is None:
        quoted = cut_text(text, MAX_QUOTED_CHARS)
        raise ValueError(f'anchor must be PATH#LINE·HASH, like "src/till.py#42·k7q", got {quoted!r}')
    return found[1], anchor


def labels(first: int, hashes: Sequence[str], count: int) -> list[str]:
    """Return the label of each line of a range: the anchor if the hash of the line is known, otherwise the number."""
    numbers = range(first, first + count)
    return [str(Anchor(number, hashes[at])) if at < len(hashes) else str(number) for at, number in enumerate(numbers)]


MAX_NUMBER = 1_000_000
"""Largest number that a tool accepts, except for line numbers."""

MAX_PATTERNS = 20
"""Maximum number of patterns of a call; rg counts the matches of each."""

MAX_ARGUMENT_CHARS = 20_000
"""Maximum number of characters of the texts in the arguments of one call, all together.

The work that a tool does with a text, before rg or a worker thread does the rest, is linear in its length. At this
length it takes a few milliseconds.
"""


class VisibilityOptions(TypedDict, total=False):
    """Options about hidden and ignored files, which most tools have."""

    include_hidden: bool
    include_ignored: bool


_MAX_JSON_CHARS = 12
"""Number of characters that a character of a text may take in JSON: two escapes such as `\\ud83d`."""

_IMPLIED: Mapping[str, Mapping[str, Any]] = {
    **{name: {"outline": True} for name in ("get_symbols_overview", "list_code_definition_names")},
    "list_allowed_directories": {"max_depth": 1},
    **{name: {"max_depth": 1, "details": True} for name in ("get_file_info", "list_directory_with_sizes")},
}
"""Arguments that are implied by a name of a tool in another program."""

_OTHER_NAMES: Mapping[str, Sequence[str]] = {
    name: names.split()
    for name, names in {
        "pattern": "search_pattern substring_pattern queries -e",
        "path": "target_file absolute_path relative_path relative_workspace_path target_directories file_paths uri",
        "start_line": "start_line_one_indexed from_line line_start",
        "end_line": "end_line_one_indexed_inclusive to_line line_end",
        "ranges": "lines line_ranges",
        "before_context": "before context_lines_before context_before",
        "after_context": "after context_lines_after context_after",
        "max_matches": "total_max_matches match_limit num_results",
        "limit": "max_matches num_results top_k",
        "file_pattern": "glob_pattern paths_include_glob include_glob includes",
        "include_hidden": "show_hidden",
        "include_ignored": "include_ignored_files",
        "ignore": "ignore_globs ignore_patterns exclude_pattern exclude_glob",
        "name": "symbol symbol_name name_path name_path_pattern identifier query q pattern",
        "replacement": "new_text",
    }.items()
}
"""Map an argument to further names that it has in other programs; see `ALIASES`."""

_MEANS: Mapping[str, Mapping[Any, tuple[str, Any] | None]] = {
    name: values
    for names, values in (
        ("only_matching -o", {True: ("context_lines", 0), False: None}),
        ("names_only files_with_matches -l", {True: ("output_mode", "files_with_matches"), False: None}),
        ("count -c", {True: ("output_mode", "count"), False: None}),
        ("is_regexp is_regex", {True: None, False: ("fixed_strings", True)}),
        ("respect_git_ignore skip_ignored_files use_default_excludes", {True: None, False: ("include_ignored", True)}),
        ("replace_all allow_multiple allow_multiple_occurrences", {True: None}),
        ("case_sensitive", {True: None, False: ("case_insensitive", True)}),
        ("recursive", {True: None, False: ("max_depth", 1)}),
        ("dry_run", {True: None, False: ("apply", True)}),
        ("mode", {"slice": None, "regex": None, "literal": ("fixed_strings", True)}),
        ("sort_by", {"name": None}),
        ("offset", {1: None}),
    )
    for name in names.split()
}
"""Map a name and a value in other programs to an argument and its value; `None` is what the tools do anyway."""

_INSTEAD: Mapping[str, tuple[str, str]] = {
    name: (arguments, text)
    for names, arguments, text in (
        ("max_matches_per_file max_count max_per_file", "max_matches", "{} limits the matches of all files together"),
        ("old_string new_string old_text edits", "pattern", "pass the old text as {}, with fixed_strings=True"),
        ("replace_all allow_multiple allow_multiple_occurrences", "pattern", "all that {} matches is replaced"),
        ("include_kinds exclude_kinds kind", "name", "the answer has definitions and kinds of uses of {} apart"),
        ("include_body include_info", "name", "the answer has the lines of each {}, which read_file shows"),
        ("max_answer_chars max_output_tokens", "limit max_matches end_line path", "{} makes an answer shorter"),
        ("respect_gemini_ignore", "file_pattern ignore pattern", "{} leaves out more files than ignore files do"),
        ("-v invert_match", "pattern", "no {} finds lines that do not match; read_file shows all lines"),
        ("-w word_regexp whole_word", "pattern", r"write \b before and after the word in {}"),
        ("-L files_without_match", "path", "find_files lists all files of {}, also those without match"),
        ("-r", "pattern", "{} is only searched for; replace_content replaces it in a workspace that may write"),
        ("include exclude use_default_excludes", "path", "find_files finds files; pass their paths as {}, in a list"),
        ("pages", "path", "read_file shows text; grep_content with inside searches a document that is its {}"),
        ("mode indentation", "outline", "{} gives the lines of each definition, which ranges reads"),
        (
            "recursive",
            "path",
            "a pattern of find_files that begins with a slash, as /*.py, stays in the directory of {}",
        ),
        ("offset", "limit", "a larger {} shows more"),
        ("exclude_patterns", "path", "ls has ignore; or pass one directory as {}"),
        ("depth", "path", "pass one file or directory as {}; read_file with outline shows definitions"),
        ("substring_matching", "name", "grep_content finds a part of a {}"),
        ("regex", "name", "pass the {} that the expression finds"),
        ("containing_symbol_name_path", "name", "write the class before the {}, as in Cart.total"),
        ("restrict_search_to_code_files", "file_type", "{} chooses the files of one language"),
        ("occurrence_ids expected_count", "pattern", "the preview counts all that {} matches"),
        ("case_sensitive", "name", "the case of a {} counts; grep_content can ignore it"),
        ("search_only_prs", "query", "history searches the texts of commits, and not {}"),
        ("rev", "query", "only files on the disk are ranked for {}; grep_content and find_references have rev"),
        ("sort_by", "path", "entries are sorted by name; find_files can sort by age below a {}"),
    )
    for name in names.split()
}
"""What to do in place of arguments that cannot be honoured: arguments of a tool, and a text with the first it has."""

_BOUNDS = {"ge": "minimum", "le": "maximum"}
"""Map from the bounds of a field to the keywords of JSON schemas."""

_IGNORED_NAMES = frozenset(
    {
        *("-n", "line_number", "line_numbers", "-H", "with_filename", "no_heading", "-P", "pcre2"),
        *("explanation", "description", "instruction", "instructions", "task_progress", "should_read_entire_file"),
    }
)
"""Arguments that are ignored: answers always have the lines' numbers and files, a pattern that needs PCRE2 gets it, and
language models write comments in `explanation`. A range of lines says itself if it is the whole file.
"""


A = TypeVar("A", bound="ToolArguments")


def parse_strings(value: Any) -> Any:
    """Return the strings of a text, which is a JSON array, or has commas between them; any other value as it is."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return comma_separated(value)


def _parsed(value: Any, beginning: str) -> Any:
    """Return the list that a text with this beginning is in JSON; any other value as it is."""
    return parse_strings(value) if isinstance(value, str) and value.lstrip().startswith(beginning) else value


def _join_globs(value: Any) -> Any:
    """Join the globs of a list or of a JSON array with commas; a comma inside of a name becomes `[,]`."""
    value = _parsed(value, '["')
    if not isinstance(value, list):
        return value
    globs = [str(glob) for glob in cast("list[object]", value)]
    globs = [glob if re.search(r"[*?\[{]", glob) else glob.replace(",", "[,]") for glob in globs]
    # With a space after each comma, a list of names is not taken for one name.
    return ("," if re.search(r"[*?]", "".join(globs[:1])) else ", ").join(globs)


def join_ranges(value: Any) -> Any:
    """Join the ranges of a list or a JSON array, which may be one pair of numbers, into a text such as `10-40,80-95`.

    -1 as the second number of a pair is the end of the file.
    """
    value = _parsed(value, "[")
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


def join_paths(value: Any) -> Any:
    """Join the paths of a list, which models send to read or search several files, with NUL characters."""
    value = _parsed(value, '["')
    paths = cast("list[object]", value) if isinstance(value, list) else [value]
    if any(isinstance(one, str) and "\0" in one for one in paths):
        raise PydanticCustomError("nul", "a path without a NUL character", {})
    if isinstance(value, list) and paths and all(isinstance(one, str) for one in paths):
        return "\0".join(map(str, paths))
    return cast("Any", value)


def join_places(value: Any) -> Any:
    """Join the paths of a list; an empty list, which Cursor's models send, is everything."""
    return "." if value in ([], "[]") else join_paths(value)


_BETWEEN = re.compile(r"([^\s:{]*?)(\.\.\.?)([^\s:{]*)")
"""Pattern of a range of commits, such as `v1..v2`; names of refs have no two dots (git-check-ref-format(1))."""


def two_revs(value: str) -> tuple[str, str, str] | None:
    """Return the older revision, the dots and the newer revision of a range of commits; `None` for another text."""
    found = _BETWEEN.fullmatch(value)
    return found and (found[1] or "HEAD", found[2], found[3] or "HEAD")


def check_revs(value: str) -> str:
    """Check one revision, or a range of commits."""
    for one in (two_revs(value) or (value,))[::2]:
        check_rev(one)
    return value


def check_rev(value: str) -> str:
    """Check a revision, or an empty text, which stands for the files on the disk."""
    if two_revs(value):
        raise PydanticCustomError(
            "rev",
            "one revision of git, such as 'v1.2' (the tool `history` shows the commits and changes between two)",
            {},
        )
    if value and (value.startswith(("-", "^")) or "\0" in value or value != value.strip()):
        raise PydanticCustomError("rev", "a revision of git, such as 'v1.2' or 'main~3'", {})
    return value


def join_patterns(value: Any) -> object:
    """Join the patterns of a list with NUL characters, which no pattern can have; a text is one pattern."""
    patterns = cast("list[object]", value) if isinstance(value, list) else [value]
    if any(isinstance(one, str) and "\0" in one for one in patterns):
        raise PydanticCustomError("nul", "a pattern without a NUL character, which \\x00 stands for", {})
    if len(patterns) > MAX_PATTERNS:
        raise PydanticCustomError("patterns", "at most {most} patterns", {"most": MAX_PATTERNS})
    joins = isinstance(value, list) and patterns and all(isinstance(one, str) and one for one in patterns)
    return "\0".join(map(str, patterns)) if joins else cast("object", value)


Number: TypeAlias = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Globs: TypeAlias = Annotated[str, BeforeValidator(_join_globs)]
Rev: TypeAlias = Annotated[str, AfterValidator(check_rev)]
PatternList: TypeAlias = Annotated[str, BeforeValidator(join_patterns)]
PathList: TypeAlias = Annotated[str, BeforeValidator(join_places)]
StringList: TypeAlias = Annotated[list[str], BeforeValidator(parse_strings)]


EXCLUDING = frozenset({"exclude_pattern", "exclude", "exclude_patterns", "exclude_glob", "paths_exclude_glob"})
"""Names in other programs of globs of files that are left out."""


def is_true(value: Any) -> bool:
    """Return True if a model means true."""
    return value is True or str(value).lower() in ("true", "1", "yes")


def without_excluded(values: dict[str, Any], name: str, every: str) -> dict[str, Any]:
    """Return arguments in which globs of files to leave out are a part of another argument, as `!glob`."""
    kept = {key: value for key, value in values.items() if key not in EXCLUDING}
    excluded = [_join_globs(value) for key, value in values.items() if key in EXCLUDING]
    globs = [f"!{glob.removeprefix('!')}" for text in excluded for glob in comma_separated(str(text))]
    if not globs:
        return kept
    return kept | {name: ", ".join(filter(None, [str(_join_globs(kept.get(name, every))), *globs]))}


class ToolArguments(BaseModel, frozen=True, extra="forbid", coerce_numbers_to_str=True, defer_build=True):
    """Base class of the arguments of all tools."""

    foreign: ClassVar[frozenset[str]] = frozenset()
    """Names that are not of an argument, and that a validator of the model reads."""
    also: ClassVar[Mapping[str, str]] = {}
    """Names of arguments that only this tool has."""

    @model_validator(mode="before")
    @classmethod
    def _exclude(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Leave out the files that should be excluded."""
        return without_excluded(given, "file_pattern", "") if "file_pattern" in cls.model_fields else given


class ArgumentSchema:
    """Annotation that puts the description and the bounds of an argument into JSON schemas that Pydantic makes.

    A `Field` would do the same, but strands refuses it. Nothing is validated, so that a value out of bounds reaches the
    tool, whose error says what to do.
    """

    def __init__(self, description: str, field: FieldInfo) -> None:
        """Keep the description, and the bounds of the field of the tool's model."""
        self._description = description
        self._bounds = {
            _BOUNDS[name]: getattr(mark, name) for mark in field.metadata for name in _BOUNDS if hasattr(mark, name)
        }

    def __repr__(self) -> str:
        """Return a text without the description, because LlamaIndex shows the whole signature to the model."""
        return f"ArgumentSchema({', '.join(f'{keyword}={bound}' for keyword, bound in self._bounds.items())})"

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema of the annotated type, with the description and the bounds."""
        return handler(schema) | self._bounds | {"description": self._description}


def parse_arguments(model: type[A], arguments: Mapping[str, Any] | str) -> A:
    """Return the arguments of a tool, given a mapping or the text of a JSON object."""
    names = _names(model)
    mapping = as_mapping(arguments)
    _check_length(sum(len(name) + _text_length(value) for name, value in mapping.items()))
    given = _known(mapping, names, model)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise ValueError("; ".join(_error_text(problem, names) for problem in error.errors())) from None


def parameter_descriptions(method: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each parameter of a method, from the lines `name (type): text` of its docstring."""
    return dict(re.findall(r"^    (\w+) \(.+?\): (.+)$", inspect.getdoc(method) or "", re.MULTILINE))


def schema_of(model: type[ToolArguments], descriptions: Mapping[str, str], *, strict: bool = False) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without titles."""
    schema = model.model_json_schema(by_alias=False)
    required = schema.get("required", [])
    properties: dict[str, dict[str, Any]] = {}
    for name, made in schema["properties"].items():
        about = {key: value for key, value in made.items() if key != "title"} | {"description": descriptions[name]}
        if strict:  # without bounds, and null stands for the default value
            value = {key: about[key] for key in ("type", "items", "enum") if key in about}
            description = {"description": about["description"]}
            if "default" in about:
                description["description"] += f" Null means {json.dumps(about['default'])}."
                value = {"anyOf": [value, {"type": "null"}]}
            about = description | value
        properties[name] = about
    if strict:
        required = [*properties]
    named = {"required": required} if required or strict else {}
    return {"type": "object", "properties": properties, "additionalProperties": False} | named


def comma_separated(text: str) -> list[str]:
    """Return the texts between commas that are not in braces or brackets, stripped; leave out empty texts."""
    parts: list[str] = []
    start = depth = 0
    for found in re.finditer(r"[{}\[\],]", text):
        letter = found[0]
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth <= 0:
            parts.append(text[start : found.start()])
            start = found.end()
    return [stripped for part in (*parts, text[start:]) if (stripped := part.strip())]


def as_mapping(arguments: Mapping[str, Any] | str) -> Mapping[str, Any]:
    """Return the arguments of a call, which are a mapping or the text of a JSON object."""
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


def _known(given: Mapping[str, Any], names: Mapping[str, str], model: type[ToolArguments]) -> dict[str, Any]:
    """Return the arguments of a call by names that the model reads, without those that are null or without effect."""
    known: dict[str, Any] = {}
    implied: dict[str, Any] = {}
    for name, value in _flat(given):
        plain = name if name in names else snake_case(name)
        if value is None:
            continue
        if plain not in names:
            if plain in model.foreign or (plain in EXCLUDING and "file_pattern" in names):
                known[plain] = value
            elif plain not in _IGNORED_NAMES:
                implied |= _meant(name, value, names)
            continue
        own = names[plain]
        if plain != own and own in ("before_context", "after_context"):
            implied["context_lines"] = 0  # as in rg, without -C
        # In other tools, `head_limit=0` means no limit.
        read = MAX_NUMBER if plain == "head_limit" and str(value).strip() == "0" else value
        if known.setdefault(own, read) is not read and known[own] != read:
            raise ValueError(f"{own} and {name} name the same argument, but their values differ; pass only one")
    return implied | known


def _flat(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each argument and its value; those of an object, as Gemini CLI sends them, one by one."""
    for name, value in given.items():
        if snake_case(name) == "file_filtering_options" and isinstance(value, Mapping):
            yield from cast("Mapping[str, Any]", value).items()
        else:
            yield name, value


def _meant(name: str, value: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return what an argument of another program means, as an argument of the tool; raise an error that says it."""
    plain = snake_case(name)
    own = [*dict.fromkeys(names.values())]
    read = {"true": True, "false": False}.get(str(value).lower(), value)
    if isinstance(read, str | int) and read in (means := _MEANS.get(plain, {})):
        meant = means[read]
        if meant is None or meant[0] in own:
            return dict([meant]) if meant else {}
    needed, instead = _INSTEAD.get(plain, ("", ""))
    argument = next((one for one in needed.split() if one in own), "")
    if argument and plain not in _MEANS and read in (False, "", -1, [], {}):  # it is switched off
        return {}
    if not own:
        hint = "the tool takes no arguments"
    elif argument:
        hint = instead.format(argument)
    else:
        similar = names.get(suggest(plain, names))
        hint = f"did you mean {similar}? allowed are {', '.join(own)}" if similar else f"allowed are {', '.join(own)}"
    raise ValueError(f"unknown argument {cut_text(repr(name), MAX_QUOTED_CHARS)}; {hint}")


@functools.cache
def _names(model: type[ToolArguments]) -> dict[str, str]:
    """Map each name that is accepted for an argument to the argument's own name."""
    own = {name: name for name in model.model_fields}
    names = {**own}
    for table in (_OTHER_NAMES, ALIASES):
        names |= {alias: name for name in reversed(model.model_fields) for alias in table.get(name, ())}
    names |= {**model.also, **own}
    return own | {word: names[name] for word, name in WORDS.items() if name in names} | names


def _error_text(problem: ErrorDetails, names: Mapping[str, str]) -> str:
    if not problem["loc"]:  # the error of a validator of the model, which says all
        return str(problem.get("ctx", {}).get("error", problem["msg"]))
    name = names.get(str(problem["loc"][0]), str(problem["loc"][0]))
    given = cut_text(repr(problem["input"]), MAX_QUOTED_CHARS)
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
    """Translate an option in a message to an argument, and a method to a tool; `None` if no tool has or does it."""
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

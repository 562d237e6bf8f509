"""How each language writes comments, strings and definitions: data, and the choice by a file's name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath

Found = tuple["Kind", int, int]


class Kind(Enum):
    """What a block is the body of."""

    FUNCTION = 1
    TYPE = 2
    SPACE = 3
    """A namespace or module, whose contents may be no deeper than itself."""


Definitions = tuple[tuple[Kind, re.Pattern[str]], ...]


@dataclass(frozen=True, slots=True)
class Braced:
    """A language with blocks in braces. The last group of a pattern is the name, of what stands before the brace."""

    opener: re.Pattern[str]
    definitions: Definitions
    short: Definitions = ()
    """Those of a statement that has no braces, whole."""
    newlines: bool = False
    """Whether a line's end may end a statement."""
    nested: bool = True
    """Whether there are functions with a name in functions."""
    receiver: re.Pattern[str] | None = None
    """What a function belongs to, in its line."""
    initialisers: bool = False
    """Whether braces may stand between a signature and its body, as in C++."""


@dataclass(frozen=True, slots=True)
class Indented:
    """A language whose blocks are seen by their indentation. The last group of `definition` is the name."""

    opener: re.Pattern[str]
    definition: re.Pattern[str]
    decorator: re.Pattern[str] | None = None
    brackets: str = ""
    """Those that make a statement go on in the next line."""
    closer: re.Pattern[str] | None = None
    """What ends a block in a line that is no deeper than it."""
    joins: re.Pattern[str] | None = None
    """What does not end one."""
    opens: re.Pattern[str] | None = None
    """A signature whose block is ended by `closer`, however deep it is."""
    prose: bool = False
    """Whether what looks like a definition counts only if something belongs to it."""

    @property
    def plain(self) -> bool:
        """Whether nothing but indentation tells where a block ends, as in Python."""
        return self.closer is None and self.opens is None


@dataclass(frozen=True, slots=True)
class Document:
    """A format of headings, tables, keys or statements."""

    format: str
    opener: re.Pattern[str] | None = None


Language = Braced | Indented | Document


def found(definitions: Definitions, header: str, *, functions: bool = True) -> Found | None:
    """The definition that a header is of: its kind, and where its name stands in the header."""
    for kind, pattern in definitions:
        if (functions or kind is not Kind.FUNCTION) and (match := pattern.search(header)) is not None:
            return kind, match.start(match.lastindex or 0), match.end(match.lastindex or 0)
    return None


def language_of(path: str, lines: Sequence[str]) -> Language | None:
    """By the extension or the name of a file, or the first line of one without an extension."""
    name = PurePath(path.replace("\\", "/")).name.lower()
    extension = name.rpartition(".")[2] if "." in name[1:] else ""
    key = _NAMES.get(name) or _EXTENSIONS.get(extension)
    if key is None and not extension and lines and lines[0].startswith("#!"):
        interpreters = re.findall("python|bash|sh|ruby|perl|node|lua|php", lines[0][:200])
        key = _EXTENSIONS.get(interpreters[-1]) if interpreters else None
    return _LANGUAGES.get(key) if key else _GENERIC


_BLOCK = r"(?P<block>/\*)|"
_SLASHES = r"(?P<cut>//)|" + _BLOCK
_CHAR = r"(?P<whole>'(?:\\[^']{1,10}|\\'|[^'\\])')|"
_CHAR_OR_EMPTY = _CHAR.replace("(?P<whole>", r"(?P<whole>\b(?:interface|struct)\s*\{\s*\}|")
_DIRECTIVE = r"(?P<directive>^\s*#)|"
_MODIFIERS = (
    r"(?:export|public|private|protected|internal|static|abstract|final|async|pub|local|inline|override|open)\s+"
)


_re = re.compile


def _type(words: str, name: str = r"[\w.]+") -> tuple[Kind, re.Pattern[str]]:
    return Kind.TYPE, _re(rf"^[^=]*?\b(?:{words})\s+({name})")


def _function(pattern: str) -> tuple[Kind, re.Pattern[str]]:
    return Kind.FUNCTION, _re(pattern)


_NO_CALL = (  # What has parentheses and a block but defines nothing.
    r"(?!(?:if|for|while|switch|catch|return|foreach|using|lock|fixed|synchronized|sizeof|function|with|when|super|await"
    r"|noexcept|throw|requires|decltype|alignas|_Alignas|explicit|__attribute__|__attribute|__declspec|else|typeof|new)\b)"
)
_C_NAME = r"(?<![\w.@:~])" + _NO_CALL + r"(\w+\s*::[\w:~]+|[\w~][\w:~]*)\s*\(\)"
_C_BEFORE = r"^(?![^=]*\bnew\b)(?:\s*(?:public|private|protected)\s*:(?!:))?"
# The last name before parentheses, but for macros, `EXPORT(int) name(…) GUARDED(…)`; if there is none, a macro's.
_C_FUNCTIONS = (
    _function(_C_BEFORE + r"(?:[^=:]|::)*(?![A-Z_0-9]+\s*\()" + _C_NAME),
    _function(_C_BEFORE + r"[^=:]*?" + _C_NAME),
)
_C_OPERATOR = _function(r"\b((?:\w+::)?operator\s*(?:\(\)|\[\]|[^\w\s()]{1,3}|[\w ]{1,40}?))\s*\(\)")
_C_TYPE = (
    Kind.TYPE,
    _re(
        r"^(?=[^=]*$).*?\b(?:class|struct|union|enum)\s+(?:class\s+|struct\s+)?"
        r"(?:\w+\s*\(\)\s*|[A-Z_0-9]+\s+(?!final\b|:))?(\w[\w:]*\w|\w)"
    ),
)
_C_UNNAMED = Kind.TYPE, _re(r"^\s*typedef\s+(?:struct|union|enum)\s*()$")
_JS_FUNCTION = r"(?:=>\s*$|\bfunction\b[\s*\w$]*\(\)[^=,(]*$)"
_JS_DEFINITIONS: Definitions = (
    _function(r"^[^=]*?\bfunction\b[\s*]*([\w$]+)\s*(?:\(\)|<)"),
    (Kind.TYPE, _re(r"(?:^|[\s=])(?:class|interface|enum|namespace|module)\s+(?!extends\b|implements\b)([\w$.]+)")),
    (Kind.TYPE, _re(r"^\s*(?:export\s+)?(?:declare\s+)?type\s+([\w$]+)[^=]*=\s*$")),
    _function(r"^\s*(?:export\s+)?(?:const|let|var)\s+([\w$]+).*" + _JS_FUNCTION),
    _function(r"(?:^|,)[\w\s]*?(?<![\w$.#])([\w$.#]+)[?!]?\s*[:=][^,]*" + _JS_FUNCTION),
    _function(r"(?:^|[,)])[\w\s*]*?(?<![\w$#])" + _NO_CALL + r"([\w$#]+)\??\s*\(\)\s*(?::[^,=(]*)?$"),
    _function(r"^\s*export\s+(default)\s+(?:async\s+)?(?:function|class)\b"),
)
_C_TYPES = (*_C_FUNCTIONS, _C_TYPE, _C_UNNAMED)

_JAVASCRIPT = Braced(
    _re(r"(?P<cut>//)|" + _BLOCK + r"(?P<long>`)|(?P<short>[\"'])|(?P<regex>/)"),
    _JS_DEFINITIONS,
    short=(
        _function(
            r"^\s*(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*(?::[^=]*)?=\s*(?:async\s+)?"
            r"(?:\(\)|[\w$]+)\s*(?::[^=]*)?=>"
        ),
    ),
    newlines=True,
)

_LANGUAGES: dict[str, Language | None] = {
    "none": None,
    "c": Braced(_re(_DIRECTIVE + _SLASHES + _CHAR + r'(?P<short>")'), _C_TYPES, nested=False),
    "cpp": Braced(
        _re(_DIRECTIVE + _SLASHES + _CHAR + r'(?P<bare>\bu?8?L?R"[^\s()\\"]{0,16}\()|(?P<short>")'),
        (_C_OPERATOR, *_C_TYPES, (Kind.SPACE, _re(r"\bnamespace\s+(?:\[\]\s*)?([\w:]+)"))),
        nested=False,
        initialisers=True,
    ),
    "csharp": Braced(
        _re(_DIRECTIVE + _SLASHES + _CHAR + r'(?P<bare>\$?@\$?")|(?P<long>""")|(?P<short>")'),
        (
            (Kind.SPACE, _re(r"^\s*namespace\s+([\w.]+)")),
            _type("class|struct|interface|enum|record(?: struct| class)?"),
            *_C_FUNCTIONS,
            _function(r"^[^=()]*[\w>\]?]\s+(\w+(?:\[\])?)\s*$"),
        ),
        short=(
            _function(r"^[^=()]*?(?<![\w.@])(\w+)\s*\(\)[^=()]*=>"),
            _function(r"^[\w\s.?\[\]]*[\w>\]?]\s+(\w+)\s*=>"),
        ),
        nested=False,
    ),
    "go": Braced(
        _re(_SLASHES + _CHAR_OR_EMPTY + r'(?P<bare>`)|(?P<short>")'),
        (
            _function(r"^\s*func\s*(?:\(\)\s*)?(\w+)"),
            (Kind.TYPE, _re(r"^\s*(?:type\s+)?(?!map\b)(\w+)\s*(?:\[\])?\s*(?:struct|interface)\s*$")),
            _function(r"^\s*(?:var\s+)?(\w+)\s*:?=\s*func\s*\(\)"),
        ),
        newlines=True,
        receiver=_re(r"func \((?:\w+ )?\*?(\w+)"),
    ),
    "java": Braced(
        _re(_SLASHES + _CHAR + r'(?P<long>""")|(?P<short>")'),
        (_type("class|interface|enum|record"), *_C_FUNCTIONS),
        nested=False,
    ),
    "javascript": _JAVASCRIPT,
    "kotlin": Braced(
        _re(_SLASHES + _CHAR + r'(?P<bare>""")|(?P<short>")'),
        (
            _function(r"\bfun\b\s*(?:\w+\.)?(?:[\w?]+\s*\.)?(`[^`]*`|\w+)\s*\(\)"),
            _type("class|interface|object"),
            (Kind.TYPE, _re(r"\b(companion object)\b")),
            _function(r"\b(constructor|init)\b\s*(?:\(\)|$)"),
        ),
        short=(
            _function(r"^[\w\s@()]*?\bfun\b\s*(?:[\w?]+\s*\.)?(`[^`]*`|\w+)\s*\(\)"),
            (Kind.TYPE, _re(r"^[\w\s@()]*?\b(?:class|interface|object)\s+(\w+)")),
        ),
        newlines=True,
    ),
    "php": Braced(
        _re(r"(?P<cut>//|#(?!\[))|" + _BLOCK + r"(?P<heredoc><<<\s*[\"']?[A-Za-z_]\w*)|(?P<short>[\"'])"),
        (
            _function(r"\bfunction\s+&?\s*(\w+)"),
            (Kind.TYPE, _re(r"^[^=]*?(?<![\w$:>])(?:class|interface|trait|enum)\s+(?!extends\b)(\w+)")),
            (Kind.SPACE, _re(r"^[^=]*?\bnamespace\s+([\w\\]+)\s*$")),
        ),
    ),
    "rust": Braced(
        _re(_SLASHES + r'(?P<bare>\bb?r#*")|' + _CHAR + r'(?P<long>")'),
        (
            _function(r"\bfn\s+(\w+)"),
            (Kind.SPACE, _re(r"\bmod\s+(\w+)\s*$")),
            (Kind.TYPE, _re(r"^[^=]*?\b(?:struct|enum|union|trait)\s+(\w+)")),
            (Kind.TYPE, _re(r"^[\s#\[\]]*(?:unsafe\s+)?impl\b(?:[^={]*?\sfor\s)?[\s&!]*(?:(?:dyn|mut)\s+)?([\w:]+)")),
            _function(r"\bmacro_rules!\s*(\w+)"),
        ),
    ),
    "swift": Braced(
        _re(_SLASHES + r'(?P<long>""")|(?P<short>")'),
        (
            _function(r"\bfunc\s+(\w+|[^\w\s()]{1,3})"),
            _type("class|struct|enum|protocol|extension|actor"),
            _function(r"\b(init|deinit|subscript)\b[?!]?\s*(?:\(\)|$)"),
            _function(r"\bvar\s+(\w+)\s*:[^=:]*$"),
        ),
        newlines=True,
    ),
    "bash": Indented(
        _re(r"(?P<whole>\\.)|(?P<cut>(?:^|(?<=\s))#)|(?P<heredoc>(?<!<)<<-?\s*[\"'\\]?[A-Za-z_]\w*)|(?P<short>[\"'])"),
        _re(r"\s*(?:function\s+([\w:.-]+)|([\w:.-]+)\s*\(\s*\))"),
        closer=_re(r"[})]"),
        joins=_re(r"[{(]\s*$"),
        opens=_re(r"[{(]\s*$"),
    ),
    "lua": Indented(
        _re(r"(?P<block>--\[=*\[)|(?P<cut>--)|(?P<bare>\[=*\[)|(?P<short>[\"'])"),
        _re(r"\s*(?:local\s+)?(?:function\s+([\w.:]+)|([\w.:]+)\s*=\s*function\b)"),
        brackets="()",
        closer=_re(r"end\b"),
        opens=_re(r"^(?!.*\bend[\s,;)]*$)"),
    ),
    "make": Indented(
        _re(r"(?P<cut>(?:^|(?<=\s))#)"),
        _re(r"(?!\.[A-Z])([^\s:#=][^:=#]*):(?![:=]?=)"),
        joins=_re(r"(?:-?include|ifn?eq|ifn?def|else|endif)\b"),
    ),
    "perl": Indented(
        _re(
            r"(?P<whole>\\.)|(?P<block>^=(?!cut)[a-z])|(?P<cut>(?:^|(?<=\s))#)"
            r"|(?P<heredoc><<~?[\"']?[A-Z_]\w*)|(?P<short>[\"'])"
        ),
        _re(r"\s*(?:sub|package)\s+([\w:']+)(?![\w:'])(?![^{]*;\s*$)"),
        closer=_re(r"\}"),
        joins=_re(r"\{"),
        opens=_re(r"\{\s*$"),
    ),
    "python": Indented(
        _re(r"(?P<cut>#)|(?P<long>\"\"\"|''')|(?P<short>[\"'])"),
        _re(r"\s*(?:async\s+)?(?:def|class)\s+(\w+)"),
        decorator=_re(r"\s*@"),
        brackets="()[]{}",
    ),
    "ruby": Indented(
        _re(
            r"(?P<block>^=begin\b)|(?P<cut>(?:^|(?<=\s))#)"
            r"|(?P<heredoc><<[~-]?[\"'`]?[A-Z_]\w*)|(?P<short>[\"'`])"
        ),
        _re(
            r"\s*(?:(?:private|public|protected|private_class_method|module_function)\s+)?"
            r"(?:def|class|module)\s+(<<\s*\w+|(?:self\.)?\w[\w:.]*[?!=]?|[^\w\s(]{1,3})"
        ),
        brackets="()",
        closer=_re(r"end\b"),
        joins=_re(r"(?:rescue|ensure|else|then)\b"),
        opens=_re(r"^(?!.*\bend\s*$)(?!\s*def\s[^=(]*=\s)(?!\s*def\s[^=(]*\(.*\)\s*=\s)"),
    ),
    "scala": Indented(
        _re(_SLASHES + _CHAR + r'(?P<bare>""")|(?P<short>")'),
        _re(r"[\w\s@()\[\]]*?\b(?:def|class|object|trait|enum|given)\s+(`[^`]*`|[\w$]+|[^\w\s(]{1,3})"),
        decorator=_re(r"\s*@[\w.]+(?:\s*\(.*\))?\s*$"),
        brackets="()[]",
        closer=_re(r"[})]|end\b"),
        joins=_re(r"[{):]"),
        opens=_re(r"\{\s*$"),
    ),
    "html": Document("html", _re(r"(?P<block><!--)")),
    "ini": Document("ini"),
    "markdown": Document("markdown"),
    "rst": Document("rst"),
    "sql": Document("sql", _re(r"(?P<cut>--)|" + _BLOCK + r"(?P<bare>'|\$\w{0,20}\$)")),
    "toml": Document("toml", _re(r"(?P<cut>#)|(?P<bare>''')|(?P<long>\"\"\")|(?P<short>[\"'])")),
    "yaml": Document("yaml"),
}

_GENERIC = Indented(
    _re(r"(?P<cut>^\s*(?:#|//|--|;|%))|" + _BLOCK.rstrip("|")),
    _re(
        rf"\s*(?:{_MODIFIERS})?(?:{_MODIFIERS})?(?:{_MODIFIERS})?"
        r"(?:def|defp|defmodule|defmacro|class|function|func|fun|fn|sub|proc|procedure|module|namespace|interface|struct"
        r"|enum|union|impl|trait|protocol|contract|object|record|type|subroutine|package)\s+([\w.:$]+[?!]?)(?![\w.:$?!])"
        r"(?=\s*[({<:=\[]|\s*$|\s+(?:extends|implements|for|is|as)\b|.*[{:]\s*$|.*\bdo\s*$)"
    ),
    decorator=_re(r"\s*@\w+(?:\s*\(.*\))?\s*$"),
    closer=_re(r"\}|end\b"),
    joins=_re(r"[{)\]]|(?:begin|rescue|ensure|else|elsif|except|finally|catch)\b"),
    opens=_re(r"(?:\{|\bdo|\bbegin)\s*$"),
    prose=True,
)

_NAMES = {
    "makefile": "make",
    "gnumakefile": "make",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "vagrantfile": "ruby",
    ".bashrc": "bash",
    ".bash_profile": "bash",
    ".profile": "bash",
    ".zshrc": "bash",
    ".editorconfig": "ini",
    ".gitconfig": "ini",
    "cargo.lock": "toml",
    "poetry.lock": "toml",
    "uv.lock": "toml",
    "pipfile": "toml",
}

_EXTENSIONS = {
    extension: key
    for key, extensions in {
        "bash": "sh bash zsh ksh bats",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ino cu cuh mm m ipp tpp inl",
        "csharp": "cs csx",
        "go": "go",
        "html": "html htm xhtml",
        "ini": "ini cfg conf properties service desktop",
        "java": "java",
        "javascript": "js jsx mjs cjs ts tsx mts cts node",
        "kotlin": "kt kts",
        "lua": "lua",
        "make": "mk mak make",
        "markdown": "md markdown mdx mdown qmd",
        "none": "json jsonl ndjson json5 jsonc geojson txt text log csv tsv lock xml svg map ipynb diff patch po pot",
        "perl": "pl pm t perl",
        "php": "php phtml php5 php7 inc",
        "python": "py pyi pyw pyx python bzl",
        "ruby": "rb rake gemspec ru ruby",
        "rst": "rst rest",
        "rust": "rs",
        "scala": "scala sc sbt",
        "sql": "sql ddl psql pgsql",
        "swift": "swift",
        "toml": "toml",
        "yaml": "yaml yml",
    }.items()
    for extension in extensions.split()
}

"""Regular expressions for the comments, strings and definitions of each language."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ripwrap._code.languages import language_name

NameSpan = tuple["Kind", int, int]
"""Kind of a definition, and the start and end of its name, as offsets in a header."""


class Kind(Enum):
    """Kind of a definition in a language with braces."""

    FUNCTION = 1
    TYPE = 2
    NAMESPACE = 3
    """Namespace or module; its contents may have the same indentation as its first line."""


DefinitionPatterns = tuple[tuple[Kind, re.Pattern[str]], ...]


@dataclass(frozen=True, slots=True)
class Braced:
    """A language with blocks in braces."""

    opener: re.Pattern[str]
    definitions: DefinitionPatterns
    short: DefinitionPatterns = ()
    newlines: bool = False
    nested: bool = True
    receiver: re.Pattern[str] | None = None
    initialisers: bool = False


@dataclass(frozen=True, slots=True)
class Indented:
    """A language whose blocks end where the indentation decreases, or at a closing line."""

    opener: re.Pattern[str]
    definition_start: re.Pattern[str]
    decorator: re.Pattern[str] | None = None
    brackets: str = ""
    closer: re.Pattern[str] | None = None
    joins: re.Pattern[str] | None = None
    opens: re.Pattern[str] | None = None
    prose: bool = False

    @property
    def plain(self) -> bool:
        """True if only indentation ends a block, as in Python."""
        return self.closer is None and self.opens is None


@dataclass(frozen=True, slots=True)
class Document:
    """A format whose sections begin at headings (Markdown), tables (TOML), keys (YAML) or statements (SQL)."""

    format: str
    opener: re.Pattern[str] | None = None


Language = Braced | Indented | Document


def find_definition(definitions: DefinitionPatterns, header: str, *, functions: bool = True) -> NameSpan | None:
    """Return the kind of the definition with this header, and the start and end of its name in the header.

    The header of a definition is the text before its body. Return None if the text is not the header of a definition.
    If `functions` is False, functions do not count.
    """
    for kind, pattern in definitions:
        if (functions or kind is not Kind.FUNCTION) and (match := pattern.search(header)) is not None:
            return kind, match.start(match.lastindex or 0), match.end(match.lastindex or 0)
    return None


def language_patterns(path: str, lines: Sequence[str]) -> Language | None:
    """Return the patterns for a file's language.

    Return generic patterns if the language is unknown, and None for formats without definitions, such as JSON and plain
    text.
    """
    name = language_name(path, lines[0] if lines else "")
    if name is None:
        return _GENERIC
    return _LANGUAGES.get(_READ_AS.get(name, name))


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


_NO_CALL = (  # Words that may precede parentheses and a block without defining a function.
    r"(?!(?:if|for|while|switch|catch|return|foreach|using|lock|fixed|synchronized|sizeof|function|with|when|super|await"
    r"|noexcept|throw|requires|decltype|alignas|_Alignas|explicit|__attribute__|__attribute|__declspec|else|typeof|new)\b)"
)
_C_NAME = r"(?<![\w.@:~])" + _NO_CALL + r"(\w+\s*::[\w:~]+|[\w~][\w:~]*)\s*\(\)"
_C_BEFORE = r"^(?![^=]*\bnew\b)(?:\s*(?:public|private|protected)\s*:(?!:))?"
# The function name is the last name before parentheses that is not a macro, as in `EXPORT(int) name(…) GUARDED(…)`. If
# all names are macros (in capital letters), the function name is the first of them.
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
_JS_TYPE = Kind.TYPE, _re(r"^\s*(?:export\s+)?(?:declare\s+)?type\s+([\w$]+)[^=]*=")
_JS_DEFINITIONS: DefinitionPatterns = (
    _function(r"^[^=]*?\bfunction\b[\s*]*([\w$]+)\s*(?:\(\)|<)"),
    (Kind.TYPE, _re(r"(?:^|[\s=])(?:class|interface|enum|namespace|module)\s+(?!extends\b|implements\b)([\w$.]+)")),
    _JS_TYPE,
    _function(r"^\s*(?:export\s+)?(?:const|let|var)\s+([\w$]+).*" + _JS_FUNCTION),
    _function(r"(?:^|,)[\w\s]*?(?<![\w$.#])([\w$.#]+)[?!]?\s*[:=][^,]*" + _JS_FUNCTION),
    _function(r"(?:^|[,)])[\w\s*]*?(?<![\w$#])" + _NO_CALL + r"([\w$#]+)\??\s*\(\)\s*(?::[^,=(]*)?$"),
    _function(r"^\s*export\s+(default)\s+(?:async\s+)?(?:function|class)\b"),
)
_C_TYPES = (*_C_FUNCTIONS, _C_TYPE, _C_UNNAMED)
_SIGNATURE = _function(
    r"^(?=[^=]*$)(?!\s*(?:return|throw|new|else|do|case|assert|yield|await|goto)\b).*[\w>\]?]\s+(\w+)\s*\(\)"
)
"""Pattern for a method without a body in an interface or abstract class, as in `int size()`; calls have no type."""

_JAVASCRIPT = Braced(
    _re(r"(?P<cut>//)|" + _BLOCK + r"(?P<long>`)|(?P<short>[\"'])|(?P<regex>/)"),
    _JS_DEFINITIONS,
    short=(
        _function(
            r"^\s*(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*(?::[^=]*)?=\s*(?:async\s+)?"
            r"(?:\(\)|[\w$]+)\s*(?::[^=]*)?=>"
        ),
        _JS_TYPE,
    ),
    newlines=True,
)

_READ_AS = {
    "arduino": "cpp",
    "bats": "bash",
    "c header": "c",
    "cython": "python",
    "objective-c": "cpp",
    "php include": "php",
    "quarto": "markdown",
    "starlark": "python",
    "tsx": "javascript",
    "typescript": "javascript",
}
"""Languages that are read with the patterns of another language."""

_LANGUAGES: dict[str, Language] = {
    "c": Braced(_re(_DIRECTIVE + _SLASHES + _CHAR + r'(?P<short>")'), _C_TYPES, nested=False),
    "cpp": Braced(
        _re(_DIRECTIVE + _SLASHES + _CHAR + r'(?P<bare>\bu?8?L?R"[^\s()\\"]{0,16}\()|(?P<short>")'),
        (_C_OPERATOR, *_C_TYPES, (Kind.NAMESPACE, _re(r"\bnamespace\s+(?:\[\]\s*)?([\w:]+)"))),
        nested=False,
        initialisers=True,
    ),
    "csharp": Braced(
        _re(_DIRECTIVE + _SLASHES + _CHAR + r'(?P<bare>\$?@\$?")|(?P<long>""")|(?P<short>")'),
        (
            (Kind.NAMESPACE, _re(r"^\s*namespace\s+([\w.]+)")),
            _type("class|struct|interface|enum|record(?: struct| class)?"),
            *_C_FUNCTIONS,
            _function(r"^[^=()]*[\w>\]?]\s+(\w+(?:\[\])?)\s*$"),
        ),
        short=(
            _function(r"^[^=()]*?(?<![\w.@])(\w+)\s*\(\)[^=()]*=>"),
            _function(r"^[\w\s.?\[\]]*[\w>\]?]\s+(\w+)\s*=>"),
            (Kind.TYPE, _re(r"^[^=()]*\brecord\s+(?:struct\s+|class\s+)?(\w+)\s*\(\)")),
            _SIGNATURE,
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
        short=((Kind.TYPE, _re(r"^\s*type\s+(\w+)")),),
        newlines=True,
        receiver=_re(r"func \((?:\w+ )?\*?(\w+)"),
    ),
    "java": Braced(
        _re(_SLASHES + _CHAR + r'(?P<long>""")|(?P<short>")'),
        (_type("class|interface|enum|record"), *_C_FUNCTIONS),
        short=(_SIGNATURE,),
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
            (Kind.NAMESPACE, _re(r"^[^=]*?\bnamespace\s+([\w\\]+)\s*$")),
        ),
        short=(_function(r"^(?!\s*use\b)[^=]*?\bfunction\s+&?\s*(\w+)\s*\(\)"),),
    ),
    "rust": Braced(
        _re(_SLASHES + r'(?P<bare>\bb?r#*")|' + _CHAR + r'(?P<long>")'),
        (
            _function(r"\bfn\s+(\w+)"),
            (Kind.NAMESPACE, _re(r"\bmod\s+(\w+)\s*$")),
            (Kind.TYPE, _re(r"^[^=]*?\b(?:struct|enum|union|trait)\s+(\w+)")),
            (Kind.TYPE, _re(r"^[\s#\[\]]*(?:unsafe\s+)?impl\b(?:[^={]*?\sfor\s)?[\s&!]*(?:(?:dyn|mut)\s+)?([\w:]+)")),
            _function(r"\bmacro_rules!\s*(\w+)"),
        ),
        short=(
            _function(r"^[^=]*?\bfn\s+(\w+)"),
            (Kind.TYPE, _re(r"^[^=]*?\b(?:struct|union)\s+(\w+)")),
            (Kind.TYPE, _re(r"^\s*(?:pub\b\s*(?:\(\))?\s*)?type\s+(\w+)")),
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
        short=(_function(r"^[^=]*?\bfunc\s+(\w+)"),),
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

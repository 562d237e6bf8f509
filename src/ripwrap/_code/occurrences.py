"""Find the places of a file that have a name, and tell definitions, imports, calls and other uses apart; no I/O.

No parser is used: comments and strings are found by the scanner, definitions by the outline, and the rest by the text
around the name. The time is in proportion to the size of the file.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from ripwrap._code.enclosing import definition_kind
from ripwrap._code.languages import language_name
from ripwrap._code.outline import Section
from ripwrap._code.patterns.languages import Document, language_patterns
from ripwrap._code.patterns.outline import PatternOutline
from ripwrap._code.patterns.scanner import LiteralSpan, scan_lines
from ripwrap._code.references import FileOccurrences, Occurrence, ReferenceKind, ReferenceSyntax, parts_of

_MAX_IMPORT_LINES = 200
"""Maximum number of lines of an import."""
_MAX_HEADER_LINES = 30
"""Maximum number of lines of the signature of a function."""
_MAX_PER_LINE = 100
"""Maximum number of places of a line; a line of generated code may have thousands."""

_PYTHON = frozenset({"python", "cython", "starlark"})
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_C_LIKE = frozenset({"c", "c header", "cpp", "objective-c", "arduino", "java", "csharp"})
_DOLLAR_STRINGS = frozenset({"kotlin", "scala", "php", "bash", "bats", "perl"})

_IMPORTS = {
    **dict.fromkeys(_PYTHON, r"\s*(?:from\s+[\w.]+\s+c?import\b|c?import\s|load\()"),
    **dict.fromkeys(_SCRIPTS, r"\s*(?:import\b(?!\s*\()|export\s+(?:type\s+)?[{*])|.*\brequire\s*\("),
    **dict.fromkeys(("java", "kotlin", "scala", "swift", "go"), r"\s*(?:@\w+\s+)?import\b"),
    "rust": r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:use|extern\s+crate)\s",
    "csharp": r"\s*(?:global\s+)?using\s+[\w.=\s]+;",
    "cpp": r"\s*using\s",
    "php": r"\s*use\s",
    "perl": r"\s*(?:use|require)\s",
    "lua": r".*\brequire\b",
    "ruby": r"\s*(?:include|extend|prepend)\s",
}
_OTHER_IMPORTS = r"\s*(?:import|from|use|using)\s"
_ENDED_BY_SEMICOLON = frozenset({"rust", "cpp", "php", "perl", "csharp"})
_IMPORTS_ALL = re.compile(r"(?:\bimport\s+\*|[.:]\*|\._)\s*+;?\s*+$|^\s*+export\s+\*")

_WORD = re.compile(r"\w+")
_ALIAS = re.compile(r"(\w+)\s+as\s+(\w+)")
_MODULE_PART = re.compile(r"\s*(?:\.\s*[^\W\d*]|::\s*[^\W\d*{]|import\b)")
"""Pattern for the text after a name in an import that is only a part of the name of a module."""

_CALL = re.compile(r"\s{0,20}(?:\?\.|\?|!)?\s{0,20}(?:(?:::)?<[\w\s,.<>\[\]?&*:'|]{0,200}>\s{0,20})?\(|!\s{0,20}[\[{(]")
_SHELL_COMMAND = re.compile(r"(?:^|[|;&(`!]|\b(?:then|do|else|if|while|until|exec|sudo|time))\s*$")
_DECORATOR = re.compile(r"\s*@(?:\w+\s*\.\s*)*")
_MEMBER = re.compile(r"(?:\.|->|::|\?\.|!!\.)\s*$")
_RECEIVER = re.compile(r"([\w$]+)\s*(?:\(\s*\))?\s*(?:\.|->|::|\?\.|!!\.)\s*$")
_ASSIGNED = re.compile(r"\s*(?::[^=]+)?=(?!=)")
_LOOPS_OVER = re.compile(r"\bfor\s+[\w,\s(*]*$")
_PARAMETER_END = re.compile(r"\s*(?:[,:=)]|$)")
_NOT_A_TYPE = frozenset(
    {
        *(
            "return",
            "else",
            "new",
            "throw",
            "case",
            "goto",
            "delete",
            "co_await",
            "co_return",
            "co_yield",
            "await",
            "yield",
        ),
        *("typeof", "sizeof", "in", "is", "as", "do", "not", "and", "or"),
    }
)
"""Words that are no type in front of a name; without them, `return name(…)` would declare a function."""
_DECLARED_TYPE = re.compile(r"[\w:<>,\[\]~.?]+")


def find_occurrences(
    path: str, lines: Sequence[str], name: str, defined: Collection[int], numbers: Sequence[int] | None = None
) -> FileOccurrences:
    """Return the places of a file that have a name."""
    return _OccurrenceFinder(path, lines, name, defined, numbers).occurrences()


class _OccurrenceFinder:
    def __init__(
        self, path: str, lines: Sequence[str], name: str, defined: Collection[int], numbers: Sequence[int] | None
    ) -> None:
        self._path = path
        self._name = name
        self._numbers = numbers
        self._defined = defined
        self._language = language_name(path, lines[0] if lines else "") or ""
        patterns = language_patterns(path, lines)
        self._is_code = patterns is not None and not isinstance(patterns, Document)
        self._spans: dict[int, list[LiteralSpan]] = {}
        self._scanned = scan_lines(lines, patterns.opener if patterns else None, self._spans)
        self._lines = self._scanned.lines
        edge = r"[\w$]" if self._language in _SCRIPTS else r"\w"
        self._pattern = re.compile(rf"(?<!{edge}){re.escape(name)}(?!{edge})")
        self._outline = PatternOutline(path, lines) if numbers is None else None
        self._functions: dict[Section, bool] = {}
        self._taken: set[int] = set()
        self._scopes: list[tuple[int, int]] = []
        """First and last line of each function that has a parameter or variable with the name."""

    def occurrences(self) -> FileOccurrences:
        """Return the places, in order."""
        found: list[Occurrence] = []
        texts: dict[int, str] = {}
        for index, line in enumerate(self._lines):
            if self._name not in line:
                continue
            for number, match in enumerate(self._pattern.finditer(line)):
                if number == _MAX_PER_LINE:
                    break
                one = self._occurrence(index, match)
                texts.setdefault(one.line, line)
                if one.enclosing is not None:
                    texts.setdefault(one.enclosing.line, self._lines[one.enclosing.line - 1])
                found.append(one)
        scopes = _joined(self._scopes)
        shadowed = [_shadowed(one, scopes) for one in found]
        imports = [self._scanned.code[index] for index in sorted(self._import_lines)]
        return FileOccurrences(
            self._path,
            self._language,
            texts,
            tuple(shadowed),
            imports_all=self._imports_all,
            aliases={alias: module for line in imports for module, alias in _ALIAS.findall(line)},
            imported=_words(imports),
            modules=_words(
                line for line in imports if self._language in _PYTHON and line.lstrip().startswith("import")
            ),
        )

    def _number(self, index: int) -> int:
        return index + 1 if self._numbers is None else self._numbers[index]

    def _occurrence(self, index: int, match: re.Match[str]) -> Occurrence:
        line, start, end = self._lines[index], match.start(), match.end()
        enclosing = self._outline.enclosing(index + 1) if self._outline else None
        number, column = self._number(index), start + 1
        syntax = self._syntax(index, start)
        if syntax != "code":
            return Occurrence(number, column, "mention", syntax, enclosing=enclosing)
        before, after = line[:start], line[end:]
        is_member = bool(_MEMBER.search(before[-20:]))
        receiver = _RECEIVER.search(before[-200:]) if is_member else None
        definition = self._definition(index, before, after, enclosing, is_member=is_member)
        if definition is not None:
            owner, is_local = definition
            kind: ReferenceKind = "mention" if is_local else "definition"
            if is_local:
                self._bind(enclosing)
            return Occurrence(
                number, column, kind, syntax, is_local=is_local, enclosing=enclosing, owner=owner
            )  # a member of a class is no member of a receiver here
        if index in self._import_lines:
            is_module = _MODULE_PART.match(after) is not None
            return Occurrence(number, column, "import", syntax, is_member=is_module, enclosing=enclosing)
        is_local = not is_member and self._is_local(index, before, after, enclosing)
        return Occurrence(
            number,
            column,
            "call" if self._is_call(before, after) and not is_local else "mention",
            syntax,
            is_member=is_member,
            receiver=receiver[1] if receiver else "",
            is_local=is_local,
            enclosing=enclosing,
        )

    def _syntax(self, index: int, start: int) -> ReferenceSyntax:
        if not self._is_code:
            return "text"
        span = next((one for one in self._spans.get(index, ()) if one.start <= start < one.end), None)
        if span is None or span.kind == "directive":
            return "code"
        if span.kind in ("cut", "block"):
            return "comment"
        inside = self._lines[index][span.start : start]
        return "code" if self._is_interpolated(index, span, inside) else "string"

    def _is_interpolated(self, index: int, span: LiteralSpan, inside: str) -> bool:
        """Return True if the end of `inside`, the beginning of a string, is code, as in `f"{name}"` of Python."""
        language = self._language
        if language in _DOLLAR_STRINGS and span.opener != "'" and inside.endswith(("$", "${", "$(", "@{")):
            return True
        brace = inside.rfind("{")
        if brace <= inside.rfind("}"):
            return language == "swift" and inside.rfind("\\(") > inside.rfind(")")
        mark = inside[brace - 1 : brace]
        if language in _SCRIPTS:
            return mark == "$"
        if language == "ruby":
            return mark == "#"
        if language in _DOLLAR_STRINGS:
            return mark == "$"
        if language in _PYTHON or language == "csharp":
            opener = self._opener_before(index, span)
            return ("f" in opener or "$" in opener) and (
                len(inside[: brace + 1]) - len(inside[: brace + 1].rstrip("{"))
            ) % 2 == 1
        return False

    def _opener_before(self, index: int, span: LiteralSpan) -> str:
        """Return the letters before a string, and its opener, in lower case; of a string over several lines, too."""
        while not span.opener and index and (above := self._spans.get(index - 1)):
            index, span = index - 1, above[-1]
        return f"{self._lines[index][max(span.start - 2, 0) : span.start]}{span.opener}".lower()

    def _definition(
        self, index: int, before: str, after: str, enclosing: Section | None, *, is_member: bool
    ) -> tuple[str, bool] | None:
        """Return the owner of the definition at a place, and True if it is local to a function; None for a use."""
        if enclosing is not None and enclosing.line == index + 1 and parts_of(enclosing)[-1] == self._name:
            if index in self._taken:
                return None
            self._taken.add(index)
            return self._owner_of(enclosing), False
        is_field = self._is_field(before, after, enclosing, is_member=is_member)
        first = index in self._defined and index not in self._taken
        self._taken.add(index)
        declared = not is_member and (first or self._is_declared(before, after, enclosing))
        if not is_field and not declared:
            return None
        if enclosing is None:
            return "", False
        if self._is_function(enclosing):
            return (self._class_of(enclosing), False) if is_field else ("", True)
        return parts_of(enclosing)[-1], False

    def _is_field(self, before: str, after: str, enclosing: Section | None, *, is_member: bool) -> bool:
        """Return True for an attribute of Python: `self.name = …`, or `name = …` directly in a class."""
        if self._language not in _PYTHON or enclosing is None or not _ASSIGNED.match(after):
            return bool(
                self._language in _PYTHON
                and enclosing is not None
                and not before.strip()
                and after.lstrip().startswith(":")
                and not self._is_function(enclosing)
            )
        if is_member:
            return before.strip() in ("self.", "cls.")
        return not before.strip() and not self._is_function(enclosing) and after[:1] in (" ", ":")

    def _is_declared(self, before: str, after: str, enclosing: Section | None) -> bool:
        """Return True for a declaration without a body, such as `int name(int);` of C."""
        if self._language not in _C_LIKE or not after.lstrip().startswith("("):
            return False
        if enclosing is not None and self._is_function(enclosing):
            return False
        words = before.replace("*", " ").replace("&", " ").split()
        return bool(words) and not any(word in _NOT_A_TYPE or not _DECLARED_TYPE.fullmatch(word) for word in words)

    def _owner_of(self, section: Section) -> str:
        """Return the name of the class or module that has a definition; empty if a function has it, or nothing."""
        around = self._outline.outer(section.line) if self._outline else None
        return "" if around is not None and self._is_function(around) else self._class_of(section)

    def _class_of(self, section: Section) -> str:
        return ["", *parts_of(section)][-2]

    def _is_function(self, section: Section) -> bool:
        if section not in self._functions:
            self._functions[section] = definition_kind(self._path, section) == "function"
        return self._functions[section]

    def _is_call(self, before: str, after: str) -> bool:
        if self._language in ("bash", "bats"):
            return _SHELL_COMMAND.search(before) is not None
        if _CALL.match(after):
            return True
        if self._language in _PYTHON and _DECORATOR.fullmatch(before):
            return True
        return bool(re.search(r"\bnew\s+(?:[\w.]+\.)?$", before[-200:]))

    def _is_local(self, index: int, before: str, after: str, enclosing: Section | None) -> bool:
        """Return True for a parameter, a local variable, or the name of an argument; also add its scope."""
        blank = not before.strip()
        if self._language in _SCRIPTS and re.match(r"\s*:(?!:)", after) and not before.rstrip().endswith("?"):
            return re.search(r"(?:^|[{,])\s*$", before[-200:]) is not None  # the key of an object
        if enclosing is None or not self._is_function(enclosing):
            in_call = self._language in _PYTHON and _ASSIGNED.match(after) and not blank
            return bool(in_call) and after.startswith("=")
        if self._in_header(index, enclosing) and self._is_parameter(before, after):
            self._bind(enclosing)
            return True
        if self._language not in _PYTHON:
            return False
        if after.startswith("=") and not after.startswith("==") and (not blank or after.rstrip().endswith((",", ")"))):
            return True  # the name of an argument
        if (
            (blank and _ASSIGNED.match(after))
            or _LOOPS_OVER.search(before[-200:])
            or re.search(r"\bas\s+$", before[-20:])
        ):
            self._bind(enclosing)
            return True
        return re.search(r"\blambda\b[^:]*$", before[-200:]) is not None and _PARAMETER_END.match(after) is not None

    def _in_header(self, index: int, function: Section) -> bool:
        """Return True if a line is in the signature of a function."""
        first = function.line - 1
        if not first <= index < first + _MAX_HEADER_LINES:
            return False
        depth = 0
        for code in self._scanned.code[first:index]:
            depth += code.count("(") - code.count(")")
            if depth <= 0:
                return False
        return True

    def _is_parameter(self, before: str, after: str) -> bool:
        if not _PARAMETER_END.match(after):
            return self._language == "go" and before.rstrip().endswith(("(", ",")) and after[:1] == " "
        if self._language in _C_LIKE:
            return re.search(r"[\w>\]*&][\s*&]+$", before[-50:]) is not None
        return not before.strip() or re.search(r"[(,|]\s*(?:\*{1,2}|&|mut\s|\.\.\.)?\s*$", before[-50:]) is not None

    def _bind(self, section: Section | None) -> None:
        if section is not None:
            self._scopes.append((section.line, section.end_line))

    @cached_property
    def _import_lines(self) -> frozenset[int]:
        return frozenset(index for lines in self._imports for index in lines)

    @property
    def _imports_all(self) -> bool:
        return any(_IMPORTS_ALL.search(self._scanned.code[lines[-1]]) for lines in self._imports)

    @cached_property
    def _imports(self) -> Sequence[range]:
        return tuple(self._find_imports()) if self._is_code else ()

    def _find_imports(self) -> Iterator[range]:
        pattern = re.compile(_IMPORTS.get(self._language, _OTHER_IMPORTS))
        code = self._scanned.code
        at = 0
        for index, line in enumerate(code):
            if index < at or not pattern.match(line):
                continue
            at, depth = index, 0
            for at in range(index, min(index + _MAX_IMPORT_LINES, len(code))):
                depth += sum(map(code[at].count, "({[")) - sum(map(code[at].count, ")}]"))
                open_ = self._language in _ENDED_BY_SEMICOLON and ";" not in code[at]
                if depth <= 0 and not code[at].endswith("\\") and not open_:
                    break
            at += 1
            yield range(index, at)


def _words(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(word for line in lines for word in _WORD.findall(line))


def _joined(scopes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of lines in order, and join those that overlap."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(scopes):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def _shadowed(one: Occurrence, scopes: Sequence[tuple[int, int]]) -> Occurrence:
    """Return a place, as local if it is in a function that has a parameter or variable with the name."""
    if one.syntax != "code" or one.is_member or one.kind in ("definition", "import") or one.is_local:
        return one
    at = bisect_right(scopes, one.line, key=lambda scope: scope[0]) - 1
    return replace(one, is_local=True) if at >= 0 and one.line <= scopes[at][1] else one

"""Find the places of a file that have a name, and tell definitions, imports, calls and other uses apart by its tree."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ripwrap._code.languages import language_name
from ripwrap._code.treesitter.languages import node_text, node_types
from ripwrap._code.treesitter.outline import SyntaxOutline, is_comment, is_import, is_string, kind_of

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_PER_LINE = 100
"""Maximum number of places of a line; a line of generated code may have thousands."""
_MAX_PARTS = 20
"""Maximum number of parts of one parameter: its modifiers, name, type and value."""
_MAX_DEPTH = 200
"""Maximum number of nodes around a name that are looked at; expressions of hostile source are nested far deeper."""
_PYTHON = frozenset({"python", "cython", "starlark"})
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_NO_CODE = frozenset({"heading", "table", "key"})


_PATTERNS = node_types(
    "pattern_list tuple_pattern list_pattern list_splat_pattern dictionary_splat_pattern expression_list array_pattern"
    " object_pattern rest_pattern assignment_pattern object_assignment_pattern pair_pattern pointer_declarator"
    " array_declarator function_declarator parenthesized_declarator reference_declarator init_declarator"
    " attributed_declarator variable_declaration multi_variable_declaration pattern value_binding_pattern variable_name"
    " left_assignment_list destructured_left_assignment mut_pattern ref_pattern reference_pattern slice_pattern"
    " captured_pattern as_pattern_target variable_list bracketed_argument_list parenthesized_expression type"
    " pointer_field_declarator type_identifier simple_identifier qualified_identifier"
)
"""Nodes between a name and what declares it, such as the pointers of C and the tuples of Python."""
_INNER_FIELDS = frozenset({"declarator", "left", "name", "bound_identifier", "pattern", "alias", None})
"""Fields of these nodes that hold the name; of the pair of a pattern, it is the value."""


def _fields(table: str) -> Mapping[str, frozenset[str | None]]:
    """Map types of nodes to names of fields; a line has the fields, of which `-` is a child without one, and types."""
    rows = (line.split(": ") for line in table.strip().splitlines())
    return {
        one: frozenset(None if name == "-" else name for name in names.split())
        for names, types in rows
        for one in types.split()
    }


_DECLARES = _fields("""
    left: range_clause for_statement for_in_clause for_in_statement assignment short_var_declaration
    left: assignment_expression foreach_statement
    name: public_field_definition variable_declarator named_expression enumerator enum_assignment enum_constant
    name: property_signature enum_body enum_member_declaration preproc_def enum_case var_spec const_spec
    name: enhanced_for_statement resource variable_assignment container_field
    - name: enum_variant property_element enum_entry static_item const_item property_declaration
    - name: protocol_property_declaration initialized_identifier exception_variable catch_declaration
    declarator: declaration for_range_loop type_definition
    pattern: val_definition for_expression let_declaration let_condition
    - pattern: static_final_declaration var_definition
    -: variable_declaration const_element assignment_statement
    property: field_definition
    declarator name: field_declaration
    alias: as_pattern
""")
"""Nodes that declare names, and their fields that hold the names; None is a child without a field."""

_PARAMETERS = _fields("""
    - name: lambda_parameters parameters method_parameters formal_parameters lambda_parameter formal_parameter
    - name: variadic_parameter_declaration class_parameter constructor_param parameter_list typed_parameter
    - name: spread_parameter
    -: block_parameters preproc_params closure_parameters inferred_parameters
    name pattern: typed_default_parameter default_parameter optional_parameter
    name: keyword_parameter hash_splat_parameter splat_parameter block_parameter simple_parameter variadic_parameter
    name: catch_formal_parameter property_promotion_parameter
    declarator name: parameter_declaration optional_parameter_declaration
    pattern: required_parameter
    - external_name name pattern: parameter
    parameter: arrow_function
    parameters: lambda_expression
""")
_ARGUMENT_NAMES = _fields("""
    name: keyword_argument argument value_argument
    key: pair pair_pattern
""")
"""Nodes that name an argument, or the key of an object; such a name is none of the scope."""
_CALLS = _fields("""
    - function method target: call_expression call
    name: member_call_expression method_invocation scoped_call_expression command
    - function name: function_call method_call
    function: invocation_expression apply
    function function_name: function_call_expression
    - type: object_creation_expression
    constructor type: new_expression
    -: instance_expression decorator constructor_invocation
    macro: macro_invocation
""")
_MEMBER_NAMES = node_types(
    "attribute member_expression field_expression selector_expression scoped_identifier qualified_identifier"
    " navigation_expression navigation_suffix member_access_expression generic_function template_function generic_name"
    " scoped_type_identifier qualified_name generic_type user_type command_name dot_index_expression"
    " method_index_expression nested_type_identifier name variable_name template_type type_identifier"
    " conditional_access_expression member_binding_expression"
)
"""Nodes between the last name of an expression such as `a.b` and the call of it."""
_NAME_FIRST = node_types("parameter class_parameter typed_parameter property_declaration formal_parameter")
"""Nodes whose first child without a field is the name; its type and value follow."""
_LAST_FIELDS = frozenset({"attribute", "property", "field", "name", "suffix", "function", "method", None})
_LAMBDAS = node_types(
    "lambda lambda_expression arrow_function function_expression generator_function closure_expression lambda_literal"
    " anonymous_function func_literal anonymous_method_expression anonymous_function_creation_expression do_block block"
    " list_comprehension set_comprehension dictionary_comprehension generator_expression catch_clause"
    " constructor_declaration compact_constructor_declaration"
)
"""Nodes, besides definitions, that have names of their own; blocks count in Ruby only."""
_INTERPOLATION = re.compile(
    r"interpolat|substitution|expansion|format_expression|^variable_name$|dynamic_variable_name|^simple_expansion$"
)
_REQUIRES = {
    **dict.fromkeys(_SCRIPTS, re.compile(r"\brequire\s*\(")),
    "lua": re.compile(r"\brequire\b"),
    "perl": re.compile(r"^\s*require\s"),
    "ruby": re.compile(r"^\s*(?:include|extend|prepend)\s"),
    **dict.fromkeys(_PYTHON, re.compile(r"^\s*(?:load\(|c?import\s|from\s+[\w.]+\s+cimport\b)")),
}
"""Lines of imports that are calls in the tree, or no statement of the grammar."""
_IMPORTS_ALL = re.compile(r"(?:\bimport\s+\*|[.:]\*|\._)\s*+;?\s*+$|^\s*+export\s+\*")
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_ALIAS = re.compile(r"(\w+)\s+as\s+(\w+)")
_MODULE_PART = re.compile(r"\s*(?:\.\s*[^\W\d*]|::\s*[^\W\d*{]|import\b)")
"""Pattern for the text after a name in an import that is only a part of the name of a module."""
_MEMBER = re.compile(r"(?:\.|->|::|\?\.|!!\.)\s*$")
_RECEIVER = re.compile(r"([\w$]+)\s*(?:\(\s*\))?\s*(?:\.|->|::|\?\.|!!\.)\s*$")
_NAMESPACES = frozenset({"namespace", "package", "mod", ""})
_FUNCTIONS = frozenset({"function", "property"})


class NamePlace(NamedTuple):
    """Place that has a name. The row and the column are counted from 0, the column in characters."""

    row: int
    column: int
    kind: str
    syntax: str
    is_member: bool = False
    receiver: str = ""
    is_local: bool = False
    owner: str = ""


class Places(NamedTuple):
    """Places of a file that have a name, and what the file imports."""

    places: list[NamePlace]
    imports_all: bool
    aliases: dict[str, str]
    imported: list[str]
    modules: list[str]
    package: str


class _Step(NamedTuple):
    node: "Node"
    field: str | None


def find_places(path: str, text: str, outline: SyntaxOutline | None, name: str) -> Places:
    """Return the places that have a name; without an outline, they are mentions in a text."""
    language = language_name(path, text[:200].partition("\n")[0]) or ""
    edge = r"[\w$]" if language in _SCRIPTS else r"\w"
    end = r"(?![\w?!])" if language == "ruby" and name[-1] not in "?!=" else rf"(?!{edge})"
    pattern = re.compile(rf"(?<!{edge}){re.escape(name)}{end}")
    lines = text.split("\n")
    found = [
        (row, match.start())
        for row, line in enumerate(lines)
        if name in line
        for _, match in zip(range(_MAX_PER_LINE), pattern.finditer(line), strict=False)
    ]
    if (
        outline is None
        or outline.grammar.kind in _NO_CODE
        or not outline.grammar.outlined
        or outline.grammar.name == "sql"
    ):
        return Places([NamePlace(*one, "mention", "text") for one in found], False, {}, [], [], "")
    return _OccurrenceFinder(outline, language, lines, name).places(found)


class _OccurrenceFinder:
    def __init__(self, outline: SyntaxOutline, language: str, lines: Sequence[str], name: str) -> None:
        self._outline = outline
        self._grammar = outline.grammar
        self._language = language
        self._lines = lines
        self._name = name
        self._starts: list[int] = []
        start = 0
        for line in outline.lines:
            self._starts.append(start)
            start += len(line.encode("utf-8", "replace")) + 1
        self._scopes: list[tuple[int, int]] = []
        """Start and end of each node that has a parameter or variable with the name."""
        self._offsets: list[int] = []
        self._cursor = outline.root.walk()
        self._steps = [_Step(outline.root, None)]

    def places(self, found: Iterable[tuple[int, int]]) -> Places:
        places = [place for row, column in found for place in self._place(row, column)]
        scopes = _joined(self._scopes)
        imports = [(node.text or b"")[:10_000].decode("utf-8", "replace") for node in self._outline.imports()]
        required = _REQUIRES.get(self._language)
        if required is not None:
            imports += [line for line in self._lines if required.search(line[:2_000])]
        texts = [" ".join(_QUOTED.sub("", one).split()) for one in imports]
        modules = [one for one in texts if self._language in _PYTHON and one.startswith("import")]
        top = self._outline.root.named_children if self._grammar.name == "go" else ()
        # Other files of Go use the name of its package in front of its names.
        package = next((node_text(one.named_child(0)) for one in top if one.type == "package_clause"), "")
        return Places(
            [_shadowed(one, at, scopes) for one, at in zip(places, self._offsets, strict=True)],
            any(_IMPORTS_ALL.search(one) for one in texts),
            {alias: module for one in texts for module, alias in _ALIAS.findall(one)},
            sorted(_words(texts)),
            sorted(_words(modules)),
            package,
        )

    def _place(self, row: int, column: int) -> Iterator[NamePlace]:
        line = self._lines[row]
        shown = self._outline.lines[row]
        start = self._starts[row] + len(shown[:column].encode("utf-8", "replace"))
        path = self._path(start) if column < len(shown) else []
        if not path:
            self._offsets.append(start)
            yield NamePlace(row, column, "mention", "code")
            return
        text = (path[-1].node.text or b"")[:400].decode("utf-8", "replace")
        if self._grammar.name == "ruby" and text in {f"{self._name}?", f"{self._name}!"}:
            return  # another name
        self._offsets.append(start)
        syntax = self._syntax(path)
        if syntax != "code":
            yield NamePlace(row, column, "mention", syntax)
            return
        before, after = line[:column], line[column + len(self._name) :]
        is_member = bool(_MEMBER.search(before[-20:]))
        receiver = _RECEIVER.search(before[-200:]) if is_member else None
        owner = self._definition(path)
        if owner is not None:
            yield NamePlace(row, column, "definition", syntax, owner=owner)
        elif self._is_import(path, line):
            yield NamePlace(row, column, "import", syntax, is_member=_MODULE_PART.match(after) is not None)
        elif (declared := self._declared(path)) is not None:
            owner, is_local = declared
            yield NamePlace(
                row, column, "mention" if is_local else "definition", syntax, is_local=is_local, owner=owner
            )
        elif self._reached(path, _ARGUMENT_NAMES, frozenset()) is not None:
            yield NamePlace(row, column, "mention", syntax, is_local=True)
        else:
            kind = "call" if self._is_call(path, after) else "mention"
            yield NamePlace(row, column, kind, syntax, is_member=is_member, receiver=receiver[1] if receiver else "")

    def _path(self, start: int) -> list[_Step]:
        """Return the nodes around a byte, outermost first; the bytes must be in order, as the cursor only goes on."""
        cursor, path = self._cursor, self._steps
        while len(path) > 1 and path[-1].node.end_byte <= start:
            while path[-1].node.end_byte <= start and cursor.goto_next_sibling():
                path[-1] = self._step()
            if path[-1].node.end_byte <= start:
                cursor.goto_parent()
                path.pop()
        while path[-1].node.start_byte <= start and cursor.goto_first_child_for_byte(start) is not None:
            path.append(self._step())
        inner = len(path) - (path[-1].node.start_byte > start)
        return path[max(inner - _MAX_DEPTH, 0) : inner]

    def _step(self) -> _Step:
        node = self._cursor.node
        return _Step(self._outline.root if node is None else node, self._cursor.field_name)

    def _syntax(self, path: Sequence[_Step]) -> str:
        for step in reversed(path):
            kind = step.node.type
            if _INTERPOLATION.search(kind) and not kind.startswith("interpolated_string"):
                return "code"
            if is_comment(kind):
                return "comment"
            if is_string(kind) or kind.startswith("interpolated_string") or kind == "string_content":
                return "string"
        return "code"

    def _named(self, node: "Node") -> "Node | str | None":
        rule = self._grammar.definitions.get(node.type)
        return rule(node) if rule is not None else None

    def _definition(self, path: Sequence[_Step]) -> str | None:
        """Return the owner of the definition whose name is at the end of the path; None for a use."""
        leaf = path[-1].node
        for number in range(len(path) - 1, -1, -1):
            node = path[number].node
            named = self._named(node)
            if named is None:
                continue
            at = node.child_by_field_name("name") if isinstance(named, str) else named
            if at is None and isinstance(named, str):
                return self._owner(path[:number]) if number == len(path) - 2 and leaf.type == "identifier" else None
            if at is None or not at.start_byte <= leaf.start_byte < at.end_byte:
                return None
            rest = (at.text or b"")[leaf.end_byte - at.start_byte :].lstrip()
            if rest and not rest.startswith((b"<", b"?", b"!", b"=", b"[")):
                return None  # a part of a qualified name
            text = named if isinstance(named, str) else node_text(at)
            parts = [one for one in re.split(r"\.|::|:", text)[:-1] if one not in {"", "self"}]
            if node.type == "function_definition" and self._grammar.name in {"c", "cpp"} and parts:
                return parts[-1]
            return parts[-1] if parts and self._grammar.name in {"go", "lua"} else self._owner(path[:number])
        return None

    def _owner(self, path: Sequence[_Step]) -> str:
        """Return the name of the class or module around the end of a path; empty in a function, and outside."""
        for number in range(len(path) - 1, -1, -1):
            node = path[number].node
            named = self._named(node)
            if named is None:
                continue
            kind = kind_of(self._grammar, node)
            if kind in _FUNCTIONS or kind in _NAMESPACES:
                return ""
            if kind == "object" and named == "companion object":
                continue
            if node.type == "enum_specifier" and all(child.type not in {"class", "struct"} for child in node.children):
                return ""  # the members of an enumeration of C are names of the scope around it
            name = named if isinstance(named, str) else node_text(named)
            return re.split(r"\.|::", name)[-1].removeprefix("<< ")
        return ""

    def _declared(self, path: Sequence[_Step]) -> tuple[str, bool] | None:
        """Return the owner of the variable, field or parameter that is declared, and True if it is local."""
        python, leaf = self._language in _PYTHON, path[-1]
        number = len(path) - 2
        if (
            leaf.field in {"attribute", "property"}
            and number > 0
            and path[number].node.type in {"attribute", "member_expression"}
        ):
            owner = path[number].node.child_by_field_name("object")
            up = path[number - 1].node
            mine = node_text(owner) in ({"self", "cls"} if python else {"this"}) and path[number].field == "left"
            if not mine or up.type not in {"assignment", "assignment_expression"}:
                return None
            around = self._class_around(path, constructor=not python)
            return None if around is None else (around, False)
        if self._grammar.name == "ruby" and leaf.node.type == "simple_symbol":
            call = next((step.node for step in path[-4:] if step.node.type == "call"), None)
            makes = call is not None and node_text(call.child_by_field_name("method")).startswith("attr")
            return (self._owner(path), False) if makes else None
        at = self._reached(path, _DECLARES, _PATTERNS)
        if at is not None:
            return self._scope_of(path, at, leaf)
        at = self._reached(path, _PARAMETERS, _PATTERNS)
        if at is None:
            return None
        node = path[at].node
        kinds = {child.type for child in node.children} if node.child_count <= _MAX_PARTS else set[str]()
        made = next((step.node for step in reversed(path[:at]) if step.node.type in self._grammar.definitions), None)
        if node.type == "property_promotion_parameter" or not kinds.isdisjoint(
            {"accessibility_modifier", "readonly", "val", "var", "binding_pattern_kind"}
        ):
            return self._class_around(path, constructor=False) or self._owner(path[:at]), False
        if made is not None and made.type.startswith("record"):
            return self._owner(path[:at]), False
        # The scope of a parameter is the function that has it, or the declaration of one.
        scope = self._function_at(path[:at]) or path[max(at - 2, 0)].node
        self._scopes.append((scope.start_byte, scope.end_byte))
        return "", True

    def _scope_of(self, path: Sequence[_Step], at: int, leaf: _Step) -> tuple[str, bool] | None:
        node = path[at].node
        if self._grammar.name == "ruby" and leaf.node.type in {"constant", "instance_variable", "class_variable"}:
            around = self._class_around(path, constructor=False)
            return around or "", False
        if node.type == "assignment_expression" and self._grammar.name != "php":
            return None
        if node.type == "assignment_statement" and self._grammar.name != "lua":
            return None
        if node.type == "parameter_list":
            return None
        scope = self._function_at(path[:at])
        if scope is None:
            return self._owner(path[:at]), False
        self._scopes.append((scope.start_byte, scope.end_byte))
        return "", True

    def _function_at(self, path: Sequence[_Step]) -> "Node | None":
        """Return the innermost function around the end of a path, unless a class is inside of it."""
        for step in reversed(path):
            kind = step.node.type
            if kind in _LAMBDAS and (kind not in {"do_block", "block"} or self._grammar.name == "ruby"):
                return step.node
            rule = self._grammar.definitions.get(kind)
            if rule is not None and rule(step.node) is not None:
                return step.node if kind_of(self._grammar, step.node) in _FUNCTIONS else None
            if "class_body" in kind or kind == "anonymous_class":
                return None
        return None

    def _class_around(self, path: Sequence[_Step], *, constructor: bool) -> str | None:
        """Return the name of the class of the method around a path; None if there is none."""
        inside = False
        for number in range(len(path) - 1, -1, -1):
            node = path[number].node
            named = self._named(node)
            if named is None:
                continue
            name = named if isinstance(named, str) else node_text(named)
            if kind_of(self._grammar, node) not in _FUNCTIONS:
                return re.split(r"\.|::", name)[-1]
            inside = inside or name == "constructor"
            if constructor and not inside:
                return None
        return None

    def _reached(
        self, path: Sequence[_Step], table: Mapping[str, frozenset[str | None]], through: frozenset[str]
    ) -> int | None:
        """Return the index of the node of a table that has the name in one of its fields; None if there is none."""
        for number in range(len(path) - 2, -1, -1):
            node, field = path[number].node, path[number + 1].field
            fields = table.get(node.type)
            if fields is not None and field in fields:
                if field is not None or node.type not in _NAME_FIRST:
                    return number
                named = (one for one in node.named_children if "modifier" not in one.type and "binding" not in one.type)
                if next(named, node.named_child(0)) == path[number + 1].node:
                    return number
            if node.type not in through or (field not in _INNER_FIELDS and node.type != "pair_pattern"):
                return None
        return None

    def _is_import(self, path: Sequence[_Step], line: str) -> bool:
        required = _REQUIRES.get(self._language)
        if required is not None and required.search(line[:2_000]) and len(path) > 1:
            called = path[-2].node.type in {"call_expression", "function_call"}
            if not called or path[-1].field not in {"function", "name"}:
                return True
        return any(
            is_import(node.type) or (node.type == "export_statement" and node.child_by_field_name("source") is not None)
            for node, _ in path[:-1]
        )

    def _is_call(self, path: Sequence[_Step], after: str) -> bool:
        kind = path[-2].node.type if len(path) > 1 else ""
        if kind == "token_tree" or path[-1].node.type == "preproc_arg":
            return after.lstrip().startswith(("(", "!(", "!["))
        for number in range(len(path) - 2, -1, -1):
            node, (child, field) = path[number].node, path[number + 1]
            fields = _CALLS.get(node.type)
            if fields is not None:
                return field in fields and (field is not None or node.named_child(0) == child)
            if node.type not in _MEMBER_NAMES or field not in _LAST_FIELDS:
                return False
            last = node.named_child(node.named_child_count - 1)
            if field is None and last != child and node.type != "generic_name":
                return False
        return False


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text)}


def _joined(scopes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in order, and join those that overlap."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(scopes):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def _shadowed(one: NamePlace, at: int, scopes: Sequence[tuple[int, int]]) -> NamePlace:
    """Return a place, as local if it is in a function that has a parameter or variable with the name."""
    if one.syntax != "code" or one.is_member or one.kind in ("definition", "import") or one.is_local:
        return one
    inside = bisect_right(scopes, at, key=lambda scope: scope[0]) - 1
    return one._replace(is_local=True) if inside >= 0 and at < scopes[inside][1] else one

"""Table of grammars: node types of definitions, rules for their names, and node types that may contain definitions."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripwrap._code.languages import language_name

if TYPE_CHECKING:
    from tree_sitter import Node

NameRule = Callable[["Node"], "Node | str | None"]
"""Function that returns the name of a node, or the node of the name; empty for a definition without a name, None for
all other nodes.
"""

_NO_TYPES: frozenset[str] = frozenset()
_MAX_DECLARATORS = 20
"""Maximum number of nested declarators (in C, pointers and arrays) around a name."""


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """Rules to find the definitions of a language."""

    name: str
    definitions: Mapping[str, NameRule]
    namespaces: frozenset[str] = _NO_TYPES
    containers: frozenset[str] = _NO_TYPES
    """Nodes that belong to the definition around them: the definitions in them are its members, however small."""
    wrappers: frozenset[str] = _NO_TYPES
    constants: Mapping[str, NameRule] = field(default_factory=dict[str, NameRule])
    attributes: frozenset[str] = _NO_TYPES
    kind: str = ""
    """Kind of all definitions; empty if their nodes tell their kinds."""
    qualified: bool = True
    outlined: bool = True
    """False for data, whose keys only split a file."""
    generics: bool = False


def find_grammar(path: str, text: str) -> Grammar | None:
    """Return the grammar of a file's language, or None if the language has no grammar."""
    name = language_name(path, text)
    if name == "c header":
        name = "cpp" if _IS_CPP.search(text) else "c"
    return _GRAMMARS.get(_READ_AS.get(name, name)) if name else None


_IS_CPP = re.compile(r"^[ \t]*(?:class|namespace|template|using)\b|^[ \t]*(?:public|private):", re.MULTILINE)
_READ_AS = {
    "arduino": "cpp",
    "bats": "bash",
    "cython": "python",
    "php include": "php",
    "quarto": "markdown",
    "starlark": "python",
}
"""Languages that are read with the grammar of another language."""


def node_text(node: "Node | None") -> str:
    """Return the first 400 bytes of a node's text on one line, without type arguments in angle brackets."""
    if node is None:
        return ""
    text = (node.text or b"")[:400].decode("utf-8", "replace")
    if "<" in text and "operator" not in text:
        text = _ARGUMENTS.sub("", text)
    return " ".join(text.split())


_ARGUMENTS = re.compile(r"(?:::)?<(?!=).*>", re.DOTALL)


def node_types(words: str) -> frozenset[str]:
    """Return the words of a text, such as types of nodes."""
    return frozenset(words.split())


def _field(key: str, *, needs: str = "", otherwise: str | None = "") -> NameRule:
    """Return a rule that takes a definition's name from a field of its node."""

    def name(node: "Node") -> "Node | str | None":
        if needs and node.child_by_field_name(needs) is None:
            return None
        return node.child_by_field_name(key) or otherwise

    return name


def _fixed_name(text: str) -> NameRule:
    return lambda _: text


def _named_function(key: str, value: str) -> NameRule:
    """Return a rule that takes the name from the field `key`, as in `key = function…`."""

    def name(node: "Node") -> "Node | str | None":
        made = node.child_by_field_name(value)
        return (node.child_by_field_name(key) or "") if made is not None and made.type in FUNCTION_VALUES else None

    return name


def _child(*types: str, inside: str = "") -> NameRule:
    """Return a rule that takes the name from the first child of one of these types, in the first child `inside`."""

    def name(node: "Node") -> "Node | str | None":
        if inside:
            outer = next((child for child in node.named_children if child.type == inside), None)
            return None if outer is None else name_in(outer)
        return name_in(node)

    def name_in(node: "Node") -> "Node | None":
        return next((child for child in node.named_children if child.type in types), None)

    return name


def _for_types(types: str, name: NameRule) -> dict[str, NameRule]:
    return dict.fromkeys(types.split(), name)


_name_field = _field("name")
_name_field_with_body = _field("name", needs="body")


# --- Python


def _assigned(statement: "Node") -> "Node | str | None":
    inner = statement.named_child(0) if statement.named_child_count == 1 else None
    return (inner.child_by_field_name("left") or "") if inner is not None and inner.type == "assignment" else None


_PYTHON = Grammar(
    "python",
    {**_for_types("function_definition class_definition", _name_field), "type_alias_statement": _field("left")},
    containers=node_types(
        "block if_statement elif_clause else_clause try_statement except_clause finally_clause with_statement"
    ),
    wrappers=node_types("decorated_definition"),
    constants={"expression_statement": _assigned},
)


# --- JavaScript and TypeScript

FUNCTION_VALUES = node_types(
    "arrow_function function_expression generator_function class function function_definition anonymous_function"
    " lambda_literal"
)
"""Types of nodes that are functions or classes; what such a value is assigned to is its name."""


def _named_value(node: "Node") -> "Node | None":
    """Return the name of a function in an expression, unless it is assigned to another name."""
    around = node.parent
    taken = around is None or around.type in _NAMES_VALUES
    return None if taken else node.child_by_field_name("name")


_NAMES_VALUES = node_types("variable_declarator assignment_expression pair field_definition public_field_definition")


def _exported(node: "Node") -> str | None:
    value = node.child_by_field_name("value")
    return "default" if value is not None and value.type in FUNCTION_VALUES else None


_JAVASCRIPT: dict[str, NameRule] = {
    **_for_types(
        "function_declaration generator_function_declaration class_declaration method_definition", _name_field
    ),
    "variable_declarator": _named_function("name", "value"),
    "assignment_expression": _named_function("left", "right"),
    "pair": _named_function("key", "value"),
    "field_definition": _named_function("property", "value"),
    "public_field_definition": _named_function("name", "value"),
    "export_statement": _exported,
    **_for_types("function_expression generator_function class", _named_value),
}
_TYPESCRIPT: dict[str, NameRule] = {
    **_JAVASCRIPT,
    **_for_types(
        "interface_declaration type_alias_declaration enum_declaration abstract_class_declaration", _name_field
    ),
    **_for_types("function_signature method_signature abstract_method_signature", _name_field),
    **_for_types("internal_module module", _name_field),
    "construct_signature": _fixed_name("new"),
}
_SCRIPT_WRAPPERS = node_types(
    "export_statement lexical_declaration variable_declaration expression_statement ambient_declaration"
)


def _declared(node: "Node") -> "Node | str | None":
    declarator = next((child for child in node.named_children if child.type == "variable_declarator"), None)
    if declarator is None and (inner := node.child_by_field_name("declaration")) is not None:
        return _declared(inner) if inner.type in {"lexical_declaration", "variable_declaration"} else None
    return (declarator.child_by_field_name("name") or "") if declarator is not None else None


def _script(name: str, definitions: Mapping[str, NameRule]) -> Grammar:
    return Grammar(
        name,
        definitions,
        namespaces=node_types("internal_module module"),
        containers=node_types("class_body statement_block"),
        wrappers=_SCRIPT_WRAPPERS,
        constants=_for_types("lexical_declaration variable_declaration export_statement", _declared),
        attributes=node_types("decorator"),
    )


# --- C, C++ and Objective-C


def _declarator(node: "Node") -> "Node | str | None":
    """Return the name in a declarator, inside its pointers, arrays and parentheses; empty if there is no name."""
    found = node.child_by_field_name("declarator")
    for _ in range(_MAX_DECLARATORS):
        if found is None:
            return ""
        if found.type == "operator_cast":
            return f"operator {node_text(found.child_by_field_name('type'))}"
        inner = found.child_by_field_name("declarator")
        if inner is None and found.type in {
            "parenthesized_declarator",
            "reference_declarator",
            "attributed_declarator",
        }:
            inner = next(iter(found.named_children), None)
        if inner is None:
            return "" if found.type.endswith("_declarator") else found
        found = inner
    return ""


def _typedef(node: "Node") -> "Node | str | None":
    """Return the name that a `typedef` gives to a type without a name."""
    kind = node.child_by_field_name("type")
    if kind is None or kind.child_by_field_name("body") is None or kind.child_by_field_name("name") is not None:
        return None
    return _declarator(node)


def _initialised(node: "Node") -> "Node | str | None":
    declarator = node.child_by_field_name("declarator")
    return _declarator(declarator) if declarator is not None and declarator.type == "init_declarator" else None


def _c_body(node: "Node") -> "Node | str | None":
    """Return the name of the function whose body a block is, if the grammar did not recognise its head.

    It does not know the parameters of K&R C that have types of their own, nor two heads that the preprocessor chooses
    from.
    """
    head = node if node.parent is not None and node.parent.parent is None else None
    for _ in range(_MAX_DECLARATORS):
        head = head.prev_named_sibling if head is not None else None
        while head is not None and head.type.startswith("preproc_") and head.named_child_count:
            head = head.named_children[-1]
        if head is None or head.type not in {"declaration", "ERROR"}:
            return None
        declarator = head.child_by_field_name("declarator")
        while declarator is not None and declarator.type == "pointer_declarator":
            declarator = declarator.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "function_declarator":
            return _declarator(head)
    return None


_C: dict[str, NameRule] = {
    "function_definition": _declarator,
    "compound_statement": _c_body,
    # A type without a name has that of its `typedef`, or is no definition.
    **_for_types("struct_specifier union_specifier enum_specifier", _field("name", needs="body", otherwise=None)),
    "type_definition": _typedef,
    "preproc_function_def": _name_field,
}
_C_CONSTANTS: dict[str, NameRule] = {"declaration": _initialised, "preproc_def": _name_field}
_C_THROUGH = node_types(
    "preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification declaration_list"
    " field_declaration_list"
)
_CPP: dict[str, NameRule] = {
    **_C,
    "class_specifier": _name_field_with_body,
    "namespace_definition": _name_field,
    "concept_definition": _name_field,
    "alias_declaration": _name_field,
}


def _objective_method(node: "Node") -> str:
    """Return the parts of a method's name, `add:to:` of `- (int)add:(int)x to:(int)y`."""
    parts = [child.type == "identifier" and node_text(child) for child in node.named_children]
    colon = ":" if any(child.type == "method_parameter" for child in node.named_children) else ""
    return "".join(f"{part}{colon}" for part in parts if part)


# --- Other languages

_GO_RECEIVER = re.compile(r"(\w+)(?:\[[^\]]*\])?\s*\)$")


def _go_method(node: "Node") -> str | None:
    name = node_text(node.child_by_field_name("name"))
    receiver = _GO_RECEIVER.search(node_text(node.child_by_field_name("receiver")))
    return f"{receiver[1]}.{name}" if receiver else name


def _go_function(node: "Node") -> "Node | str | None":
    """Return the name of a function that is the only value assigned, as in `add := func() {}`."""
    value = node.child_by_field_name("right") or node.child_by_field_name("value")
    only = value.named_child(0) if value is not None and value.named_child_count == 1 else None
    if only is None or only.type != "func_literal":
        return None
    return node.child_by_field_name("left") or node.child_by_field_name("name")


def _go_constants(node: "Node") -> "Node | str | None":
    spec = next((child for child in node.named_children if child.type in {"const_spec", "var_spec"}), None)
    return (spec.child_by_field_name("name") or "") if spec is not None and node.named_child_count == 1 else None


def _lua_assigned(node: "Node") -> "Node | str | None":
    """Return the name of a function that is assigned to one variable, as in `M.f = function() … end`."""
    names, values = (
        next((child for child in node.named_children if child.type == kind), None)
        for kind in ("variable_list", "expression_list")
    )
    if names is None or values is None or values.named_child_count != 1:
        return None
    made = values.named_child(0)
    return names.named_child(0) if made and made.type == "function_definition" else None


_ELIXIR_WORDS = node_types("def defp defmacro defmacrop defmodule defprotocol defimpl defguard defdelegate")


def _elixir(node: "Node") -> "Node | str | None":
    """Return what a call such as `def f(x) when x > 1 do … end` defines; None for other calls."""
    if node_text(node.child_by_field_name("target")) not in _ELIXIR_WORDS:
        return None
    found = next((child for child in node.named_children if child.type == "arguments"), None)
    for _ in range(_MAX_DECLARATORS):
        if found is None or found.type in {"identifier", "alias", "atom"}:
            break
        key = {"binary_operator": "left", "call": "target"}.get(found.type)
        found = found.child_by_field_name(key) if key else found.named_child(0)
    return found


def _julia_function(node: "Node") -> "Node | str | None":
    """Return the name in the signature of a function, `Base.show` of `function Base.show(io, x) … end`."""
    found = node.named_child(0)
    while found and found.type not in {"identifier", "field_expression", "operator"}:
        found = found.named_child(0)
    return found


def _julia_short(node: "Node") -> "Node | str | None":
    call = node.named_child(0)
    return call.named_child(0) if call and call.type == "call_expression" else None


def _zig_type(node: "Node") -> "Node | str | None":
    types = {"struct_declaration", "enum_declaration", "union_declaration", "opaque_declaration"}
    if not any(child.type in types for child in node.named_children):
        return None
    return _child("identifier")(node)


def _haskell_function(node: "Node") -> "Node | None":
    """Return the name of a function or method; its further equations are parts of the first one."""
    name, before = node.child_by_field_name("name"), node.prev_named_sibling
    if before is not None and before.type in {"function", "bind", "signature"}:
        return None if node_text(before.child_by_field_name("name")) == node_text(name) else name
    return name


def _sql_created(node: "Node") -> "Node | str | None":
    """Return the name of what a CREATE statement creates, also if only its beginning can be read."""
    children, around = node.named_children, node.parent
    while around is not None and not around.type.startswith("create_"):
        around = around.parent
    if not children or children[0].type != "keyword_create" or around is not None:
        return None
    named = (child for child in children if child.type in {"object_reference", "identifier", "column"})
    return next(named, None)


def _make_targets(node: "Node") -> str | None:
    targets = node_text(next((child for child in node.named_children if child.type == "targets"), None))
    return None if re.match(r"\.[A-Z]", targets) or not targets else targets


def _key(node: "Node") -> str | None:
    text = node_text(node.child_by_field_name("key"))
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


_SQL_KINDS = node_types("table view materialized_view function trigger index type schema database sequence role")
"""What the CREATE statements of SQL create, as in the types of their nodes."""

_HEADING = re.compile(r"h([1-6])$", re.IGNORECASE)


def heading_level(node: "Node", lines: Callable[[int], str]) -> int | str | None:
    """Return the level of a heading: a number in Markdown and HTML, the underline in RST; None for other nodes."""
    if node.type in {"atx_heading", "setext_heading"}:
        if node.parent is not None and node.parent.type not in {"section", "document"}:
            return None
        mark = next((child.type for child in node.children if "_h" in child.type), "")
        return int(mark.partition("_h")[2][:1] or 6)
    if node.type == "element":
        start = node.named_child(0)
        tag = _HEADING.match(node_text(start.named_child(0))) if start else None
        return int(tag[1]) if tag else None
    if node.type == "title":
        end = node.end_point
        below = lines(end.row + (end.column > 0 or end.row == node.start_point.row))[:1]
        above = lines(node.start_point.row - 1)[:1]
        return below * 2 if above == below else below
    return None


def _heading(node: "Node") -> "Node | str | None":
    if node.type == "element":
        start, end = node.named_child(0), node.named_children[-1]
        if not start or not _HEADING.match(node_text(start.named_child(0))):
            return None
        raw = (node.text or b"")[start.end_byte - node.start_byte : end.start_byte - node.start_byte]
        return " ".join(re.sub(r"<[^<>]*>", "", raw.decode("utf-8", "replace")).split())
    if node.type == "title":
        return node_text(node)
    return node_text(node.child_by_field_name("heading_content")).strip("# ")


_GRAMMARS: dict[str, Grammar] = {
    "python": _PYTHON,
    "javascript": _script("javascript", _JAVASCRIPT),
    "typescript": _script("typescript", _TYPESCRIPT),
    "tsx": _script("tsx", _TYPESCRIPT),
    "go": Grammar(
        "go",
        {
            "function_declaration": _name_field,
            "method_declaration": _go_method,
            **_for_types("type_spec type_alias method_elem", _name_field),
            **_for_types("short_var_declaration var_spec", _go_function),
        },
        wrappers=node_types("type_declaration"),
        constants=_for_types("const_declaration var_declaration", _go_constants),
    ),
    "rust": Grammar(
        "rust",
        {
            **_for_types(
                "function_item struct_item enum_item union_item trait_item macro_definition type_item", _name_field
            ),
            **_for_types("function_signature_item associated_type", _name_field),
            "impl_item": lambda node: node_text(node.child_by_field_name("type")),
            "mod_item": _name_field_with_body,
        },
        namespaces=node_types("mod_item"),
        containers=node_types("declaration_list foreign_mod_item"),
        constants=_for_types("const_item static_item", _name_field),
        attributes=node_types("attribute_item inner_attribute_item"),
    ),
    "java": Grammar(
        "java",
        {
            **_for_types("class_declaration interface_declaration enum_declaration record_declaration", _name_field),
            **_for_types("annotation_type_declaration method_declaration constructor_declaration", _name_field),
            **_for_types("compact_constructor_declaration annotation_type_element_declaration", _name_field),
        },
        containers=node_types("class_body interface_body enum_body enum_body_declarations annotation_type_body"),
        generics=True,
    ),
    "c": Grammar("c", _C, containers=_C_THROUGH, constants=_C_CONSTANTS),
    "cpp": Grammar(
        "cpp",
        _CPP,
        namespaces=node_types("namespace_definition"),
        containers=_C_THROUGH,
        wrappers=node_types("template_declaration"),
        constants=_C_CONSTANTS,
    ),
    "objective-c": Grammar(
        "objc",
        {
            **_C,
            **_for_types("class_interface class_implementation protocol_declaration", _child("identifier")),
            **_for_types("method_declaration method_definition", _objective_method),
        },
        containers=_C_THROUGH | node_types("implementation_definition"),
        constants=_C_CONSTANTS,
    ),
    "csharp": Grammar(
        "csharp",
        {
            **_for_types("class_declaration interface_declaration struct_declaration enum_declaration", _name_field),
            **_for_types("record_declaration delegate_declaration method_declaration", _name_field),
            **_for_types(
                "constructor_declaration property_declaration event_declaration local_function_statement", _name_field
            ),
            "destructor_declaration": lambda node: f"~{node_text(node.child_by_field_name('name'))}",
            "operator_declaration": lambda node: f"operator {node_text(node.child_by_field_name('operator'))}",
            "indexer_declaration": _fixed_name("this"),
            "namespace_declaration": _name_field,
        },
        namespaces=node_types("namespace_declaration"),
        containers=node_types(
            "declaration_list file_scoped_namespace_declaration preproc_if preproc_region preproc_else"
        ),
        generics=True,
    ),
    "ruby": Grammar(
        "ruby",
        {
            **_for_types("class module method", _name_field),
            "singleton_method": lambda node: ".".join(
                map(node_text, map(node.child_by_field_name, ("object", "name")))
            ),
            "singleton_class": lambda node: f"<< {node_text(node.child_by_field_name('value'))}",
        },
        namespaces=node_types("module"),
        constants=_for_types("assignment", _field("left")),
        containers=node_types("body_statement begin_block"),
        wrappers=node_types("call argument_list"),
    ),
    "php": Grammar(
        "php",
        {
            **_for_types("class_declaration interface_declaration trait_declaration enum_declaration", _name_field),
            **_for_types("function_definition method_declaration", _name_field),
            "namespace_definition": _name_field_with_body,
        },
        namespaces=node_types("namespace_definition"),
        containers=node_types("declaration_list enum_declaration_list compound_statement"),
    ),
    "bash": Grammar(
        "bash",
        {"function_definition": _name_field},
        containers=node_types("if_statement else_clause elif_clause compound_statement"),
    ),
    "kotlin": Grammar(
        "kotlin",
        {
            **_for_types("class_declaration object_declaration function_declaration", _name_field),
            "companion_object": _field("name", otherwise="companion object"),
            "secondary_constructor": _fixed_name("constructor"),
            "anonymous_initializer": _fixed_name("init"),
            "type_alias": _child("identifier"),
        },
        containers=node_types("class_body enum_class_body"),
        constants=_for_types("property_declaration", _child("identifier", inside="variable_declaration")),
    ),
    "swift": Grammar(
        "swift",
        {
            **_for_types("class_declaration protocol_declaration function_declaration macro_declaration", _name_field),
            "protocol_function_declaration": _name_field,
            "typealias_declaration": _name_field,
            "property_declaration": _field("name", needs="computed_value"),
            "init_declaration": _fixed_name("init"),
            "deinit_declaration": _fixed_name("deinit"),
            "subscript_declaration": _fixed_name("subscript"),
        },
        containers=node_types("class_body protocol_body enum_class_body"),
        constants=_for_types("property_declaration", _name_field),
    ),
    "scala": Grammar(
        "scala",
        {
            **_for_types("class_definition object_definition trait_definition enum_definition", _name_field),
            **_for_types("function_definition function_declaration type_definition", _name_field),
            "given_definition": _name_field,
            "extension_definition": _fixed_name("extension"),
            "package_object": _name_field,
            "package_clause": _name_field_with_body,
        },
        namespaces=node_types("package_clause"),
        containers=node_types("template_body enum_body"),
        constants=_for_types("val_definition", _field("pattern")),
    ),
    "lua": Grammar(
        "lua",
        {
            "function_declaration": _name_field,
            "assignment_statement": _lua_assigned,
            "field": _named_function("name", "value"),
        },
        containers=node_types("block"),
        wrappers=node_types("variable_declaration"),
    ),
    "perl": Grammar(
        "perl",
        {
            "function_definition": _name_field_with_body,
            "package_statement": lambda node: node.child_by_field_name("body") and _child("package_name")(node),
        },
        namespaces=node_types("package_statement"),
        containers=node_types("block"),
    ),
    "elixir": Grammar("elixir", {"call": _elixir}, containers=node_types("do_block")),
    "haskell": Grammar(
        "haskell",
        {
            **_for_types("data_type newtype class instance type_synomym type_family data_family", _name_field),
            **_for_types("function bind signature", _haskell_function),
        },
        containers=node_types("declarations class_declarations instance_declarations"),
    ),
    "zig": Grammar(
        "zig",
        {"function_declaration": _name_field, "variable_declaration": _zig_type, "test_declaration": _child("string")},
        containers=node_types("struct_declaration enum_declaration union_declaration"),
    ),
    "dart": Grammar(
        "dart",
        {
            **_for_types("class_definition enum_declaration extension_declaration", _name_field),
            "mixin_declaration": _child("identifier"),
            "type_alias": _child("type_identifier"),
            **_for_types("function_signature getter_signature setter_signature operator_signature", _name_field),
            **_for_types("constructor_signature factory_constructor_signature", _name_field),
        },
        containers=node_types("class_body enum_body extension_body"),
        wrappers=node_types("method_signature"),
    ),
    "julia": Grammar(
        "julia",
        {
            "module_definition": _name_field,
            **_for_types("function_definition macro_definition", _julia_function),
            **_for_types("struct_definition abstract_definition", _child("identifier", inside="type_head")),
            "assignment": _julia_short,
        },
        namespaces=node_types("module_definition"),
        containers=node_types("block"),
    ),
    "r": Grammar("r", {"binary_operator": _named_function("lhs", "rhs")}),
    "json": Grammar("json", {"pair": _key}, containers=node_types("object"), outlined=False),
    "toml": Grammar(
        "toml",
        _for_types("table table_array_element", lambda node: node.named_child(0) or ""),
        kind="table",
        qualified=False,
    ),
    "ini": Grammar(
        "ini",
        {"section": lambda node: node_text(node.named_child(0)).strip("[] \t")},
        kind="table",
        qualified=False,
    ),
    "make": Grammar("make", {"rule": _make_targets}, kind="target", qualified=False),
    "sql": Grammar(
        "sql",
        dict.fromkeys((*(f"create_{kind}" for kind in _SQL_KINDS), "ERROR"), _sql_created),
        wrappers=node_types("statement"),
        qualified=False,
    ),
    "yaml": Grammar(
        "yaml",
        {"block_mapping_pair": _key},
        containers=node_types("document block_node block_mapping"),
        kind="key",
    ),
    "markdown": Grammar(
        "markdown", _for_types("atx_heading setext_heading", _heading), kind="heading", qualified=False
    ),
    "rst": Grammar("rst", {"title": _heading}, kind="heading", qualified=False),
    "html": Grammar("html", {"element": _heading}, kind="heading", qualified=False),
}

"""Table of grammars: node types of definitions, rules for their names, and node types that may contain definitions."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripwrap._code.languages import language_name

if TYPE_CHECKING:
    from tree_sitter import Node

NameRule = Callable[["Node"], str | None]
"""Function that returns the name of a node: empty for a definition without a name, None for all other nodes."""

_NO_TYPES: frozenset[str] = frozenset()
_MAX_DECLARATORS = 20
"""Maximum number of nested declarators (in C, pointers and arrays) around a name."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """Rules to find the definitions of a language."""

    name: str
    definitions: Mapping[str, NameRule]
    namespaces: frozenset[str] = _NO_TYPES
    containers: frozenset[str] = _NO_TYPES
    large_containers: frozenset[str] = _NO_TYPES
    wrappers: frozenset[str] = _NO_TYPES
    constants: Mapping[str, NameRule] = field(default_factory=dict[str, NameRule])
    attributes: frozenset[str] = _NO_TYPES
    hash_comments: bool = False
    headings: bool = False
    qualified: bool = True
    generics: bool = False


def find_grammar(path: str, text: str) -> Grammar | None:
    """Return the grammar of a file's language, or None if the language has no grammar."""
    name = language_name(path, text)
    if name == "c header":
        name = "cpp" if _IS_CPP.search(text) else "c"
    return _GRAMMARS.get(name) if name else None


_IS_CPP = re.compile(r"^[ \t]*(?:class|namespace|template|using)\b|^[ \t]*(?:public|private):", re.MULTILINE)


def node_text(node: "Node | None") -> str:
    """Return the first 400 bytes of a node's text on one line, without type arguments in angle brackets."""
    if node is None:
        return ""
    text = (node.text or b"")[:400].decode("utf-8", "replace")
    if "<" in text and "operator" not in text:
        text = _ARGUMENTS.sub("", text)
    return " ".join(text.split())


_ARGUMENTS = re.compile(r"::<.*>|<.*>", re.DOTALL)


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _field(key: str, *, needs: str = "", otherwise: str = "") -> NameRule:
    """Return a rule that takes a definition's name from a field of its node.

    If the node does not have this field, the name is `otherwise`. A node without the field `needs` is not a definition:
    it only mentions a name.
    """

    def name(node: "Node") -> str | None:
        if needs and node.child_by_field_name(needs) is None:
            return None
        child = node.child_by_field_name(key)
        return otherwise if child is None else node_text(child)

    return name


def _fixed_name(text: str) -> NameRule:
    return lambda _: text


def _named_function(key: str, value: str) -> NameRule:
    """Return a rule that takes the name from the field `key`, as in `key = function…`.

    A node is a definition only if its field `value` is a function or class.
    """

    def name(node: "Node") -> str | None:
        made = node.child_by_field_name(value)
        return node_text(node.child_by_field_name(key)) if made is not None and made.type in _FUNCTIONS else None

    return name


def _for_types(types: str, name: NameRule) -> dict[str, NameRule]:
    return dict.fromkeys(types.split(), name)


_name_field = _field("name")
_name_field_with_body = _field("name", needs="body")


# --- Python


def _assigned(statement: "Node") -> str | None:
    inner = statement.named_child(0) if statement.named_child_count == 1 else None
    return node_text(inner.child_by_field_name("left")) if inner is not None and inner.type == "assignment" else None


_PYTHON = Grammar(
    "python",
    _for_types("function_definition class_definition", _name_field),
    containers=_words(
        "block if_statement elif_clause else_clause try_statement except_clause except_group_clause finally_clause"
        " with_statement"
    ),
    large_containers=_words("for_statement while_statement match_statement case_clause"),
    wrappers=_words("decorated_definition"),
    constants={"expression_statement": _assigned},
)


# --- JavaScript and TypeScript

_FUNCTIONS = _words("arrow_function function_expression generator_function class function")
_JAVASCRIPT: dict[str, NameRule] = {
    **_for_types(
        "function_declaration generator_function_declaration class_declaration method_definition", _name_field
    ),
    "variable_declarator": _named_function("name", "value"),
    "assignment_expression": _named_function("left", "right"),
    "pair": _named_function("key", "value"),
    "field_definition": _named_function("property", "value"),
    "public_field_definition": _named_function("name", "value"),
}
_TYPESCRIPT: dict[str, NameRule] = {
    **_JAVASCRIPT,
    **_for_types(
        "interface_declaration type_alias_declaration enum_declaration abstract_class_declaration", _name_field
    ),
    **_for_types("internal_module module", _name_field),
}
_SCRIPT_THROUGH = _words("class_body statement_block")
_SCRIPT_LARGE = _words(
    "expression_statement assignment_expression call_expression arguments parenthesized_expression unary_expression"
    " arrow_function function_expression generator_function class object lexical_declaration variable_declaration"
    " variable_declarator pair export_statement return_statement if_statement else_clause try_statement catch_clause"
    " finally_clause sequence_expression"
)
_SCRIPT_WRAPPERS = _words(
    "export_statement lexical_declaration variable_declaration expression_statement ambient_declaration"
)


def _declared(node: "Node") -> str | None:
    declarator = next((child for child in node.named_children if child.type == "variable_declarator"), None)
    if declarator is None and (inner := node.child_by_field_name("declaration")) is not None:
        return _declared(inner) if inner.type in {"lexical_declaration", "variable_declaration"} else None
    return node_text(declarator.child_by_field_name("name")) if declarator is not None else None


def _script(name: str, definitions: Mapping[str, NameRule]) -> Grammar:
    return Grammar(
        name,
        definitions,
        namespaces=_words("internal_module module"),
        containers=_SCRIPT_THROUGH,
        large_containers=_SCRIPT_LARGE,
        wrappers=_SCRIPT_WRAPPERS,
        constants=_for_types("lexical_declaration variable_declaration export_statement", _declared),
        attributes=_words("decorator"),
    )


# --- C and C++


def _declarator(node: "Node") -> str | None:
    """Return the name in a declarator, inside its pointers, arrays and parentheses; empty if there is no name."""
    found = node.child_by_field_name("declarator")
    for _ in range(_MAX_DECLARATORS):
        if found is None:
            return ""
        inner = found.child_by_field_name("declarator")
        if inner is None and found.type in {
            "parenthesized_declarator",
            "reference_declarator",
            "attributed_declarator",
        }:
            inner = next(iter(found.named_children), None)
        if inner is None:
            return "" if found.type.endswith("_declarator") else node_text(found)
        found = inner
    return ""


def _typedef(node: "Node") -> str | None:
    kind = node.child_by_field_name("type")
    return _declarator(node) if kind is not None and kind.child_by_field_name("body") is not None else None


def _initialised(node: "Node") -> str | None:
    declarator = node.child_by_field_name("declarator")
    return _declarator(declarator) if declarator is not None and declarator.type == "init_declarator" else None


_C: dict[str, NameRule] = {
    "function_definition": _declarator,
    **_for_types("struct_specifier union_specifier enum_specifier", _name_field_with_body),
    "type_definition": _typedef,
    "preproc_function_def": _name_field,
}
_C_THROUGH = _words(
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

# --- Other languages

_GO_RECEIVER = re.compile(r"(\w+)(?:\[[^\]]*\])?\s*\)$")


def _go_method(node: "Node") -> str | None:
    name = node_text(node.child_by_field_name("name"))
    receiver = _GO_RECEIVER.search(node_text(node.child_by_field_name("receiver")))
    return f"{receiver[1]}.{name}" if receiver else name


def _go_constants(node: "Node") -> str | None:
    spec = next((child for child in node.named_children if child.type in {"const_spec", "var_spec"}), None)
    return node_text(spec.child_by_field_name("name")) if spec is not None and node.named_child_count == 1 else None


def _ruby_singleton(node: "Node") -> str | None:
    return f"{node_text(node.child_by_field_name('object'))}.{node_text(node.child_by_field_name('name'))}"


def _first_identifier(node: "Node") -> str | None:
    return node_text(next((child for child in node.named_children if child.type == "identifier"), None))


def _key(node: "Node") -> str | None:
    return _unquoted(node_text(node.child_by_field_name("key")))


def _table(node: "Node") -> str | None:
    return node_text(node.named_child(0)) if node.named_child_count else ""


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


_JSON = Grammar("json", {"pair": _key}, containers=_words("object"), large_containers=_words("array"))
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
            **_for_types("type_spec type_alias", _name_field),
        },
        wrappers=_words("type_declaration"),
        constants=_for_types("const_declaration var_declaration", _go_constants),
    ),
    "rust": Grammar(
        "rust",
        {
            **_for_types(
                "function_item struct_item enum_item union_item trait_item macro_definition type_item", _name_field
            ),
            "function_signature_item": _name_field,
            "impl_item": _field("type"),
            "mod_item": _name_field_with_body,
        },
        namespaces=_words("mod_item"),
        containers=_words("declaration_list foreign_mod_item"),
        large_containers=_words("block"),
        constants=_for_types("const_item static_item", _name_field),
        attributes=_words("attribute_item inner_attribute_item"),
    ),
    "java": Grammar(
        "java",
        {
            **_for_types("class_declaration interface_declaration enum_declaration record_declaration", _name_field),
            **_for_types("annotation_type_declaration method_declaration constructor_declaration", _name_field),
            "compact_constructor_declaration": _name_field,
        },
        containers=_words("class_body interface_body enum_body enum_body_declarations annotation_type_body"),
        generics=True,
    ),
    "c": Grammar("c", _C, containers=_C_THROUGH, constants=_for_types("declaration", _initialised)),
    "cpp": Grammar(
        "cpp",
        _CPP,
        namespaces=_words("namespace_definition"),
        containers=_C_THROUGH,
        wrappers=_words("template_declaration"),
        constants=_for_types("declaration", _initialised),
    ),
    "csharp": Grammar(
        "csharp",
        {
            **_for_types("class_declaration interface_declaration struct_declaration enum_declaration", _name_field),
            **_for_types(
                "record_declaration record_struct_declaration delegate_declaration method_declaration", _name_field
            ),
            **_for_types(
                "constructor_declaration property_declaration event_declaration local_function_statement", _name_field
            ),
            "destructor_declaration": lambda node: f"~{node_text(node.child_by_field_name('name'))}",
            "operator_declaration": lambda node: f"operator {node_text(node.child_by_field_name('operator'))}",
            "indexer_declaration": _fixed_name("this"),
            "namespace_declaration": _name_field,
        },
        namespaces=_words("namespace_declaration"),
        containers=_words("declaration_list file_scoped_namespace_declaration preproc_if preproc_region preproc_else"),
        large_containers=_words("block global_statement"),
        generics=True,
    ),
    "ruby": Grammar(
        "ruby",
        {
            **_for_types("class module method", _name_field),
            "singleton_method": _ruby_singleton,
            "singleton_class": lambda node: f"<< {node_text(node.child_by_field_name('value'))}",
        },
        namespaces=_words("module"),
        containers=_words("body_statement begin_block"),
        large_containers=_words("call argument_list do_block block block_body if unless begin"),
        wrappers=_words("call"),
    ),
    "php": Grammar(
        "php",
        {
            **_for_types("class_declaration interface_declaration trait_declaration enum_declaration", _name_field),
            **_for_types("function_definition method_declaration", _name_field),
            "namespace_definition": _name_field_with_body,
        },
        namespaces=_words("namespace_definition"),
        containers=_words("declaration_list enum_declaration_list compound_statement"),
        large_containers=_words("if_statement else_clause"),
    ),
    "bash": Grammar(
        "bash",
        {"function_definition": _name_field},
        containers=_words("if_statement else_clause elif_clause compound_statement"),
        large_containers=_words("subshell case_statement case_item for_statement while_statement do_group"),
    ),
    "kotlin": Grammar(
        "kotlin",
        {
            **_for_types("class_declaration object_declaration function_declaration", _name_field),
            "companion_object": _field("name", otherwise="companion object"),
            "secondary_constructor": _fixed_name("constructor"),
            "anonymous_initializer": _fixed_name("init"),
            "type_alias": _first_identifier,
        },
        containers=_words("class_body enum_class_body"),
        large_containers=_words("function_body block"),
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
        containers=_words("class_body protocol_body enum_class_body"),
        large_containers=_words("function_body statements"),
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
        namespaces=_words("package_clause"),
        containers=_words("template_body enum_body"),
        large_containers=_words("block indented_block"),
        constants=_for_types("val_definition", _field("pattern")),
    ),
    "json": _JSON,
    "toml": Grammar("toml", _for_types("table table_array_element", _table), hash_comments=True, qualified=False),
    "yaml": Grammar(
        "yaml", {"block_mapping_pair": _key}, containers=_words("document block_node block_mapping"), hash_comments=True
    ),
    "markdown": Grammar("markdown", {}, containers=_words("section"), headings=True, qualified=False),
}

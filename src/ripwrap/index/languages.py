"""Which of a grammar's nodes are definitions, how they are named, and what is looked through to find them: data."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

Name = Callable[["Node"], str | None]
"""What a node defines; `None` if it is not a definition after all. An empty one is a definition without a name."""

_NONE: frozenset[str] = frozenset()
_STEPS = 20  # How far a name is looked for; a declarator of more pointers has none.


@dataclass(frozen=True, slots=True)
class Grammar:
    """How the definitions of a language are found.

    Attributes:
        name: The grammar's name in semble-grammars.
        definitions: The types of nodes that are definitions, and how they are named.
        spaces: Those of them that are always looked into, because they are the frame of a file.
        through: Types of nodes that are looked through.
        large: Types of nodes that are looked through only where they are too large for a chunk.
        wrappers: What stands around a definition and belongs to it.
        constants: What counts as a definition at the top level, if it is of several lines.
        above: What belongs to the definition behind it, besides comments.
        hashes: Whether lines above a definition that begin with # belong to it, whatever the tree says.
        headings: Whether it is Markdown, which has sections instead.
        qualified: Whether a name is given with those of what it stands in.
        generics: Whether angle brackets within each other take the parser time in the square of their number, or more.
    """

    name: str
    definitions: Mapping[str, Name]
    spaces: frozenset[str] = _NONE
    through: frozenset[str] = _NONE
    large: frozenset[str] = _NONE
    wrappers: frozenset[str] = _NONE
    constants: Mapping[str, Name] = field(default_factory=dict[str, Name])
    above: frozenset[str] = _NONE
    hashes: bool = False
    headings: bool = False
    qualified: bool = True
    generics: bool = False


def grammar_of(path: str, text: str) -> Grammar | None:
    """By the extension or name of a file, or the first line of one without an extension; `None` if it is unknown."""
    name = PurePath(path.replace("\\", "/")).name.lower()
    extension = name.rpartition(".")[2] if "." in name[1:] else ""
    key = _NAMES.get(name) or _EXTENSIONS.get(extension)
    if extension == "h" and _IS_CPP.search(text):
        key = "cpp"
    if key is None and not extension and text.startswith("#!"):
        interpreters = re.findall("python|bash|sh|ruby|node|php", text[:200].partition("\n")[0])
        key = _EXTENSIONS.get(interpreters[-1]) if interpreters else None
    return _GRAMMARS[key] if key else None


_IS_CPP = re.compile(r"^[ \t]*(?:class|namespace|template|using)\b|^[ \t]*(?:public|private):", re.MULTILINE)


def spelled(node: "Node | None") -> str:
    """A node's text on one line, without what is in angle brackets."""
    if node is None:
        return ""
    text = (node.text or b"")[:400].decode("utf-8", "replace")
    if "<" in text and "operator" not in text:
        text = _ARGUMENTS.sub("", text)
    return " ".join(text.split())


_ARGUMENTS = re.compile(r"::<.*>|<.*>", re.DOTALL)


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _field(*names: str, needs: str = "") -> Name:
    """Named by the first of these fields that it has; without the field that it needs it is only mentioned."""

    def name(node: "Node") -> str | None:
        if needs and node.child_by_field_name(needs) is None:
            return None
        for one in names:
            if (child := node.child_by_field_name(one)) is not None:
                return spelled(child)
        return ""

    return name


def _called(text: str, *fields: str) -> Name:
    """A definition that a language gives no name, or not always one."""

    def name(node: "Node") -> str | None:
        for one in fields:
            if (child := node.child_by_field_name(one)) is not None:
                return spelled(child)
        return text

    return name


def _if_value(key: str, value: str, types: frozenset[str]) -> Name:
    """Named by a field, if another is a function or the like."""

    def name(node: "Node") -> str | None:
        made = node.child_by_field_name(value)
        return spelled(node.child_by_field_name(key)) if made is not None and made.type in types else None

    return name


def _first(*types: str) -> Name:
    """Named by the first child of one of these types."""

    def name(node: "Node") -> str | None:
        return spelled(next((child for child in node.named_children if child.type in types), None))

    return name


def _all(types: str, name: Name) -> dict[str, Name]:
    return dict.fromkeys(types.split(), name)


_named = _field("name")
_bodied = _field("name", needs="body")


# --- Python


def _assigned(statement: "Node") -> str | None:
    inner = statement.named_child(0) if statement.named_child_count == 1 else None
    return spelled(inner.child_by_field_name("left")) if inner is not None and inner.type == "assignment" else None


_PYTHON = Grammar(
    "python",
    _all("function_definition class_definition", _named),
    through=_words(
        "block if_statement elif_clause else_clause try_statement except_clause except_group_clause finally_clause"
        " with_statement"
    ),
    large=_words("for_statement while_statement match_statement case_clause"),
    wrappers=_words("decorated_definition"),
    constants={"expression_statement": _assigned},
)


# --- JavaScript and TypeScript

_FUNCTIONS = _words("arrow_function function_expression generator_function class function")
_JAVASCRIPT: dict[str, Name] = {
    **_all("function_declaration generator_function_declaration class_declaration method_definition", _named),
    "variable_declarator": _if_value("name", "value", _FUNCTIONS),
    "assignment_expression": _if_value("left", "right", _FUNCTIONS),
    "pair": _if_value("key", "value", _FUNCTIONS),
    "field_definition": _if_value("property", "value", _FUNCTIONS),
    "public_field_definition": _if_value("name", "value", _FUNCTIONS),
}
_TYPESCRIPT: dict[str, Name] = {
    **_JAVASCRIPT,
    **_all("interface_declaration type_alias_declaration enum_declaration abstract_class_declaration", _named),
    **_all("internal_module module", _named),
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
    return spelled(declarator.child_by_field_name("name")) if declarator is not None else None


def _script(name: str, definitions: Mapping[str, Name]) -> Grammar:
    return Grammar(
        name,
        definitions,
        spaces=_words("internal_module module"),
        through=_SCRIPT_THROUGH,
        large=_SCRIPT_LARGE,
        wrappers=_SCRIPT_WRAPPERS,
        constants=_all("lexical_declaration variable_declaration export_statement", _declared),
        above=_words("decorator"),
    )


# --- C and C++


def _declarator(node: "Node") -> str | None:
    """The name within pointers, arrays and parentheses."""
    found = node.child_by_field_name("declarator")
    for _ in range(_STEPS):
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
            return "" if found.type.endswith("_declarator") else spelled(found)
        found = inner
    return ""


def _typedef(node: "Node") -> str | None:
    kind = node.child_by_field_name("type")
    return _declarator(node) if kind is not None and kind.child_by_field_name("body") is not None else None


def _initialised(node: "Node") -> str | None:
    declarator = node.child_by_field_name("declarator")
    return _declarator(declarator) if declarator is not None and declarator.type == "init_declarator" else None


_C: dict[str, Name] = {
    "function_definition": _declarator,
    **_all("struct_specifier union_specifier enum_specifier", _bodied),
    "type_definition": _typedef,
    "preproc_function_def": _named,
}
_C_THROUGH = _words(
    "preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification declaration_list"
    " field_declaration_list"
)
_CPP: dict[str, Name] = {
    **_C,
    "class_specifier": _bodied,
    "namespace_definition": _named,
    "concept_definition": _named,
    "alias_declaration": _named,
}

# --- The rest

_GO_RECEIVER = re.compile(r"(\w+)(?:\[[^\]]*\])?\s*\)$")


def _go_method(node: "Node") -> str | None:
    name = spelled(node.child_by_field_name("name"))
    receiver = _GO_RECEIVER.search(spelled(node.child_by_field_name("receiver")))
    return f"{receiver[1]}.{name}" if receiver else name


def _go_constants(node: "Node") -> str | None:
    spec = next((child for child in node.named_children if child.type in {"const_spec", "var_spec"}), None)
    return spelled(spec.child_by_field_name("name")) if spec is not None and node.named_child_count == 1 else None


def _ruby_singleton(node: "Node") -> str | None:
    return f"{spelled(node.child_by_field_name('object'))}.{spelled(node.child_by_field_name('name'))}"


def _ruby_opened(node: "Node") -> str | None:
    return f"<< {spelled(node.child_by_field_name('value'))}"


def _key(node: "Node") -> str | None:
    return _unquoted(spelled(node.child_by_field_name("key")))


def _table(node: "Node") -> str | None:
    return spelled(node.named_child(0)) if node.named_child_count else ""


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


_JSON = Grammar("json", {"pair": _key}, through=_words("object"), large=_words("array"))
_GRAMMARS: dict[str, Grammar] = {
    "python": _PYTHON,
    "javascript": _script("javascript", _JAVASCRIPT),
    "typescript": _script("typescript", _TYPESCRIPT),
    "tsx": _script("tsx", _TYPESCRIPT),
    "go": Grammar(
        "go",
        {"function_declaration": _named, "method_declaration": _go_method, **_all("type_spec type_alias", _named)},
        wrappers=_words("type_declaration"),
        constants=_all("const_declaration var_declaration", _go_constants),
    ),
    "rust": Grammar(
        "rust",
        {
            **_all("function_item struct_item enum_item union_item trait_item macro_definition type_item", _named),
            "function_signature_item": _named,
            "impl_item": _field("type"),
            "mod_item": _bodied,
        },
        spaces=_words("mod_item"),
        through=_words("declaration_list foreign_mod_item"),
        large=_words("block"),
        constants=_all("const_item static_item", _named),
        above=_words("attribute_item inner_attribute_item"),
    ),
    "java": Grammar(
        "java",
        {
            **_all("class_declaration interface_declaration enum_declaration record_declaration", _named),
            **_all("annotation_type_declaration method_declaration constructor_declaration", _named),
            "compact_constructor_declaration": _named,
        },
        through=_words("class_body interface_body enum_body enum_body_declarations annotation_type_body"),
        generics=True,
    ),
    "c": Grammar("c", _C, through=_C_THROUGH, constants=_all("declaration", _initialised)),
    "cpp": Grammar(
        "cpp",
        _CPP,
        spaces=_words("namespace_definition"),
        through=_C_THROUGH,
        wrappers=_words("template_declaration"),
        constants=_all("declaration", _initialised),
    ),
    "csharp": Grammar(
        "csharp",
        {
            **_all("class_declaration interface_declaration struct_declaration enum_declaration", _named),
            **_all("record_declaration record_struct_declaration delegate_declaration method_declaration", _named),
            **_all("constructor_declaration property_declaration event_declaration local_function_statement", _named),
            "destructor_declaration": lambda node: f"~{spelled(node.child_by_field_name('name'))}",
            "operator_declaration": lambda node: f"operator {spelled(node.child_by_field_name('operator'))}",
            "indexer_declaration": _called("this"),
            "namespace_declaration": _named,
        },
        spaces=_words("namespace_declaration"),
        through=_words("declaration_list file_scoped_namespace_declaration preproc_if preproc_region preproc_else"),
        large=_words("block global_statement"),
        generics=True,
    ),
    "ruby": Grammar(
        "ruby",
        {
            **_all("class module method", _named),
            "singleton_method": _ruby_singleton,
            "singleton_class": _ruby_opened,
        },
        spaces=_words("module"),
        through=_words("body_statement begin_block"),
        large=_words("call argument_list do_block block block_body if unless begin"),
        wrappers=_words("call"),
    ),
    "php": Grammar(
        "php",
        {
            **_all("class_declaration interface_declaration trait_declaration enum_declaration", _named),
            **_all("function_definition method_declaration", _named),
            "namespace_definition": _bodied,
        },
        spaces=_words("namespace_definition"),
        through=_words("declaration_list enum_declaration_list compound_statement"),
        large=_words("if_statement else_clause"),
    ),
    "bash": Grammar(
        "bash",
        {"function_definition": _named},
        through=_words("if_statement else_clause elif_clause compound_statement"),
        large=_words("subshell case_statement case_item for_statement while_statement do_group"),
    ),
    "kotlin": Grammar(
        "kotlin",
        {
            **_all("class_declaration object_declaration function_declaration", _named),
            "companion_object": _called("companion object", "name"),
            "secondary_constructor": _called("constructor"),
            "anonymous_initializer": _called("init"),
            "type_alias": _first("identifier"),
        },
        through=_words("class_body enum_class_body"),
        large=_words("function_body block"),
    ),
    "swift": Grammar(
        "swift",
        {
            **_all("class_declaration protocol_declaration function_declaration macro_declaration", _named),
            "protocol_function_declaration": _named,
            "typealias_declaration": _named,
            "property_declaration": _field("name", needs="computed_value"),
            "init_declaration": _called("init"),
            "deinit_declaration": _called("deinit"),
            "subscript_declaration": _called("subscript"),
        },
        through=_words("class_body protocol_body enum_class_body"),
        large=_words("function_body statements"),
    ),
    "scala": Grammar(
        "scala",
        {
            **_all("class_definition object_definition trait_definition enum_definition", _named),
            **_all("function_definition function_declaration type_definition", _named),
            "given_definition": _named,
            "extension_definition": _called("extension"),
            "package_object": _named,
            "package_clause": _bodied,
        },
        spaces=_words("package_clause"),
        through=_words("template_body enum_body"),
        large=_words("block indented_block"),
        constants=_all("val_definition", _field("pattern")),
    ),
    "json": _JSON,
    "toml": Grammar("toml", _all("table table_array_element", _table), hashes=True, qualified=False),
    "yaml": Grammar(
        "yaml", {"block_mapping_pair": _key}, through=_words("document block_node block_mapping"), hashes=True
    ),
    "markdown": Grammar("markdown", {}, through=_words("section"), headings=True, qualified=False),
}


_EXTENSIONS = {
    extension: language
    for language, extensions in {
        "python": "py pyi pyw python",
        "javascript": "js mjs cjs jsx node",
        "typescript": "ts mts cts",
        "tsx": "tsx",
        "go": "go",
        "rust": "rs",
        "java": "java",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl cu cuh",
        "csharp": "cs csx",
        "ruby": "rb rake gemspec ruby",
        "php": "php phtml",
        "bash": "sh bash zsh ksh",
        "kotlin": "kt kts",
        "swift": "swift",
        "scala": "scala sc sbt",
        "json": "json jsonc json5 webmanifest code-workspace",
        "toml": "toml",
        "yaml": "yaml yml",
        "markdown": "md markdown mdx mdown",
    }.items()
    for extension in extensions.split()
}
_NAMES = {
    "gemfile": "ruby",
    "rakefile": "ruby",
    "vagrantfile": "ruby",
    ".bashrc": "bash",
    ".zshrc": "bash",
    ".profile": "bash",
    "cargo.lock": "toml",
    "poetry.lock": "toml",
    "uv.lock": "toml",
    "pipfile": "toml",
    ".clang-format": "yaml",
}

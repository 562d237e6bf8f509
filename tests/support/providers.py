"""Checks of tool schemas by the rules that model providers publish."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

JsonSchema = Mapping[str, Any]

# https://platform.openai.com/docs/api-reference/chat/create (tools.function.name) and
# https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use (tools.name)
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. It has `minimum` and the like too, but
# not for fine-tuned models, and Azure refuses `default` (https://github.com/dotnet/extensions/issues/6196).
OPENAI_STRICT_KEYWORDS = {
    "type",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "anyOf",
}

# https://docs.claude.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations
ANTHROPIC_STRICT_KEYWORDS = OPENAI_STRICT_KEYWORDS | {"default", "const", "format", "pattern", "allOf"}
ANTHROPIC_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

# https://docs.cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/Schema and …/v1beta1/FunctionDeclaration
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")
GEMINI_PROPERTY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
GEMINI_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
GEMINI_KEYWORDS: dict[str | None, set[str]] = {
    None: {"type", "description", "nullable", "default", "enum", "anyOf", "title", "format"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
    "string": {"minLength", "maxLength", "pattern"},
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "propertyOrdering", "additionalProperties"},
}


def subschemas(schema: JsonSchema) -> Iterator[JsonSchema]:
    """Yield a schema and all schemas in it."""
    yield schema
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        yield from subschemas(inner)
    if "items" in schema:
        yield from subschemas(schema["items"])


def check_openai(name: str, schema: JsonSchema) -> None:
    """Check the rules for a function of OpenAI without strict mode."""
    assert NAME.fullmatch(name)
    _check_root(schema, {"oneOf", "anyOf", "allOf", "enum", "not"})


def check_openai_strict(name: str, schema: JsonSchema) -> None:
    """Check the rules for a function of OpenAI in strict mode, including those for fine-tuned models."""
    check_openai(name, schema)
    for each in subschemas(schema):
        assert set(each) <= OPENAI_STRICT_KEYWORDS
        assert each.get("type") or each.get("anyOf")
        if each.get("type") == "object":
            assert each["additionalProperties"] is False
            assert each["required"] == [*each["properties"]]
        assert each.get("type") != "array" or each["items"]
    assert sum(len(each.get("properties", ())) for each in subschemas(schema)) <= 5000
    assert sum(len(each.get("enum", ())) for each in subschemas(schema)) <= 1000


def check_anthropic(name: str, schema: JsonSchema) -> None:
    """Check the rules for a tool of Anthropic; for the last, see https://github.com/anthropics/claude-code/issues/5319."""
    assert NAME.fullmatch(name)
    assert all(ANTHROPIC_PROPERTY.fullmatch(key) for key in schema["properties"])
    assert not any("$ref" in each for each in subschemas(schema))
    _check_root(schema, {"oneOf", "anyOf", "allOf"})


def check_anthropic_strict(name: str, schema: JsonSchema) -> None:
    """Check the rules for a tool of Anthropic in strict mode, except limits for all tools of a request."""
    check_anthropic(name, schema)
    for each in subschemas(schema):
        assert set(each) <= ANTHROPIC_STRICT_KEYWORDS
        assert each.get("type") != "object" or each["additionalProperties"] is False


def check_gemini(name: str, schema: JsonSchema) -> None:
    """Check the rules for a function of Gemini: a subset of OpenAPI 3.0."""
    assert GEMINI_NAME.fullmatch(name)
    assert all(GEMINI_PROPERTY.fullmatch(key) for key in schema["properties"])
    assert schema["type"] == "object"
    for each in subschemas(schema):
        kind = each.get("type")
        assert kind in GEMINI_TYPES or (kind is None and each["anyOf"])
        assert set(each) <= GEMINI_KEYWORDS[None] | GEMINI_KEYWORDS.get(kind, set())
        assert all(isinstance(value, str) for value in each.get("enum", ()))


def _check_root(schema: JsonSchema, refused: set[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert not refused & set(schema)

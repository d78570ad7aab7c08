"""Tool calls as text, for models without native tool calling.

<function=terminal>
<parameter=command>ls</parameter>
</function>
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

CALL_PREFIX = "<function="
STOP_SEQUENCE = "</function"
"""The stop sequence after the first call; the parser does without the missing end tag."""

NO_DESCRIPTION = "No description."

WRAPPER_TAG = "<tool_call>"
"""The tag that some models were trained to put around a call."""

CALL_START = re.compile(r"<function=([^<>\n]+)>\n?(.*)", re.DOTALL)
CALL_END = re.compile(r"</function|</\s*\Z")
CALL_END_AFTER_PARAMETER = re.compile(r"(?<=</parameter>)\s*</function")
CLOSED_PARAMETER = re.compile(
    r"<parameter=([^<>=\n]+)[>=](.*?)</parameter>(?=\s*(?:<parameter=|\Z))", re.DOTALL
)
UNCLOSED_PARAMETER = re.compile(
    r"<parameter=([^<>=\n]+)[>=](.*?)(?=</parameter>|<parameter=|\Z)", re.DOTALL
)
JSON_TYPES: dict[str, type] = {"integer": int, "number": float, "array": list, "object": dict}


@dataclass(frozen=True)
class ParsedCall:
    """A call found in a text; `arguments` is JSON text, or the raw text where it has no JSON."""

    text_before: str
    name: str
    arguments: str


def format_call(name: str, arguments: str) -> str:
    """Format a call as text; `arguments` is JSON text, copied unchanged unless it is an object."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    lines = map(_format_parameter, values.items()) if isinstance(values, dict) else [arguments]
    return "\n".join([f"{CALL_PREFIX}{name}>", *lines, "</function>"])


def parse_call(text: str, tools: Mapping[str, Schema], *, truncated: bool) -> ParsedCall | None:
    """Parse the first call in a text, and ignore the text after it; None without a call.

    `tools` has the schemas of arguments by tool name. `truncated` means that the model ran out of
    tokens: the arguments of an unfinished call are then left raw, so that it is never executed.
    """
    match = CALL_START.search(text)
    if match is None:
        return None
    name, arguments = match[1].strip(), match[2]
    end = _find_end(arguments)
    if end is not None or not truncated:
        arguments = _parse_arguments(arguments[:end].strip(), tools.get(name, {}))
    return ParsedCall(text_before_call(text), name, arguments)


def text_before_call(text: str) -> str:
    """Return the text before the call, without a partial tag at the end of a growing text."""
    before, tag, _ = text.partition(CALL_PREFIX)
    start = before.rfind("<")
    tags = (CALL_PREFIX, WRAPPER_TAG)
    if not tag and start >= 0 and any(tag.startswith(before[start:]) for tag in tags):
        before = before[:start]
    return before.rstrip().removesuffix(WRAPPER_TAG).strip()


def describe_tools(tools: Iterable[Schema]) -> str:
    """Describe tools, given as functions of the OpenAI format, in plain text."""
    return "\n\n".join("\n".join(_describe_tool(tool)) for tool in tools)


def _find_end(body: str) -> int | None:
    """Find the end of a call; a parameter's value may hold a copy of the end tag."""
    end = CALL_END.search(body)
    if end is not None and "<parameter=" in body[: end.start()]:
        end = CALL_END_AFTER_PARAMETER.search(body) or end
    return end.start() if end else None


def _describe_tool(tool: Schema) -> Iterator[str]:
    schema = tool.get("parameters") or {}
    required = schema.get("required") or ()
    yield f"---- {tool['name']} ----"
    yield str(tool.get("description") or NO_DESCRIPTION).strip()
    for name, parameter in _properties(schema).items():
        types = _json_types(parameter, schema)
        type_names = " or ".join(sorted(types)) or "any"
        status = "required" if name in required else "optional"
        yield f"- {name} ({type_names}, {status}): {parameter.get('description') or NO_DESCRIPTION}"
        if "enum" in parameter:
            yield f"  One of: {', '.join(map(json.dumps, parameter['enum']))}"
        elif {"array", "object"} & types:
            yield f"  JSON schema: {json.dumps(_with_definitions(parameter, schema))}"


def _format_parameter(item: tuple[str, Any]) -> str:
    name, value = item
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    framed = f"\n{text}\n" if "\n" in text else text
    return f"<parameter={name}>{framed}</parameter>"


def _parse_arguments(body: str, schema: Schema) -> str:
    """Convert the parameters to JSON text; a body without parameters is returned unchanged."""
    closed = body.count("<parameter=") <= body.count("</parameter>")
    pairs = (CLOSED_PARAMETER if closed else UNCLOSED_PARAMETER).findall(body)
    if not pairs:
        return body or "{}"
    properties = _properties(schema)
    values = {
        name.strip(): _parse_value(text, _json_types(properties.get(name.strip(), {}), schema))
        for name, text in pairs
    }
    return json.dumps(values, ensure_ascii=False)


def _parse_value(text: str, types: set[str]) -> Any:
    """Parse a value as one of the JSON types of its schema; return the text if it is none of them.

    A line feed at either end belongs to the tags.
    """
    text = text.removeprefix("\n").removesuffix("\n")
    bare = text.strip()
    if "null" in types and bare in ("null", "None"):
        return None
    if "boolean" in types and bare.lower() in ("true", "false"):
        return bare.lower() == "true"
    expected = tuple(python_type for name, python_type in JSON_TYPES.items() if name in types)
    try:
        value = json.loads(bare, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, expected) and not isinstance(value, bool) else text


def _properties(schema: Schema) -> dict[str, Schema]:
    """Return the schemas of the parameters; a bare `true` becomes an empty schema."""
    properties = schema.get("properties") or {}
    return {name: value if isinstance(value, Mapping) else {} for name, value in properties.items()}


def _json_types(schema: Schema, root: Schema, depth: int = 8) -> set[str]:
    """Collect the JSON types that a schema allows; empty if it does not name any."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        schema = (root.get("$defs") or {}).get(name, {})
    declared = schema.get("type")
    types = {declared} if isinstance(declared, str) else set(declared or ())
    for union in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(union) or ():
            if depth and isinstance(option, Mapping):
                types |= _json_types(option, root, depth - 1)
    return types | ({"integer"} if "number" in types else set())


def _with_definitions(schema: Schema, root: Schema) -> Schema:
    """Add to a schema with references the definitions of its root."""
    return {**schema, "$defs": root["$defs"]} if "$ref" in json.dumps(schema) else schema

"""A tool call as text: how a model writes it that knows no other way, and how it is read.

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

OPENING = "<function="
STOP = "</function"
"""A model that stops here stops after its first call; what is missing is put back."""

NO_WORDS = "No description."

WRAPPER = "<tool_call>"
"""What some models were taught to put around it."""

CALL = re.compile(r"<function=([^<>\n]+)>\n?(.*)", re.DOTALL)
END = re.compile(r"</function|</\s*\Z")
END_AFTER_PARAMETER = re.compile(r"(?<=</parameter>)\s*</function")
CLOSED = re.compile(
    r"<parameter=([^<>=\n]+)[>=](.*?)</parameter>(?=\s*(?:<parameter=|\Z))", re.DOTALL
)
UNCLOSED = re.compile(r"<parameter=([^<>=\n]+)[>=](.*?)(?=</parameter>|<parameter=|\Z)", re.DOTALL)
DECODED: dict[str, type] = {"integer": int, "number": float, "array": list, "object": dict}


@dataclass(frozen=True)
class WrittenCall:
    """`said` is what came before the call; `arguments` is JSON, or raw where they made no sense."""

    said: str
    name: str
    arguments: str


def write(name: str, arguments: str) -> str:
    """The text of a call; `arguments` is JSON text, and goes in as it is if it is no object."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    lines = map(_parameter, values.items()) if isinstance(values, dict) else [arguments]
    return "\n".join([f"{OPENING}{name}>", *lines, "</function>"])


def read(text: str, tools: Mapping[str, Schema], *, cut: bool) -> WrittenCall | None:
    """The first call in a text, or none; what comes after it is not looked at.

    `tools` are the schemas of arguments by name. `cut` says that the model ran out of tokens: half
    a call is then given raw, so that nobody runs it.
    """
    found = CALL.search(text)
    if found is None:
        return None
    name, end = found[1].strip(), _end(found[2])
    if end is None and cut:
        return WrittenCall(said_before(text), name, found[2])
    arguments = _arguments(found[2][:end].strip(), tools.get(name, {}))
    return WrittenCall(said_before(text), name, arguments)


def said_before(text: str) -> str:
    """What a text that is still growing says before its call, were that only about to begin."""
    said, tag, _ = text.partition(OPENING)
    start = said.rfind("<")
    if not tag and start >= 0 and any(each.startswith(said[start:]) for each in (OPENING, WRAPPER)):
        said = said[:start]
    return said.rstrip().removesuffix(WRAPPER).strip()


def describe(tools: Iterable[Schema]) -> str:
    """The tools, in words; `tools` are functions of the OpenAI format."""
    return "\n\n".join("\n".join(_lines(tool)) for tool in tools)


def _end(body: str) -> int | None:
    """Where the call ends: what looks like its end may also be in a value."""
    first = END.search(body)
    if first is None or "<parameter=" not in body[: first.start()]:
        return first.start() if first else None
    after = END_AFTER_PARAMETER.search(body)
    return (after or first).start()


def _lines(tool: Schema) -> Iterator[str]:
    schema = tool.get("parameters") or {}
    required = schema.get("required") or ()
    yield f"---- {tool['name']} ----"
    yield str(tool.get("description") or NO_WORDS).strip()
    for name, its in _properties(schema).items():
        kinds = _kinds(its, schema)
        told = " or ".join(sorted(kinds)) or "any"
        status = "required" if name in required else "optional"
        yield f"- {name} ({told}, {status}): {its.get('description') or NO_WORDS}"
        if "enum" in its:
            yield f"  One of: {', '.join(map(json.dumps, its['enum']))}"
        elif {"array", "object"} & kinds:
            yield f"  JSON schema: {json.dumps(_whole(its, schema))}"


def _parameter(item: tuple[str, Any]) -> str:
    name, value = item
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    framed = f"\n{text}\n" if "\n" in text else text
    return f"<parameter={name}>{framed}</parameter>"


def _arguments(body: str, schema: Schema) -> str:
    """The arguments as JSON text; a body without parameters is taken as it is."""
    closed = body.count("<parameter=") <= body.count("</parameter>")
    pairs = (CLOSED if closed else UNCLOSED).findall(body)
    if not pairs:
        return body or "{}"
    properties = _properties(schema)
    values = {
        name.strip(): _value(text, _kinds(properties.get(name.strip(), {}), schema))
        for name, text in pairs
    }
    return json.dumps(values, ensure_ascii=False)


def _value(text: str, kinds: set[str]) -> Any:
    """A value as its schema wants it, or the text where that cannot be.

    A line feed at either end belongs to the tags.
    """
    text = text.removeprefix("\n").removesuffix("\n")
    bare = text.strip()
    if "null" in kinds and bare in ("null", "None"):
        return None
    if "boolean" in kinds and bare.lower() in ("true", "false"):
        return bare.lower() == "true"
    wanted = tuple(kind for name, kind in DECODED.items() if name in kinds)
    try:
        value = json.loads(bare, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, wanted) and not isinstance(value, bool) else text


def _properties(schema: Schema) -> dict[str, Schema]:
    """The schemas of the parameters; one may be a mere `true`, which says nothing."""
    properties = schema.get("properties") or {}
    return {name: its if isinstance(its, Mapping) else {} for name, its in properties.items()}


def _kinds(schema: Schema, root: Schema, depth: int = 8) -> set[str]:
    """The JSON types a value may have; none where the schema does not say."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        schema = (root.get("$defs") or {}).get(name, {})
    kind = schema.get("type")
    kinds = {kind} if isinstance(kind, str) else set(kind or ())
    for union in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(union) or ():
            if depth and isinstance(option, Mapping):
                kinds |= _kinds(option, root, depth - 1)
    return kinds | ({"integer"} if "number" in kinds else set())


def _whole(schema: Schema, root: Schema) -> Schema:
    """The schema with the definitions it may refer to."""
    return {**schema, "$defs": root["$defs"]} if "$ref" in json.dumps(schema) else schema

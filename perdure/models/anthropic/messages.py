"""Conversion of messages and tools to the blocks of Anthropic's API, as litellm does it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Mapping[str, Any]
Side: TypeAlias = Literal["system", "user", "assistant"]

SIDES: dict[str, Side] = {
    "system": "system",
    "user": "user",
    "tool": "user",
    "assistant": "assistant",
}
"""Where a message of each role belongs: a tool's result is a block of the user."""

EMPTY_TEXT = "[System: Empty message content sanitised to satisfy protocol]"
"""What stands for an empty text, which Anthropic refuses; the words are litellm's."""

BAD_ID_CHARS = re.compile(r"[^a-zA-Z0-9_-]")
DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,([\w+/=-]*)", re.ASCII)
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
SERVER_CALL = "srvtoolu_"
FOREIGN_REASONING = "litellm_encrypted_reasoning:"
"""What a signature begins with if litellm put the reasoning of another provider into it."""

ARGUMENT_FIELDS = ("type", "properties", "additionalProperties", "required", "$defs", "strict")
"""The fields that Anthropic takes at the top of a tool's parameters; litellm drops all others."""

ODD_TOOL_FIELDS = {
    *("allowed_callers", "cache_control", "defer_loading", "eager_input_streaming"),
    "input_examples",
}
"""The fields of tools that litellm passes on, in its way."""

DUMMY_TOOL = {
    "name": "dummy_tool",
    "input_schema": {"type": "object", "properties": {}},
    "type": "custom",
    "description": "This is a dummy tool call",
}
"""litellm's tool for a prompt with tool calls and no tools, which Anthropic refuses."""


class NotDirect(Exception):
    """A message or a tool that only litellm converts."""


def convert_message(message: Json) -> list[Json]:
    """Convert a message to blocks of its side. Raises NotDirect."""
    if message.keys() & {"function_call", "provider_specific_fields"}:
        raise NotDirect
    match message.get("role"):
        case "system":
            return list(_system_blocks(message))
        case "user":
            return list(_user_blocks(message))
        case "tool":
            return [_result_block(message)]
        case "assistant":
            return [*_thinking_blocks(message), *_text_blocks(message), *_call_blocks(message)]
    raise NotDirect


def convert_tool(tool: Json) -> Json:
    """Convert the definition of a tool. Raises NotDirect."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, Mapping):
        raise NotDirect
    name, description = function.get("name"), function.get("description")
    parameters = function.get("parameters", {})
    is_plain = isinstance(name, str) and TOOL_NAME.fullmatch(name)
    if ODD_TOOL_FIELDS & {*tool, *function} or not is_plain or not isinstance(parameters, Mapping):
        raise NotDirect
    if {"definitions", "components"} & parameters.keys():  # litellm resolves their references
        raise NotDirect
    schema = {"properties": {}, **parameters, "type": "object"}
    taken = {field: value for field, value in schema.items() if field in ARGUMENT_FIELDS}
    described = {} if description is None else {"description": description}
    return {"name": name, "input_schema": taken, "type": "custom", **described}


def _system_blocks(message: Json) -> Iterator[Json]:
    content = message.get("content")
    if isinstance(content, str):
        content = [{**message, "type": "text", "text": content}]
    for part in _parts(content):
        if part.get("type") != "text":
            raise NotDirect
        if part.get("text"):
            yield {"type": "text", "text": part["text"], **_mark_of(part)}


def _user_blocks(message: Json) -> Iterator[Json]:
    content = message.get("content")
    if isinstance(content, str):
        yield _text_block(content, message)
        return
    for part in _parts(content):
        match part.get("type"):
            case "text":
                yield _text_block(part.get("text"), part)
            case "image_url":
                yield _image_block(part)
            case _:
                raise NotDirect


def _result_block(message: Json) -> Json:
    content, call_id = message.get("content"), message.get("tool_call_id")
    if not isinstance(call_id, str):
        raise NotDirect
    if not isinstance(content, str):
        content = [_result_part(part) for part in _parts(content)]
    block = {"type": "tool_result", "tool_use_id": _clean_id(call_id), "content": content}
    return {**block, **_mark_of(message)}


def _result_part(part: Json) -> Json:
    if part.get("type") == "image_url":
        return _image_block(part)
    if part.get("type") != "text" or not isinstance(part.get("text"), str):
        raise NotDirect
    return {"type": "text", "text": part["text"], **_mark_of(part)}


def _thinking_blocks(message: Json) -> Iterator[Json]:
    """Yield the blocks that Anthropic can verify: it refuses those without a signature."""
    for block in message.get("thinking_blocks") or ():
        proof = block.get("data" if block.get("type") == "redacted_thinking" else "signature")
        if isinstance(proof, str) and proof.startswith(FOREIGN_REASONING):
            continue
        if block.get("type") != "thinking" or proof:
            yield block


def _text_blocks(message: Json) -> Iterator[Json]:
    content = message.get("content")
    if content is None:
        return
    if isinstance(content, str):
        yield _text_block(content, message)
        return
    for part in _parts(content):
        if part.get("type") != "text":
            raise NotDirect
        yield _text_block(part.get("text"), part)


def _call_blocks(message: Json) -> Iterator[Json]:
    seen: set[str] = set()
    for call in message.get("tool_calls") or ():
        function, call_id = call.get("function") or {}, call.get("id")
        if not isinstance(call_id, str) or call_id.startswith(SERVER_CALL):
            raise NotDirect
        clean = _clean_id(call_id)
        if call.get("type") == "function" and clean not in seen:
            seen.add(clean)
            inputs = _parse_arguments(function.get("arguments"))
            block = {"type": "tool_use", "id": clean, "name": function.get("name")}
            yield {**block, "input": inputs, **_mark_of(call)}


def _parse_arguments(arguments: Any) -> Any:
    if not arguments or not arguments.strip():
        return {}
    try:
        return json.loads(arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # litellm repairs some
        raise NotDirect from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _text_block(text: Any, marked: Json) -> Json:
    is_text = isinstance(text, str) and text.strip()
    return {"type": "text", "text": text if is_text else EMPTY_TEXT, **_mark_of(marked)}


def _image_block(part: Json) -> Json:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str) or (isinstance(image, Mapping) and image.get("format")):
        raise NotDirect
    source: Json = {"type": "url", "url": url}
    if not url.startswith("https://"):
        match = DATA_URL.fullmatch(url)
        if match is None:  # litellm fetches images at http:// itself
            raise NotDirect
        source = {"type": "base64", "media_type": match[1], "data": match[2]}
    return {"type": "image", "source": source, **_mark_of(part)}


def _mark_of(source: Json) -> Json:
    mark = source.get("cache_control")
    return {} if mark is None else {"cache_control": mark}


def _parts(content: Any) -> Sequence[Json]:
    if not isinstance(content, list) or not all(isinstance(part, Mapping) for part in content):
        raise NotDirect
    return content


def _clean_id(call_id: str) -> str:
    return BAD_ID_CHARS.sub("_", call_id) or "tool_use_id"

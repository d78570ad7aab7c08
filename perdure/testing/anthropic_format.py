"""A script's answers and failures in the format of Anthropic's Messages API."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perdure.events.usage import Usage
from perdure.testing.openai_format import Json, split_text
from perdure.testing.script import ScriptedFailure
from perdure.testing.script_player import ScriptedReply

SIGNATURE = "scripted"
"""The signature of scripted thoughts."""

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}

ERRORS = {
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use this resource."),
    404: ("not_found_error", "The requested resource could not be found."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your rate limit."),
    504: ("timeout_error", "The request timed out."),
    529: ("overloaded_error", "Overloaded"),
}
"""The type and the default message of errors, by status."""

TYPES = {"invalid_api_key": "authentication_error", "model_not_found": "not_found_error"}
"""Anthropic's types of errors that OpenAI has codes for; other codes stand as they are."""


def message(reply: ScriptedReply, message_id: str) -> Json:
    """Build the body of an answer that is not streamed.

    Arguments that are no JSON are sent as text, in place of the object.
    """
    answer = reply.answer
    thoughts, text = answer.reasoning_content, answer.content
    blocks: list[Json] = []
    if thoughts is not None:
        blocks.append({"type": "thinking", "thinking": thoughts, "signature": SIGNATURE})
    if text:
        blocks.append({"type": "text", "text": text})
    for call_id, name, arguments in reply.tool_calls():
        inputs = _parse(arguments)
        blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": inputs})
    reason = stop_reason(reply)
    whole = _head(reply, message_id, usage(answer.usage))
    return {**whole, "content": blocks, "stop_reason": reason}


def events(reply: ScriptedReply, message_id: str) -> Iterator[Json]:
    """Yield the events of a streamed answer."""
    spent = usage(reply.answer.usage)
    start = {**spent, "output_tokens": 1}
    yield {"type": "message_start", "message": _head(reply, message_id, start)}
    for index, (block, deltas) in enumerate(_blocks(reply)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": stop_reason(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": spent}
    yield {"type": "message_stop"}


def error(failure: ScriptedFailure) -> Json:
    """Build the body of an error, or the event of one in the middle of a stream."""
    default = ("invalid_request_error", "The request failed.")
    if failure.status >= 500:
        default = ("api_error", "Internal server error")
    kind, text = ERRORS.get(failure.status, default)
    kind = TYPES.get(failure.code, failure.code) if failure.code else kind
    return {"type": "error", "error": {"type": kind, "message": failure.message or text}}


def usage(spent: Usage) -> Json:
    """Build the token counts of an answer: those of the cache stand beside the prompt's."""
    return {
        "input_tokens": spent.prompt_tokens - spent.cached_tokens - spent.cache_write_tokens,
        "cache_read_input_tokens": spent.cached_tokens,
        "cache_creation_input_tokens": spent.cache_write_tokens,
        "output_tokens": spent.completion_tokens,
        "output_tokens_details": {"thinking_tokens": spent.reasoning_tokens},
    }


def read_messages(body: Json) -> Sequence[Mapping[str, Any]]:
    """Read the messages of a request as those of chat completions."""
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    return [*system, *(part for each in body["messages"] for part in _split_message(each))]


def _split_message(message: Json) -> Iterator[Json]:
    """Yield a message, apart from the results of tools in it, which stand before it."""
    content = message.get("content")
    blocks = [block for block in content or () if isinstance(block, dict)]
    calls = [{"id": block.get("id")} for block in blocks if block.get("type") == "tool_use"]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        call_id = block.get("tool_use_id")
        yield {"role": "tool", "tool_call_id": call_id, "content": block.get("content")}
    if not results or len(results) < len(blocks):
        rest = [block for block in blocks if block not in results] or content
        role = message.get("role")
        yield {"role": role, "content": rest} | ({"tool_calls": calls} if calls else {})


def stop_reason(reply: ScriptedReply) -> str:
    reason = reply.answer.effective_finish_reason
    return STOP_REASONS.get(reason, reason)


def _head(reply: ScriptedReply, message_id: str, spent: Json) -> Json:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": reply.script.name,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": spent,
    }


def _blocks(reply: ScriptedReply) -> Iterator[tuple[Json, list[Json]]]:
    """Yield each block as it begins, and its deltas."""
    answer = reply.answer
    if answer.reasoning_content is not None:
        pieces = split_text(answer, answer.reasoning_content)
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
        signed = {"type": "signature_delta", "signature": SIGNATURE}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
    if answer.content:
        pieces = split_text(answer, answer.content)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces]
    for call_id, name, arguments in reply.tool_calls():
        pieces = split_text(answer, arguments)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield {"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas


def _parse(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments

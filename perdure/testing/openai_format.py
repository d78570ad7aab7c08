"""A script's answers and failures in the format of an OpenAI-compatible server."""

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from perdure.events.usage import Usage
from perdure.testing.script import ScriptedAnswer, ScriptedFailure
from perdure.testing.script_player import ScriptedReply

Json: TypeAlias = dict[str, Any]

DEFAULT_MESSAGES = {
    401: "Incorrect API key provided.",
    404: "The model does not exist.",
    429: "Rate limit reached.",
    500: "The server had an error while processing the request.",
    503: "The server is overloaded.",
}
"""The default messages of failures, by status."""


def completion(reply: ScriptedReply, response_id: str, created: int) -> Json:
    """Build the body of an answer that is not streamed."""
    answer = reply.answer
    message: Json = {"role": "assistant", "content": answer.content or None}
    if answer.reasoning_content is not None:
        message["reasoning_content"] = answer.reasoning_content
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in reply.tool_calls()
        ]
    reason = answer.effective_finish_reason
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    head = _header(reply, response_id, created, "chat.completion")
    return {**head, "choices": [choice], "usage": usage(answer.usage)}


def chunks(
    reply: ScriptedReply, response_id: str, created: int, include_usage: bool
) -> Iterator[Json]:
    """Yield the chunks of a streamed answer."""
    head = _header(reply, response_id, created, "chat.completion.chunk")
    for delta in _deltas(reply):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = reply.answer.effective_finish_reason
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    if include_usage:
        yield {**head, "choices": [], "usage": usage(reply.answer.usage)}


def error(failure: ScriptedFailure) -> Json:
    message = failure_message(failure)
    kind = "invalid_request_error" if failure.status in (400, 404, 422) else "api_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": failure.code}}


def error_in_stream(failure: ScriptedFailure) -> Json:
    """Build the body of an error in the middle of a stream, with the status as its code."""
    body = error(failure)
    return {"error": {**body["error"], "code": failure.code or failure.status}}


def failure_message(failure: ScriptedFailure) -> str:
    return failure.message or DEFAULT_MESSAGES.get(failure.status, "The request failed.")


def usage(spent: Usage) -> Json:
    """Build the token counts of an answer; the protocol has no field for cost."""
    read = {"cached_tokens": spent.cached_tokens}
    written = {"cache_write_tokens": spent.cache_write_tokens} if spent.cache_write_tokens else {}
    return {
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "total_tokens": spent.prompt_tokens + spent.completion_tokens,
        "prompt_tokens_details": {**read, **written},
        "completion_tokens_details": {"reasoning_tokens": spent.reasoning_tokens},
    }


def split_text(answer: ScriptedAnswer, text: str) -> list[str]:
    """Split a text into streamed pieces: words if there is a `chunk_delay`, else about four."""
    if answer.chunk_delay:
        return re.findall(r"\s*\S+\s*|\s+", text)
    size = len(text) // 4 + 1
    return [text[start : start + size] for start in range(0, len(text), size)]


def _header(reply: ScriptedReply, response_id: str, created: int, kind: str) -> Json:
    return {"id": response_id, "object": kind, "created": created, "model": reply.script.name}


def _deltas(reply: ScriptedReply) -> Iterator[Json]:
    answer = reply.answer
    yield {"role": "assistant", "content": ""}
    for piece in split_text(answer, answer.reasoning_content or ""):
        yield {"reasoning_content": piece}
    for piece in split_text(answer, answer.content):
        yield {"content": piece}
    for index, (call_id, name, arguments) in enumerate(reply.tool_calls()):
        function = {"name": name, "arguments": ""}
        opening = {"index": index, "id": call_id, "type": "function", "function": function}
        yield {"tool_calls": [opening]}
        for piece in split_text(answer, arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

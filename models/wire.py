"""A script's answers and failures as an OpenAI-compatible server writes them."""

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from events.usage import Usage
from models.playback import Cue
from models.script import Answer, Failure

Json: TypeAlias = dict[str, Any]

MESSAGES = {
    401: "Incorrect API key provided.",
    404: "The model does not exist.",
    429: "Rate limit reached.",
    500: "The server had an error while processing the request.",
    503: "The server is overloaded.",
}
"""What a failure says that has no message of its own."""


def completion(cue: Cue, response_id: str, created: int) -> Json:
    """The body of an answer that is not streamed."""
    answer = cue.answer
    message: Json = {"role": "assistant", "content": answer.content or None}
    if answer.reasoning_content is not None:
        message["reasoning_content"] = answer.reasoning_content
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in cue.calls()
        ]
    choice = {"index": 0, "message": message, "finish_reason": answer.reason, "logprobs": None}
    head = _head(cue, response_id, created, "chat.completion")
    return {**head, "choices": [choice], "usage": usage(answer.usage)}


def chunks(cue: Cue, response_id: str, created: int, include_usage: bool) -> Iterator[Json]:
    """The bodies of a streamed answer, one an event."""
    head = _head(cue, response_id, created, "chat.completion.chunk")
    for delta in _deltas(cue):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": cue.answer.reason}]}
    if include_usage:
        yield {**head, "choices": [], "usage": usage(cue.answer.usage)}


def error(failure: Failure) -> Json:
    """The body of an error response."""
    message = message_of(failure)
    kind = "invalid_request_error" if failure.status in (400, 404, 422) else "api_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": failure.code}}


def error_in_stream(failure: Failure) -> Json:
    """An error after the status has been sent: its number goes into the body."""
    body = error(failure)
    return {"error": {**body["error"], "code": failure.code or failure.status}}


def message_of(failure: Failure) -> str:
    """What the failure says."""
    return failure.message or MESSAGES.get(failure.status, "The request failed.")


def usage(taken: Usage) -> Json:
    """What an answer took, in tokens; the protocol has no place for cost."""
    read = {"cached_tokens": taken.cached_tokens}
    written = {"cache_write_tokens": taken.cache_write_tokens} if taken.cache_write_tokens else {}
    return {
        "prompt_tokens": taken.prompt_tokens,
        "completion_tokens": taken.completion_tokens,
        "total_tokens": taken.prompt_tokens + taken.completion_tokens,
        "prompt_tokens_details": {**read, **written},
        "completion_tokens_details": {"reasoning_tokens": taken.reasoning_tokens},
    }


def pieces(answer: Answer, text: str) -> list[str]:
    """The text in the pieces it is streamed in: words where they are paced, else a few."""
    if answer.chunk_delay:
        return re.findall(r"\s*\S+\s*|\s+", text)
    size = len(text) // 4 + 1
    return [text[at : at + size] for at in range(0, len(text), size)]


def _head(cue: Cue, response_id: str, created: int, kind: str) -> Json:
    return {"id": response_id, "object": kind, "created": created, "model": cue.script.name}


def _deltas(cue: Cue) -> Iterator[Json]:
    answer = cue.answer
    yield {"role": "assistant", "content": ""}
    for piece in pieces(answer, answer.reasoning_content or ""):
        yield {"reasoning_content": piece}
    for piece in pieces(answer, answer.content):
        yield {"content": piece}
    for index, (call_id, name, arguments) in enumerate(cue.calls()):
        function = {"name": name, "arguments": ""}
        opening = {"index": index, "id": call_id, "type": "function", "function": function}
        yield {"tool_calls": [opening]}
        for piece in pieces(answer, arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

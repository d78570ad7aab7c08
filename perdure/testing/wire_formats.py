"""The APIs of the scripted server: how a request is read, and how its answer is written."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol
from uuid import uuid4

from perdure.testing import anthropic_format, openai_format
from perdure.testing.openai_format import Json
from perdure.testing.script import ScriptedFailure
from perdure.testing.script_player import ScriptedReply


class WireFormat(Protocol):
    """The format of one API."""

    def find_fault(self, body: Json) -> str:
        """Say what is wrong with a request; empty if nothing is."""

    def read_messages(self, body: Json) -> Sequence[Mapping[str, Any]]:
        """Read the messages of a request, in the format of chat completions."""

    def whole(self, reply: ScriptedReply) -> bytes:
        """Write an answer that is not streamed."""

    def stream(self, reply: ScriptedReply, body: Json) -> Iterator[bytes]:
        """Write the events of a streamed answer."""

    def error(self, failure: ScriptedFailure) -> Json:
        """Build the body of an error."""

    def error_event(self, failure: ScriptedFailure) -> bytes:
        """Write an error in the middle of a stream."""


class OpenAIFormat:
    """The format of OpenAI's chat completions."""

    def find_fault(self, body: Json) -> str:
        message = "The body must be a JSON object with a model and a list of messages."
        return "" if _has_messages(body) else message

    def read_messages(self, body: Json) -> Sequence[Mapping[str, Any]]:
        messages: list[Json] = body["messages"]
        return messages

    def whole(self, reply: ScriptedReply) -> bytes:
        return json.dumps(openai_format.completion(reply, *_new_id())).encode()

    def stream(self, reply: ScriptedReply, body: Json) -> Iterator[bytes]:
        include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        for chunk in openai_format.chunks(reply, *_new_id(), include_usage):
            yield f"data: {json.dumps(chunk)}\n\n".encode()
        yield b"data: [DONE]\n\n"

    def error(self, failure: ScriptedFailure) -> Json:
        return openai_format.error(failure)

    def error_event(self, failure: ScriptedFailure) -> bytes:
        return f"data: {json.dumps(openai_format.error_in_stream(failure))}\n\n".encode()


OPENAI = OpenAIFormat()


class AnthropicFormat:
    """The format of Anthropic's Messages API."""

    def find_fault(self, body: Json) -> str:
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: Field required"
        message = "The body must be a JSON object with a model and a list of messages."
        return "" if _has_messages(body) else message

    def read_messages(self, body: Json) -> Sequence[Mapping[str, Any]]:
        return anthropic_format.read_messages(body)

    def whole(self, reply: ScriptedReply) -> bytes:
        return json.dumps(anthropic_format.message(reply, f"msg_{uuid4().hex}")).encode()

    def stream(self, reply: ScriptedReply, _: Json) -> Iterator[bytes]:
        return map(_named_event, anthropic_format.events(reply, f"msg_{uuid4().hex}"))

    def error(self, failure: ScriptedFailure) -> Json:
        return anthropic_format.error(failure)

    def error_event(self, failure: ScriptedFailure) -> bytes:
        return _named_event(anthropic_format.error(failure))


ANTHROPIC = AnthropicFormat()


def _has_messages(body: Json) -> bool:
    messages = body.get("messages")
    is_list = isinstance(messages, list) and all(isinstance(item, dict) for item in messages)
    return "model" in body and is_list


def _new_id() -> tuple[str, int]:
    """Make the id of a chat completion, and the time in seconds that stands beside it."""
    return f"chatcmpl-{uuid4().hex}", int(time.time())


def _named_event(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()

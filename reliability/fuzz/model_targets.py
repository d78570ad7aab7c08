"""Fuzz targets that read a model's response."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from perdure.agent.calls.answer import parse_response
from perdure.agent.calls.arguments import parse_arguments, render_arguments
from perdure.agent.calls.completion import Completion
from perdure.agent.calls.risk import RiskAssessor, model_risk
from perdure.agent.spec import ModelSpec
from perdure.events.actions import MCPToolAction
from perdure.events.content import Message
from perdure.events.entry import make_entry, parse_entry
from perdure.events.projection import summarize
from perdure.events.tools import ActionEvent
from perdure.models.anthropic.answer import AnswerReader
from perdure.models.anthropic.route import list_cost
from perdure.models.litellm.errors import convert_exception
from perdure.models.model import ModelError
from perdure.models.prompt_tool_parser import format_call, parse_call, text_before_call
from perdure.models.provider_errors import convert_error_object
from perdure.models.stream_accumulator import StreamAccumulator, parse_events, parse_usage
from perdure.tools.apply_patch import APPLY_PATCH
from perdure.tools.file_editor import FILE_EDITOR
from perdure.tools.speech import FINISH
from perdure.tools.task_tracker import TASK_TRACKER
from perdure.tools.terminal import TERMINAL
from reliability.fuzz.watch import Target, check_error
from tests import builders
from tests.models.anthropic_events import THOUGHTFUL, answer, call_block, events

TOOLS = {tool.name: tool for tool in (TERMINAL, FILE_EDITOR, FINISH, TASK_TRACKER, APPLY_PATCH)}
SCHEMAS = {name: tool.definition.parameters for name, tool in TOOLS.items()}
SPEC = ModelSpec(name="openai/m")
PRICES = {"input_cost_per_token": 1e-6, "provider_specific_entry": {"us": 1.1}}
ASSESSMENT = RiskAssessor("risky", (("model", model_risk),), str)


def read_arguments(data: bytes) -> None:
    text = data.decode(errors="surrogateescape").encode(errors="replace").decode()
    for cut in (True, False):
        parsed = parse_arguments(text, cut=cut)
        event = builders.action("write").model_copy(update={"action": MCPToolAction(data=parsed)})
        check_stored(event)
        json.loads(render_arguments(event))


def read_answer(data: bytes) -> None:
    """Calls of our own tools, with any arguments."""
    text = data.decode(errors="replace")
    calls = [
        builders.call(name, f"call_{nth}", text)
        for nth, name in enumerate((*TOOLS, text, "Terminal"))
    ]
    for reason in ("length", "stop"):
        answer = builders.completion(*calls, words=text, finish_reason=reason)
        for event in parse_response(answer, TOOLS, ASSESSMENT):
            check_stored(event)
            if isinstance(event, ActionEvent):
                json.loads(render_arguments(event))


def check_stored(event: Any) -> None:
    entry = make_entry(3, event, builders.ORIGIN)
    assert summarize(parse_entry(3, entry.body)).kind == event.kind


def read_stream(data: bytes) -> None:
    """Server-sent events in any pieces, and then whatever they amount to."""
    check_answer(data, lambda event: event)


def read_anthropic_stream(data: bytes) -> None:
    """Events of Anthropic's, and a price for whatever they count."""
    answer = check_answer(data, AnswerReader().read)
    if answer is not None and answer.usage:
        assert list_cost(PRICES, answer.usage) >= 0 or b"-" in data


def check_answer(data: bytes, read: Callable[[Any], Any]) -> StreamAccumulator | None:
    """Check the answer that the events amount to, or the error."""
    try:
        answer = asyncio.run(assemble(data, read))
        assert len(answer.text) <= len(data)
        message = answer.message(("taken",))
        usage = parse_usage(answer.usage)
        made = builders.completion().model_copy(update={"message": message, "usage": usage})
        Message.model_validate(message.model_dump())
        Completion.model_validate(json.loads(json.dumps(made.model_dump(mode="json"))))
        return answer
    except ModelError as error:
        check_error(error)
    except Exception as error:  # as the model itself does: whatever it is, it must be told
        check_error(convert_exception(error, SPEC, "OPENAI_API_KEY", None), 4_000)
    return None


async def assemble(data: bytes, read: Callable[[Any], Any]) -> StreamAccumulator:
    answer = StreamAccumulator()
    async for event in parse_events(split_randomly(data)):
        chunk = read(event)
        if chunk is None:
            continue
        if isinstance(chunk, dict) and chunk.get("error"):
            raise convert_error_object(chunk["error"], SPEC.name, "OPENAI_API_KEY")
        answer.add(chunk)
    return answer


async def split_randomly(data: bytes) -> AsyncIterator[bytes]:
    size = 1 + len(data) % 61
    for at in range(0, len(data), max(size, len(data) // 100)):
        yield data[at : at + max(size, len(data) // 100)]


def read_call_text(data: bytes) -> None:
    text = data.decode(errors="replace")
    for cut in (True, False):
        calls = parse_call(text, SCHEMAS, truncated=cut)
        assert len(text_before_call(text)) <= len(text)
        if calls is not None:
            format_call(calls.name, calls.arguments)


ARGUMENTS = (
    b'{"command": "ls -la", "timeout": 3.5, "is_input": false}',
    b"```json\n{'path': 'a', 'items': [1, 2,], 'x': None}\n```",
    b'"{\\"a\\": \\"{\\\\\\"b\\\\\\": 1}\\"}"',
    b'{"command": "create", "path": "a.py", "file_text": "x\\ny", "view_range": [1, -1]}',
    b'{"command":"plan","task_list":[{"title":"a","status":"todo"}],"message":"x"}',
    b'{"a": {"b": [1, true, null, "\\u00e9", 1e5]}}{"a": 1}',
    b'{"patch": "*** Begin Patch\\n*** Delete File: a\\n*** End Patch"}',
)
CHUNKS = (
    b'data: {"id":"r","choices":[{"delta":{"role":"assistant","content":"hi"}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"terminal",'
    b'"arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,'
    b'"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":1}}}\n\ndata: [DONE]\n\n',
    b'data: {"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"text":"a"}]},'
    b'{"type":"text","text":"b"}],"thinking_blocks":[{"type":"thinking","thinking":"t",'
    b'"signature":"s"},{"type":"redacted_thinking","data":"d"}]},"finish_reason":"stop"}]}\n\n',
    b'data: {"error":{"message":"overloaded","type":"api_error","code":503}}\r\n\r\n',
)
ANTHROPIC_EVENTS = (
    events(*THOUGHTFUL),
    answer(*call_block(0, "look", "t1", '{"a"', ": 1}"), usage={"cache_read_input_tokens": 5}),
    b'data: {"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t",'
    b'"name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"iterations":[{"input_tokens":'
    b'3}],"cache_creation":{"ephemeral_1h_input_tokens":4},"inference_geo":"us"}}\n\n',
    b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
)
TEXTS = (
    b"I look.\n<function=terminal>\n<parameter=command>ls\n-l</parameter>\n</function>",
    b"<tool_call>\n<function=file_editor>\n<parameter=view_range>[1, 2]</parameter>\n"
    b"<parameter=command=view</parameter></function>\n</tool_call>",
)

MODEL_TARGETS = (
    Target("arguments", read_arguments, ARGUMENTS, (ValueError,)),
    Target("answer", read_answer, (*ARGUMENTS, *TEXTS), growth=2_000),
    Target("stream", read_stream, CHUNKS),
    Target("anthropic_stream", read_anthropic_stream, ANTHROPIC_EVENTS),
    Target("call_text", read_call_text, (*TEXTS, *ARGUMENTS)),
)

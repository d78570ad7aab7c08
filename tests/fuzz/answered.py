"""What a model answers, whatever that is."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agent.answer import events_of
from agent.arguments import arguments_of
from agent.assessment import Assessment, by_model
from agent.calls import arguments_shown
from agent.completion import Completion
from agent.spec import ModelSpec
from events.actions import MCPToolAction
from events.content import Message
from events.entry import entry, entry_from
from events.projection import digest
from events.tools import ActionEvent
from models.assembly import Assembly, usage_of
from models.call_text import read, said_before, write
from models.evidence import error_in_answer, error_of
from models.model import ModelError
from models.sse import events
from tests import builders
from tests.fuzz.watch import Target, told
from tools.apply_patch import APPLY_PATCH
from tools.file_editor import FILE_EDITOR
from tools.finish import FINISH
from tools.task_tracker import TASK_TRACKER
from tools.terminal import TERMINAL

TOOLS = {tool.name: tool for tool in (TERMINAL, FILE_EDITOR, FINISH, TASK_TRACKER, APPLY_PATCH)}
SCHEMAS = {name: tool.definition.parameters for name, tool in TOOLS.items()}
SPEC = ModelSpec(name="openai/m")
ASSESSMENT = Assessment("risky", (("model", by_model),), str)


def read_arguments(data: bytes) -> None:
    text = data.decode(errors="surrogateescape").encode(errors="replace").decode()
    for cut in (True, False):
        found = arguments_of(text, cut=cut)
        event = builders.action("write").model_copy(update={"action": MCPToolAction(data=found)})
        _stored(event)
        json.loads(arguments_shown(event))


def read_answer(data: bytes) -> None:
    """Calls of our own tools, with any arguments."""
    text = data.decode(errors="replace")
    calls = [
        builders.call(name, f"call_{nth}", text)
        for nth, name in enumerate((*TOOLS, text, "Terminal"))
    ]
    for reason in ("length", "stop"):
        answer = builders.completion(*calls, words=text, finish_reason=reason)
        for event in events_of(answer, TOOLS, ASSESSMENT):
            _stored(event)
            if isinstance(event, ActionEvent):
                json.loads(arguments_shown(event))


def _stored(event: Any) -> None:
    kept = entry(3, event, builders.ORIGIN)
    assert digest(entry_from(3, kept.body)).kind == event.kind


def read_stream(data: bytes) -> None:
    """Server-sent events in any pieces, and then whatever they amount to."""
    try:
        answer = asyncio.run(_assembled(data))
        assert len(answer.text) <= len(data)
        message = answer.message(("taken",))
        usage = usage_of(answer.usage, 0.0, 0.1)
        made = builders.completion().model_copy(update={"message": message, "usage": usage})
        Message.model_validate(message.model_dump())
        Completion.model_validate(json.loads(json.dumps(made.model_dump(mode="json"))))
    except ModelError as error:
        told(error)
    except Exception as error:  # as the model itself does: whatever it is, it must be told
        told(error_of(error, SPEC, "OPENAI_API_KEY", None), 4_000)


async def _assembled(data: bytes) -> Assembly:
    answer = Assembly()
    async for chunk in events(_pieces(data)):
        if isinstance(chunk, dict) and chunk.get("error"):
            raise error_in_answer(chunk["error"], SPEC, "OPENAI_API_KEY")
        answer.add(chunk)
    return answer


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    size = 1 + len(data) % 61
    for at in range(0, len(data), max(size, len(data) // 100)):
        yield data[at : at + max(size, len(data) // 100)]


def read_call_text(data: bytes) -> None:
    text = data.decode(errors="replace")
    for cut in (True, False):
        found = read(text, SCHEMAS, cut=cut)
        assert len(said_before(text)) <= len(text)
        if found is not None:
            write(found.name, found.arguments)


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
TEXTS = (
    b"I look.\n<function=terminal>\n<parameter=command>ls\n-l</parameter>\n</function>",
    b"<tool_call>\n<function=file_editor>\n<parameter=view_range>[1, 2]</parameter>\n"
    b"<parameter=command=view</parameter></function>\n</tool_call>",
)

ANSWERED = (
    Target("arguments", read_arguments, ARGUMENTS, (ValueError,)),
    Target("answer", read_answer, (*ARGUMENTS, *TEXTS), growth=2_000),
    Target("stream", read_stream, CHUNKS),
    Target("call_text", read_call_text, (*TEXTS, *ARGUMENTS)),
)

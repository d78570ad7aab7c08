"""The JSON of messages is kept for the next requests, up to a size; cache marks move."""

import json
from typing import Any

import pytest

from perdure.agent.spec import ModelSpec
from perdure.models.anthropic.body import BodyWriter
from perdure.models.anthropic.messages import NotDirect
from perdure.models.anthropic.route import find_route
from perdure.models.model import Request

SPEC = ModelSpec(name="anthropic/claude-sonnet-4-5")
PNG = {"url": "data:image/png;base64,iVBORw0KGgo="}
IMAGE = {"type": "image_url", "image_url": PNG}


def conversation(steps: int) -> list[dict[str, Any]]:
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    pairs = [
        (
            {"role": "assistant", "tool_calls": [{"id": f"c{step}", **call}]},
            {"role": "tool", "tool_call_id": f"c{step}", "content": "." if step % 3 else [IMAGE]},
        )
        for step in range(steps)
    ]
    begin = [{"role": "system", "content": "Be."}, {"role": "user", "content": "go"}]
    return [*begin, *(message for pair in pairs for message in pair)]


def write(writer: BodyWriter, messages: list[dict[str, Any]], spec: ModelSpec = SPEC) -> Any:
    route = find_route(spec, {})
    assert route is not None
    request = Request(spec, messages)
    return json.loads(writer.write(request, route, stream=True))


@pytest.mark.parametrize("size", [0, 300, 1000, 100_000])
def test_a_body_does_not_depend_on_what_is_kept(size: int) -> None:
    writer, messages = BodyWriter(size), conversation(12)
    for length in range(2, len(messages) + 1):
        assert write(writer, messages[:length]) == write(BodyWriter(), messages[:length])


def test_what_is_kept_has_a_bound() -> None:
    writer = BodyWriter(4000)
    for _ in range(50):
        write(writer, conversation(3))
    kept = [piece for pieces in writer.kept.by_form.values() for piece in pieces.values()]
    assert sum(piece.size for piece in kept) <= 4000


def test_a_message_that_was_written_is_not_written_again() -> None:
    writer, messages = BodyWriter(), conversation(4)
    write(writer, messages)
    plain, marked = writer.kept.by_form.values()
    before = dict(plain)
    assert len(plain) == len(messages)
    assert len(marked) == 2
    write(writer, [*messages, {"role": "user", "content": "and now?"}])
    assert len(plain) == len(before) + 1
    assert len(marked) == 3, "the system's message keeps its mark, the end has a new one"
    assert all(plain[key] is piece for key, piece in before.items())


def test_the_marks_stand_at_the_system_and_at_the_end() -> None:
    writer, messages = BodyWriter(), conversation(6)
    for length in range(2, len(messages) + 1, 2):
        body = write(writer, messages[:length])
        parts = [part for each in body["messages"] for part in each["content"]]
        assert [part["type"] for part in parts if "cache_control" in part] == [parts[-1]["type"]]
        assert body["messages"][-1]["role"] == "user"
        assert [part["text"] for part in body["system"] if "cache_control" in part] == ["Be."]


def test_a_prompt_that_was_checked_is_written_once() -> None:
    writer, route = BodyWriter(), find_route(SPEC, {})
    assert route is not None
    first, second = (Request(SPEC, conversation(steps)) for steps in (1, 2))
    assert writer.can_write(first, route)
    assert writer.can_write(second, route)
    bodies = [json.loads(writer.write(each, route, stream=False)) for each in (second, first)]
    assert [len(body["messages"]) for body in bodies] == [5, 3]
    assert "stream" not in bodies[0]


def test_a_prompt_that_only_litellm_converts_is_not_written() -> None:
    writer, route = BodyWriter(), find_route(SPEC, {})
    assert route is not None
    request = Request(SPEC, [{"role": "user", "content": [{"type": "file"}]}])
    assert not writer.can_write(request, route)
    with pytest.raises(NotDirect):
        writer.write(request, route, stream=True)


def test_tool_calls_without_tools_get_litellms_tool() -> None:
    (tool,) = write(BodyWriter(), conversation(1))["tools"]
    assert tool["name"] == "dummy_tool"
    assert "tools" not in write(BodyWriter(), conversation(0))

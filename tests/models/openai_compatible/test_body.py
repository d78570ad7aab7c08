"""The JSON of messages is kept for the next requests, up to a size."""

import json
from typing import Any

import pytest

from perdure.agent.spec import ModelSpec
from perdure.models.model import Request
from perdure.models.openai_compatible.body import BodyWriter
from perdure.models.openai_compatible.route import find_route

SPEC = ModelSpec(name="openai/m", api_base="http://127.0.0.1:1/v1", vision=True)
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def conversation(steps: int) -> list[dict[str, Any]]:
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    pairs = [
        (
            {"role": "assistant", "tool_calls": [{"id": f"c{step}", **call}]},
            {"role": "tool", "tool_call_id": f"c{step}", "content": [IMAGE] if step % 3 else "."},
        )
        for step in range(steps)
    ]
    return [{"role": "user", "content": "go"}, *(message for pair in pairs for message in pair)]


def write(writer: BodyWriter, messages: list[dict[str, Any]]) -> Any:
    route = find_route(SPEC, {})
    assert route is not None
    return json.loads(writer.write(Request(SPEC, messages), route, stream=True))["messages"]


@pytest.mark.parametrize("size", [0, 300, 1000, 100_000])
def test_a_body_does_not_depend_on_what_is_kept(size: int) -> None:
    writer, messages = BodyWriter(size), conversation(12)
    for length in range(1, len(messages) + 1):
        assert write(writer, messages[:length]) == write(BodyWriter(), messages[:length])
    images = [each for each in write(writer, messages) if "image_url" in json.dumps(each)]
    assert [each["role"] for each in images] == ["user"] * 8


def test_what_is_kept_has_a_bound() -> None:
    writer = BodyWriter(2000)
    for _ in range(50):
        write(writer, conversation(3))
    kept = [piece for pieces in writer.kept.by_form.values() for piece in pieces.values()]
    assert sum(piece.size for piece in kept) <= 2000


def test_a_message_that_was_written_is_not_written_again() -> None:
    writer, messages = BodyWriter(), conversation(4)
    write(writer, messages)
    (pieces,) = writer.kept.by_form.values()
    before = dict(pieces)
    write(writer, [*messages, {"role": "user", "content": "and now?"}])
    assert len(pieces) == len(before) + 1
    assert all(pieces[key] is piece for key, piece in before.items())


def test_openais_own_server_which_would_store_the_answer_gets_no_metadata() -> None:
    spec = ModelSpec(name="openai/gpt-4o")
    request = Request(spec, [{"role": "user", "content": "hi"}], metadata={"team": "blue"})
    route = find_route(spec, {})
    assert route is not None
    assert route.is_openai
    assert "metadata" not in json.loads(BodyWriter().write(request, route, stream=False))

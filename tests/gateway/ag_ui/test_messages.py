"""The messages of a snapshot: what a client makes of the events of the same turns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.events.content import ImageContent, TextContent
from perdure.events.content import Message as LlmMessage
from perdure.events.messages import MessageEvent
from perdure.gateway.ag_ui.context import add_context
from perdure.gateway.ag_ui.events import Event
from perdure.gateway.ag_ui.history import keep_newest
from perdure.gateway.ag_ui.messages import Message, Messages
from perdure.gateway.ag_ui.requests import Context
from perdure.gateway.turns.parts import Called, Part, Reasoning, Returned, Text
from tests.gateway.ag_ui.test_projection import IDS, STREAMS, end, project

BLOBS = "https://example.org/v1/conversations/1/blobs"


def apply(events: list[Event]) -> list[Message]:
    """Return what AG-UI's client makes of events, as its reducer does."""
    messages: list[Message] = []
    for event in events:
        known = {message["id"]: message for message in messages}
        match event:
            case {"type": "TEXT_MESSAGE_START", "messageId": name} if name not in known:
                messages.append({"id": name, "role": "assistant", "content": ""})
            case {"type": "TEXT_MESSAGE_CONTENT", "messageId": name, "delta": delta}:
                known[name]["content"] = known[name].get("content", "") + delta
            case {"type": "REASONING_MESSAGE_START", "messageId": name}:
                messages.append({"id": name, "role": "reasoning", "content": ""})
            case {"type": "REASONING_MESSAGE_CONTENT", "messageId": name, "delta": delta}:
                known[name]["content"] += delta
            case {"type": "TOOL_CALL_START", "parentMessageId": name}:
                if name not in known:
                    known[name] = {"id": name, "role": "assistant"}
                    messages.append(known[name])
                function = {"name": event["toolCallName"], "arguments": ""}
                call = {"id": event["toolCallId"], "type": "function", "function": function}
                known[name].setdefault("toolCalls", []).append(call)
            case {"type": "TOOL_CALL_ARGS", "toolCallId": name, "delta": delta}:
                calls = [call for it in messages for call in it.get("toolCalls", ())]
                next(it for it in calls if it["id"] == name)["function"]["arguments"] += delta
            case {"type": "TOOL_CALL_RESULT"}:
                fields = {"id": event["messageId"], "role": "tool"}
                result = {**fields, "toolCallId": event["toolCallId"], "content": event["content"]}
                messages.insert(_find_place(messages, event["toolCallId"]), result)
            case _:
                pass
    return messages


def _find_place(messages: list[Message], call_id: str) -> int:
    for number, message in enumerate(messages):
        if any(call["id"] == call_id for call in message.get("toolCalls", ())):
            number += 1
            while number < len(messages) and messages[number]["role"] == "tool":
                number += 1
            return number
    return len(messages)


def gather(parts: list[Part]) -> list[Message]:
    """Return the messages of a snapshot, without what events do not say."""
    messages = Messages(IDS, BLOBS)
    for part in parts:
        messages.take(part)
    return [{key: it for key, it in each.items() if key != "error"} for each in messages.all]


WHOLE = [name for name in STREAMS if name != "words that nothing follows"]
"""Turns as readers have them: each text has its last piece."""


@pytest.mark.parametrize("name", WHOLE)
def test_a_snapshot_is_what_a_client_makes_of_the_events(name: str) -> None:
    parts = STREAMS[name][0]
    assert gather(parts) == apply(project(parts))


@st.composite
def turns(draw: st.DrawFn) -> list[Part]:
    """Return the parts of a turn: steps that say, think and call, whose calls return."""
    parts: list[Part] = []
    for step in draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)):
        text = draw(st.sampled_from(["", "It is 5."]))
        if text:
            parts += [Text(step, text[:3]), Text(step, text[3:], last=True, whole=text)]
        if draw(st.booleans()):
            parts.append(Reasoning(step, "Hm."))
        names = [f"{step}{number}" for number in range(draw(st.integers(0, 3)))]
        parts += [Called(step, name, "add", draw(st.sampled_from(["", "{}"]))) for name in names]
        parts += [Returned(name, "add", "5") for name in draw(st.permutations(names))]
    return [*parts, end()]


@given(turns())
def test_whatever_a_turn_does_its_snapshot_is_what_a_client_has(parts: list[Part]) -> None:
    assert gather(parts) == apply(project(parts))


def ask(text: str, *images: str, **more: Any) -> MessageEvent:
    content = [TextContent(text=text), *([ImageContent(image_urls=images)] if images else [])]
    message = LlmMessage(role="user", content=tuple(content))
    time = "2026-01-01T00:00:00.000000"
    return MessageEvent(source="user", llm_message=message, id="e", timestamp=time, **more)


def test_a_users_message_has_the_clients_id_and_no_context() -> None:
    messages = Messages(IDS, BLOBS)
    context = [Context(description="The page", value="/sums")]
    messages.ask(ask(add_context("Hello?\n\n<context>", context), message_id="m"))
    messages.ask(ask("And?"))
    assert messages.all == [
        {"id": "m", "role": "user", "content": "Hello?\n\n<context>"},
        {"id": "e", "role": "user", "content": "And?"},
    ]


def test_pictures_are_shown_by_their_addresses() -> None:
    messages = Messages(IDS, BLOBS)
    messages.ask(ask("This?", "blobs/abc", "https://example.org/a.png"))
    [message] = messages.all
    assert [part["type"] for part in message["content"]] == ["text", "image", "image"]
    addresses = [part["source"]["value"] for part in message["content"][1:]]
    assert addresses == [f"{BLOBS}/abc", "https://example.org/a.png"]


def test_a_snapshot_that_would_be_too_long_has_the_newest_messages() -> None:
    messages = [{"id": str(n), "role": ("user", "assistant")[n % 2]} for n in range(9)]
    assert keep_newest(messages, 10_000) == messages
    assert keep_newest(messages, 150) == messages[4:]
    assert keep_newest(messages, 120) == messages[6:], "it begins with one of the user's"
    assert keep_newest(messages, 1) == []
    assert keep_newest([], 1) == []

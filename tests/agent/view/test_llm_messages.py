"""Messages of a prompt as values: the seed's own, and those that a model is really shown."""

from typing import Any

import pytest
from hypothesis import given

from perdure import View, events_to_messages, make_event, to_llm_message
from perdure.agent.view.transcript import Transcript
from perdure.events.condensation import Condensation, CondensationSummaryEvent
from perdure.events.content import Message, MessageToolCall, TextContent
from perdure.events.control import PauseEvent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    call,
    condensation,
    entries,
    error,
    id_of,
    observation,
    prompt,
    rejection,
    text,
    unknown_event,
    user,
    with_ids,
)
from tests.logs import condensed_logs, recall_event

CALL = call("look", "call_1")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (prompt(), Message(role="system", content=text("Be careful."))),
        (user("Go."), Message(role="user", content=text("Go."))),
        (
            user("Go.").model_copy(update={"extended_content": text("More.")}),
            Message(role="user", content=text("Go.", "More.")),
        ),
        (agent("Done."), Message(role="assistant", content=text("Done."))),
        (
            action().model_copy(update={"thought": text("Hm."), "reasoning_content": "So."}),
            Message(
                role="assistant",
                content=text("Hm."),
                tool_calls=(CALL,),
                reasoning_content="So.",
            ),
        ),
        (
            observation(id_of(1)),
            Message(role="tool", content=text("ok"), name="look", tool_call_id="call_1"),
        ),
        (
            error(id_of(1)),
            Message(role="tool", content=text("no such tool"), name="look", tool_call_id="call_1"),
        ),
        (
            rejection(id_of(1)),
            Message(
                role="tool",
                content=text("The user did not allow this: not on a Friday"),
                name="look",
                tool_call_id="call_1",
            ),
        ),
        (
            CondensationSummaryEvent(timestamp=TIMESTAMP, summary="In short."),
            Message(role="user", content=text("In short.")),
        ),
        (recall_event("Use hatch.", "builds"), Message(role="user", content=text("Use hatch."))),
        (PauseEvent(timestamp=TIMESTAMP), None),
        (condensation(0, 1, "In short."), None),
        (unknown_event(), None),
    ],
)
def test_an_event_is_the_message_of_the_seed(event: AnyEvent, message: Message | None) -> None:
    assert to_llm_message(event) == message


def test_calls_of_one_response_are_one_message() -> None:
    events = with_ids(
        [
            user("Go."),
            action("look", "call-1", "resp-123").model_copy(update={"thought": text("Both.")}),
            action("look", "call-2", "resp-123"),
            observation(id_of(2), call_id="call-2", words="second"),
            observation(id_of(1), call_id="call-1", words="first"),
        ]
    )
    messages = events_to_messages(events)
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool"]
    assert messages[1].content == text("Both.")
    assert messages[1].tool_calls == (call("look", "call-1"), call("look", "call-2"))
    assert [message.content for message in messages[2:]] == [text("first"), text("second")]


def test_a_call_without_a_result_is_left_out() -> None:
    events = with_ids([user("Go."), action()])
    assert [message.role for message in events_to_messages(events)] == ["user"]


def in_chat_format(message: Message) -> dict[str, Any]:
    """Return what the prompt says, in a form that both ways of writing it have."""
    parts: list[Any] = []
    for part in message.content:
        if isinstance(part, TextContent):
            parts.append(part.text)
        else:
            parts += [{"url": url} for url in part.image_urls]
    calls = [(made.id, made.name, made.arguments) for made in message.tool_calls or ()]
    return {
        "role": message.role,
        "parts": parts,
        "calls": calls,
        "result": (message.name, message.tool_call_id),
        "reasoning": message.reasoning_content,
    }


def read_chat(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, list):
        parts = [part.get("text", part.get("image_url")) for part in content]
    else:
        parts = [content] if content else []
    calls = [
        (made["id"], made["function"]["name"], made["function"]["arguments"])
        for made in message.get("tool_calls", ())
    ]
    return {
        "role": message["role"],
        "parts": parts,
        "calls": calls,
        "result": (message.get("name"), message.get("tool_call_id")),
        "reasoning": message.get("reasoning_content"),
    }


@given(log=condensed_logs)
def test_the_messages_of_any_log_are_those_of_its_prompt(log: list[Entry]) -> None:
    events = [entry.event for entry in log]
    transcript = Transcript()
    for event in events:
        transcript.view.add(event)
    expected = [read_chat(message) for message in transcript.messages()]
    assert [in_chat_format(message) for message in events_to_messages(events)] == expected


def test_the_seeds_condensation_leaves_sixty_events() -> None:
    """The seed's figures: 150 events, 91 forgotten, the summary at 4."""
    events: list[AnyEvent] = [
        make_event(
            MessageEvent,
            id=f"evt-{number:03}",
            source="user",
            llm_message=Message(role="user", content=text(f"{number}")),
        )
        for number in range(150)
    ]
    view = View.from_events(events)
    assert len(view) == 150
    forgotten = view[4:-55]
    assert len(forgotten) == 91
    condensed = make_event(
        Condensation,
        forgotten_event_ids=[event.id for event in forgotten],
        summary="In short.",
        summary_offset=4,
    )
    view = View.from_events([*events, condensed])
    assert len(view) == 60
    assert list(view) == view.events
    assert isinstance(view[4], CondensationSummaryEvent)
    assert [event.id for event in (*view[:4], *view[5:])] == [
        f"evt-{number:03}" for number in (*range(4), *range(95, 150))
    ]
    assert events_to_messages(view)[4] == Message(role="user", content=text("In short."))


def test_a_message_keeps_what_is_sent_back_to_its_model() -> None:
    log = entries([user(), action("look", "call_1"), observation(id_of(1))])
    [_, asked, _] = events_to_messages(entry.event for entry in log)
    assert asked.tool_calls == (MessageToolCall(id="call_1", name="look", arguments="{}"),)

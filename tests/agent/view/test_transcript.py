import json
from typing import Any, Literal

import pytest

from perdure.agent.view.transcript import ChatMessage, Transcript
from perdure.events.actions import FileEditorAction
from perdure.events.condensation import Condensation
from perdure.events.content import ImageContent, Message, TextContent, ThinkingBlock
from perdure.events.control import InterruptEvent
from perdure.events.event import AnyEvent
from perdure.events.messages import SystemPromptEvent
from perdure.events.observations import MCPToolObservation
from perdure.events.tools import ActionEvent
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    error,
    id_of,
    observation,
    opened_event,
    prompt,
    rejection,
    text,
    tool,
    unknown_event,
    user,
    with_ids,
)
from tests.logs import add_events, recall_event, system_message


def to_messages(*events: AnyEvent) -> list[ChatMessage]:
    """Return the messages for a model from a log that begins with these events."""
    transcript = Transcript()
    add_events(transcript.view, with_ids(events))
    return transcript.messages()


def call_message(*calls: tuple[str, str], words: str | None = None) -> ChatMessage:
    return {
        "role": "assistant",
        "content": words,
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for name, call_id in calls
        ],
    }


def result(call_id: str, content: Any, name: str = "look") -> ChatMessage:
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


def user_message(words: str) -> ChatMessage:
    return {"role": "user", "content": words}


# Batches.


def test_a_call_and_its_result() -> None:
    assert to_messages(user("hi"), action(), observation(id_of(1), words="seen")) == [
        user_message("hi"),
        call_message(("look", "call_1")),
        result("call_1", "seen"),
    ]


def test_results_stand_in_the_order_of_the_calls() -> None:
    calls = [action("look", "a"), action("write", "b"), action("look", "c")]
    results: list[AnyEvent] = [
        rejection(id_of(2), "look"),
        observation(id_of(0)),
        error(id_of(1), "write"),
    ]
    assert to_messages(*calls, *results) == [
        call_message(("look", "a"), ("write", "b"), ("look", "c")),
        result("a", "ok"),
        result("b", "no such tool", "write"),
        result("c", "The user did not allow this: not on a Friday"),
    ]


def test_messages_sent_meanwhile_follow_the_results() -> None:
    calls = [action("look", "a"), action("look", "b")]
    events: list[AnyEvent] = [
        *calls,
        user("one"),
        observation(id_of(0)),
        user("two"),
        observation(id_of(1)),
    ]
    assert to_messages(*events) == [
        call_message(("look", "a"), ("look", "b")),
        result("a", "ok"),
        result("b", "ok"),
        user_message("one"),
        user_message("two"),
    ]


def test_messages_are_shown_although_a_batch_is_unfinished() -> None:
    calls = [action("look", "a"), action("look", "b")]
    assert to_messages(*calls, observation(id_of(0)), user("one"), user("two")) == [
        user_message("one"),
        user_message("two"),
    ]


def test_the_first_result_of_a_call_stands() -> None:
    first, second = (observation(id_of(0), words=words) for words in ("first", "second"))
    calls = [action("look", "a"), action("look", "b")]
    assert to_messages(*calls, first, second, observation(id_of(1)), second) == [
        call_message(("look", "a"), ("look", "b")),
        result("a", "first"),
        result("b", "ok"),
    ]


def test_a_duplicate_call_id_is_replaced() -> None:
    turns: list[list[AnyEvent]] = [
        [action("look", "0", f"r-{nth}"), observation(id_of(2 * nth), words=f"{nth}")]
        for nth in range(3)
    ]
    fresh = [f"call_{id_of(seq).replace('-', '')}" for seq in (2, 4)]
    assert to_messages(*(event for turn in turns for event in turn)) == [
        call_message(("look", "0")),
        result("0", "0"),
        call_message(("look", fresh[0])),
        result(fresh[0], "1"),
        call_message(("look", fresh[1])),
        result(fresh[1], "2"),
    ]
    assert max(map(len, fresh)) <= 40


def test_a_call_without_an_id_gets_one() -> None:
    given_id = f"call_{id_of(0).replace('-', '')}"
    assert to_messages(action("look", ""), observation(id_of(0))) == [
        call_message(("look", given_id)),
        result(given_id, "ok"),
    ]


def test_an_error_without_an_action_id_is_that_of_a_call_that_could_not_be_read() -> None:
    calls = [action("look", "same"), action("fly", "same", valid=False)]
    fresh = f"call_{id_of(1).replace('-', '')}"
    assert to_messages(*calls, error(None, "fly", "same"), observation(id_of(0), words="seen")) == [
        call_message(("look", "same"), ("fly", fresh)),
        result("same", "seen"),
        result(fresh, "no such tool", "fly"),
    ]


def test_a_result_that_comes_late_stands_behind_its_call() -> None:
    calls = [action("look", "a", "r-1"), action("look", "b", "r-2")]
    assert to_messages(*calls, observation(id_of(1)), user("so?"), observation(id_of(0))) == [
        call_message(("look", "a")),
        result("a", "ok"),
        call_message(("look", "b")),
        result("b", "ok"),
        user_message("so?"),
    ]


def test_a_result_without_a_call_is_not_shown() -> None:
    assert to_messages(user("hi"), observation(id_of(9)), error(None)) == [user_message("hi")]


# Arguments.


@pytest.mark.parametrize("raw", ['{"a": 1}', '{ "a" : null }', "{}"])
def test_arguments_are_shown_as_the_model_wrote_them(raw: str) -> None:
    assert arguments_shown(action(arguments=raw)) == raw


BROKEN = ["", "{", "[]", '"a"', '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000, '{"a": 1,}']


@pytest.mark.parametrize("raw", BROKEN, ids=lambda raw: raw[:12] or "none")
def test_arguments_that_no_provider_accepts_are_left_out(raw: str) -> None:
    assert arguments_shown(action(arguments=raw, valid=False)) == "{}"


@pytest.mark.parametrize("raw", BROKEN, ids=lambda raw: raw[:12] or "none")
def test_repaired_arguments_are_shown_as_parsed(raw: str) -> None:
    good = action(arguments='{"a": 1, "b": null}')
    sent = good.tool_call.model_copy(update={"arguments": raw})
    assert arguments_shown(good.model_copy(update={"tool_call": sent})) == '{"a": 1, "b": null}'
    edit = FileEditorAction(command="view", path="a", view_range=(1, -1))
    arguments = arguments_shown(good.model_copy(update={"tool_call": sent, "action": edit}))
    assert json.loads(arguments) == {"command": "view", "path": "a", "view_range": [1, -1]}


def arguments_shown(event: ActionEvent) -> str:
    [message, _] = to_messages(event, observation(id_of(0)))
    [call] = message["tool_calls"]
    return str(call["function"]["arguments"])


# Words.


def test_the_system_prompt_comes_first_and_brings_the_tools() -> None:
    transcript = Transcript()
    prompt_event = SystemPromptEvent(
        timestamp=TIMESTAMP,
        system_prompt=TextContent(text="Be careful."),
        tools=(tool("look", repeatable=True),),
        dynamic_context=TextContent(text="It is raining."),
    )
    add_events(transcript.view, with_ids([opened_event(), user("hi"), prompt_event]))
    assert transcript.messages() == [
        {
            "role": "system",
            "content": [
                {"type": "text", "text": "Be careful."},
                {"type": "text", "text": "It is raining."},
            ],
        },
        user_message("hi"),
    ]
    schema = {"type": "object", "properties": {}}
    function = {"name": "look", "description": "look", "parameters": schema}
    assert transcript.tools == [{"type": "function", "function": function}]


def test_a_long_result_is_cut_in_the_middle_where_the_model_has_a_limit() -> None:
    transcript = Transcript()
    seen = observation(id_of(2), words="a" * 30 + "b" * 30)
    add_events(transcript.view, with_ids([prompt(), user("c" * 60), action(), seen]))
    assert transcript.messages()[-1]["content"] == "a" * 30 + "b" * 30
    transcript.limit_results(20)
    note = "\n[... Observation truncated due to length ...]\n"
    assert transcript.messages()[-1]["content"] == "a" * 10 + note + "b" * 10
    assert transcript.messages()[1] == user_message("c" * 60)
    transcript.limit_results(None)
    assert transcript.messages()[-1]["content"] == "a" * 30 + "b" * 30


def test_messages_stay_the_same_objects_from_call_to_call() -> None:
    transcript = Transcript()
    events: list[AnyEvent] = [prompt(), user("hi"), action(), observation(id_of(2))]
    add_events(transcript.view, with_ids(events))
    first, second = transcript.messages(), transcript.messages()
    assert [message["role"] for message in first] == ["system", "user", "assistant", "tool"]
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_the_newest_system_prompt_is_in_force() -> None:
    other = prompt().model_copy(update={"system_prompt": TextContent(text="Be bold.")})
    assert to_messages(prompt(), user("hi"), other)[0] == {"role": "system", "content": "Be bold."}


def test_added_context_follows_the_words() -> None:
    event = user("hi").model_copy(update={"extended_content": text("By the way.")})
    assert to_messages(event) == [user_message("hi\nBy the way.")]


def test_pictures_make_a_list_of_parts() -> None:
    parts = (*text("Look:"), ImageContent(image_urls=("data:a", "data:b")))
    seen = MCPToolObservation(tool_name="look", content=parts)
    spoken = Message(role="user", content=parts)
    events: list[AnyEvent] = [
        user().model_copy(update={"llm_message": spoken}),
        action(),
        observation(id_of(1)).model_copy(update={"observation": seen}),
    ]
    expected = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:a"}},
        {"type": "image_url", "image_url": {"url": "data:b"}},
    ]
    message, _, answer = to_messages(*events)
    assert message["content"] == answer["content"] == expected


def test_thinking_goes_back_with_its_signature() -> None:
    block = ThinkingBlock(thinking="Hm.", signature="s")
    expected = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]
    thought = action().model_copy(update={"thinking_blocks": (block,), "thought": text("So:")})
    first, *_ = to_messages(thought, observation(id_of(0)))
    assert first == {**call_message(("look", "call_1"), words="So:"), "thinking_blocks": expected}
    spoken = agent("Done.").llm_message.model_copy(update={"thinking_blocks": (block,)})
    assert to_messages(agent().model_copy(update={"llm_message": spoken})) == [
        {"role": "assistant", "content": "Done.", "thinking_blocks": expected}
    ]


def test_reasoning_is_sent_back_with_its_response() -> None:
    thought = action().model_copy(update={"reasoning_content": "Hm."})
    first, *_ = to_messages(thought, observation(id_of(0)))
    assert first == {**call_message(("look", "call_1")), "reasoning_content": "Hm."}
    spoken = agent("Done.").llm_message.model_copy(update={"reasoning_content": "Hm."})
    assert to_messages(agent().model_copy(update={"llm_message": spoken})) == [
        {"role": "assistant", "content": "Done.", "reasoning_content": "Hm."}
    ]


def test_a_partial_response_is_the_agents_message() -> None:
    events: list[AnyEvent] = [
        user("hi"),
        agent("I was about"),
        InterruptEvent(timestamp=TIMESTAMP),
        user("stop"),
    ]
    assert to_messages(*events) == [
        user_message("hi"),
        {"role": "assistant", "content": "I was about"},
        user_message("stop"),
    ]


def test_a_warning_has_the_role_of_a_user() -> None:
    assert to_messages(user("hi"), system_message("Two answers are left.")) == [
        user_message("hi"),
        user_message("Two answers are left."),
    ]


@pytest.mark.parametrize("role", ["system", "tool", "user"])
def test_only_the_agent_has_the_assistant_role(role: Literal["system", "tool"]) -> None:
    spoken = Message(role=role, content=text("hi"))
    assert to_messages(user().model_copy(update={"llm_message": spoken})) == [user_message("hi")]


def test_recalled_context_follows_its_message() -> None:
    assert to_messages(
        user("hi"), opened_event(), recall_event("Be brief."), recall_event("Be kind.")
    ) == [user_message("hi\nBe brief.\nBe kind.")]
    parts = (ImageContent(image_urls=("data:a",)),)
    picture = user().model_copy(update={"llm_message": Message(role="user", content=parts)})
    [message] = to_messages(picture, recall_event("Be brief."))
    assert message["content"][1] == {"type": "text", "text": "Be brief."}


def test_context_recalled_by_a_file_follows_the_results() -> None:
    calls = [action("look", "a"), action("look", "b")]
    results: list[AnyEvent] = [
        observation(id_of(1)),
        recall_event("Be brief."),
        observation(id_of(2)),
    ]
    assert to_messages(user("hi"), *calls, *results) == [
        user_message("hi"),
        call_message(("look", "a"), ("look", "b")),
        result("a", "ok"),
        result("b", "ok"),
        user_message("Be brief."),
    ]


def test_a_summary_has_the_role_of_a_user() -> None:
    made = Condensation(
        timestamp=TIMESTAMP,
        forgotten_event_ids=(id_of(1), id_of(2)),
        summary="They said hello.",
        summary_offset=1,
    )
    assert to_messages(prompt(), user("hi"), agent("Hello."), made, user("So?")) == [
        {"role": "system", "content": "Be careful."},
        user_message("They said hello."),
        user_message("So?"),
    ]


def test_a_forgotten_system_prompt_stays_in_force() -> None:
    made = Condensation(timestamp=TIMESTAMP, forgotten_event_ids=(id_of(0), id_of(1)))
    transcript = Transcript()
    add_events(transcript.view, with_ids([prompt(), user("hi"), made]))
    assert transcript.messages() == [{"role": "system", "content": "Be careful."}]
    assert [tool["function"]["name"] for tool in transcript.tools] == ["look", "write", "finish"]


def test_an_empty_message_is_not_shown() -> None:
    assert to_messages(user("hi"), agent(""), user(""), recall_event(""), user("Hello?")) == [
        user_message("hi"),
        user_message("Hello?"),
    ]


def test_bookkeeping_events_are_not_shown() -> None:
    assert (
        to_messages(opened_event(), unknown_event(), unknown_event("PauseEvent", until=None)) == []
    )


def test_a_message_is_rendered_again_when_another_recall_takes_the_place_of_one() -> None:
    """Another writer may forget a recall alone, and a later one then stands behind the message."""
    transcript = Transcript()
    before = with_ids([user("Hello."), recall_event("first"), action("look")])
    add_events(transcript.view, before)
    assert transcript.messages() == [{"role": "user", "content": "Hello.\nfirst"}]
    forgotten = Condensation(
        timestamp=TIMESTAMP, forgotten_event_ids=tuple(event.id for event in before[1:])
    )
    add_events(transcript.view, with_ids([forgotten, recall_event("second")], len(before)))
    assert transcript.messages() == [{"role": "user", "content": "Hello.\nsecond"}]

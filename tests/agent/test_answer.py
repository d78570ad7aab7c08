import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.answer import MOST_CALLS, Parse, events_of
from agent.completion import Completion
from events.actions import Action, MCPToolAction
from events.content import ImageContent, Message, MessageToolCall, TextContent, ThinkingBlock
from events.event import Event
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent
from tests.builders import WHEN, call, completion, text


def with_a_path(raw: str) -> Action:
    """Takes `{"path": …}` and nothing else."""
    arguments = json.loads(raw)
    if set(arguments) != {"path"}:
        raise ValueError("`path` is missing.")
    return MCPToolAction(data=arguments)


TOOLS: Mapping[str, Parse] = {"look": with_a_path, "write": with_a_path}
GOOD = '{"path": "a"}'


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def test_words_become_a_message() -> None:
    answer = completion(words="Hello.", response="r-9")
    [said] = events_of(answer, TOOLS)
    assert isinstance(said, MessageEvent)
    assert said.llm_message == answer.message
    assert (said.source, said.llm_response_id, said.timestamp) == ("agent", "r-9", WHEN)


def test_an_answer_with_nothing_in_it_is_a_message_too() -> None:
    assert kinds(events_of(completion(), {})) == ["MessageEvent"]


def test_a_call_becomes_an_action_with_its_arguments_read() -> None:
    asked = call("write", "call_7", GOOD)
    [event] = events_of(completion(asked, response="r-9"), TOOLS)
    assert isinstance(event, ActionEvent)
    assert event.action == MCPToolAction(data={"path": "a"})
    assert (event.tool_name, event.tool_call_id) == ("write", "call_7")
    assert (event.tool_call, event.llm_response_id, event.timestamp) == (asked, "r-9", WHEN)


def test_a_call_of_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    action, error = events_of(completion(call("fly", "call_7")), TOOLS)
    assert isinstance(action, ActionEvent)
    assert action.action is None
    assert isinstance(error, AgentErrorEvent)
    assert error.error == "There is no tool 'fly'. Tools: look, write."
    assert (error.classification, error.tool_name) == ("unknown_tool", "fly")
    assert (error.tool_call_id, error.action_id) == ("call_7", None)


def test_a_call_where_there_are_no_tools_is_told_so() -> None:
    _, error = events_of(completion(call("fly")), {})
    assert isinstance(error, AgentErrorEvent)
    assert error.error == "There is no tool 'fly'. Tools: none."


def test_arguments_that_do_not_fit_are_answered_with_the_reason() -> None:
    action, error = events_of(completion(call("look", arguments="{}")), TOOLS)
    assert isinstance(action, ActionEvent)
    assert (action.action, action.tool_call.arguments) == (None, "{}")
    assert isinstance(error, AgentErrorEvent)
    assert error.error == "The arguments of look do not fit: `path` is missing."
    assert error.classification == "bad_arguments"


def test_arguments_that_are_not_json_are_answered_too() -> None:
    _, error = events_of(completion(call("look", arguments="{")), TOOLS)
    assert isinstance(error, AgentErrorEvent)
    assert error.classification == "bad_arguments"


def test_the_actions_come_first_in_the_order_of_the_calls_and_the_errors_behind_them() -> None:
    calls = [call("fly", "a"), call("look", "b", GOOD), call("look", "c"), call("write", "d", GOOD)]
    events = events_of(completion(*calls), TOOLS)
    assert kinds(events) == ["ActionEvent"] * 4 + ["AgentErrorEvent"] * 2
    asked = [event.tool_call_id for event in events if isinstance(event, ActionEvent)]
    failed = [event.tool_call_id for event in events if isinstance(event, AgentErrorEvent)]
    assert (asked, failed) == (["a", "b", "c", "d"], ["a", "c"])


def test_only_the_first_action_carries_what_was_thought() -> None:
    said = Message(
        role="assistant",
        content=(*text("Let me see.", ""), ImageContent(image_urls=("data:x",))),
        tool_calls=(call("look", "a", GOOD), call("look", "b", GOOD)),
        reasoning_content="Hm.",
        thinking_blocks=(ThinkingBlock(thinking="Hm.", signature="s"),),
    )
    first, second = events_of(Completion(id="r", model="m", message=said, received=WHEN), TOOLS)
    assert isinstance(first, ActionEvent)
    assert isinstance(second, ActionEvent)
    assert first.thought == (TextContent(text="Let me see."),)
    assert (first.reasoning_content, first.thinking_blocks) == ("Hm.", said.thinking_blocks)
    assert (second.thought, second.reasoning_content, second.thinking_blocks) == ((), None, ())


@pytest.mark.parametrize("count", [MOST_CALLS, MOST_CALLS + 1, 10 * MOST_CALLS])
def test_a_model_in_a_loop_makes_no_more_calls_than_a_batch_may_have(count: int) -> None:
    calls = [call("fly", f"call_{nth}") for nth in range(count)]
    events = events_of(completion(*calls), TOOLS)
    assert kinds(events) == ["ActionEvent"] * MOST_CALLS + ["AgentErrorEvent"] * MOST_CALLS


calls = st.builds(
    MessageToolCall,
    id=st.sampled_from(["a", "b", "c", ""]),
    name=st.sampled_from(["look", "write", "fly"]),
    arguments=st.sampled_from([GOOD, "{}", "{", "[]", ""]),
)


@given(st.lists(calls, max_size=6), st.text(max_size=5))
def test_events_are_a_function_of_the_completion_alone(
    made: list[MessageToolCall], words: str
) -> None:
    answer = completion(*made, words=words)
    recorded = Completion.model_validate_json(answer.model_dump_json(exclude_none=True))
    assert events_of(answer, TOOLS) == events_of(recorded, TOOLS) == events_of(answer, dict(TOOLS))


@given(st.lists(calls, min_size=1, max_size=6))
def test_every_call_becomes_an_action_or_an_action_with_an_error(made: list[Any]) -> None:
    events = events_of(completion(*made), TOOLS)
    actions = [event for event in events if isinstance(event, ActionEvent)]
    errors = [event for event in events if isinstance(event, AgentErrorEvent)]
    assert [event.tool_call for event in actions] == made
    unread = [event.tool_call_id for event in actions if event.action is None]
    assert unread == [error.tool_call_id for error in errors]

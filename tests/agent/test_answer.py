"""What a model answers becomes events, whatever it answers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.answer import MOST_CALLS, events_of
from agent.assessment import Analyze, Assessment, by_model
from agent.completion import Completion
from events.actions import Action, MCPToolAction
from events.content import ImageContent, Message, MessageToolCall, TextContent, ThinkingBlock
from events.control import SecurityAnalysisEvent
from events.event import Event
from events.messages import MessageEvent
from events.risk import Risk
from events.tools import ActionEvent, AgentErrorEvent
from tests.agent.offering import offered, taking_anything
from tests.builders import WHEN, call, completion, entries, id_of, text


def with_a_path(_: str, arguments: dict[str, Any]) -> Action:
    """Takes `{"path": …}` and nothing else."""
    if set(arguments) != {"path"}:
        raise ValueError("`path` is missing.")
    return MCPToolAction(data=arguments)


TOOLS = offered(with_a_path, "look", "write")
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
    assert error.error.startswith("The arguments of look do not fit: The arguments are not valid")


def test_a_check_of_a_tool_that_breaks_down_is_told_of() -> None:
    def careless(_: str, arguments: dict[str, Any]) -> Action:
        return MCPToolAction(data=arguments["no such key"])

    _, error = events_of(completion(call("look")), offered(careless, "look"))
    assert isinstance(error, AgentErrorEvent)
    assert error.error == "The arguments of look do not fit: KeyError: 'no such key'"


def test_a_slip_in_a_name_is_mended_and_the_call_kept_as_it_was_made() -> None:
    asked = call("functions.Look<|channel|>", arguments=GOOD)
    [event] = events_of(completion(asked), TOOLS)
    assert isinstance(event, ActionEvent)
    assert (event.tool_name, event.tool_call) == ("look", asked)
    _, error = events_of(completion(call("LOOK")), TOOLS)
    assert isinstance(error, AgentErrorEvent)
    assert error.tool_name == "look"


def test_a_name_without_end_is_not_sent_back_whole() -> None:
    _, error = events_of(completion(call("fly" * 10_000)), TOOLS)
    assert isinstance(error, AgentErrorEvent)
    assert len(error.error) < 150


CUT = "The arguments of look were cut off, as the answer reached its token limit: send less at "


@pytest.mark.parametrize("arguments", ["", '{"path": "a"', '{"path": "', "{"])
def test_arguments_that_were_cut_off_are_told_of_as_such(arguments: str) -> None:
    asked = call("look", arguments=arguments)
    action, error = events_of(completion(asked, finish_reason="length"), TOOLS)
    assert isinstance(action, ActionEvent)
    assert action.action is None
    assert isinstance(error, AgentErrorEvent)
    assert error.error.startswith(CUT)
    assert error.classification == "bad_arguments"


def test_only_the_last_call_can_be_cut_off() -> None:
    first, last = call("look", "a", '{"path": "a"'), call("look", "b", GOOD)
    events = events_of(completion(first, last, finish_reason="length"), TOOLS)
    actions = [event.action for event in events if isinstance(event, ActionEvent)]
    assert actions == [MCPToolAction(data={"path": "a"})] * 2
    assert len(events_of(completion(first, finish_reason="stop"), TOOLS)) == 1


def test_what_the_model_says_of_its_call_is_no_argument() -> None:
    arguments = '{"path": "a", "security_risk": "medium", "summary": "Look at a."}'
    [event] = events_of(completion(call("write", arguments=arguments)), TOOLS)
    assert isinstance(event, ActionEvent)
    assert event.action == MCPToolAction(data={"path": "a"})
    assert (event.security_risk, event.summary) == ("MEDIUM", "Look at a.")


def test_what_an_action_touches_is_on_record() -> None:
    tools = {
        "look": replace(TOOLS["look"], touches=lambda action: (f"file:{action.data['path']}",)),
        "write": replace(TOOLS["write"], touches=lambda action: action.no_such_thing),
    }
    calls = [call("look", "a", GOOD), call("write", "b", GOOD), call("look", "c")]
    made = events_of(completion(*calls), tools)
    touched = [event.touches for event in made if isinstance(event, ActionEvent)]
    assert touched == [("file:a",), None, None]


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


def assessment(*analyzers: tuple[str, Analyze], base: int = 7) -> Assessment:
    return Assessment("risky", analyzers, lambda position: id_of(base + position))


def says(risk: Risk) -> Analyze:
    return lambda _: risk


def breaks(_: ActionEvent) -> Risk:
    raise RuntimeError("no idea")


MODEL = ("model", by_model)


def risks(events: Sequence[Event]) -> dict[str, Risk]:
    found = events[-1]
    assert isinstance(found, SecurityAnalysisEvent)
    return found.risks


def test_the_risks_of_an_answer_come_last_by_the_ids_of_its_actions() -> None:
    calls = [call("fly", "a"), call("look", "b", GOOD), call("look", "c"), call("write", "d", GOOD)]
    told = assessment(MODEL, ("rules", says("LOW")))
    events = events_of(completion(*calls), TOOLS, told)
    expected = ["ActionEvent"] * 4 + ["AgentErrorEvent"] * 2 + ["SecurityAnalysisEvent"]
    assert kinds(events) == expected
    placed = [entry.event for entry in entries(events, start=7)]
    done = [one.id for one in placed if isinstance(one, ActionEvent) and one.action is not None]
    assert list(risks(events)) == done
    analysis = events[-1]
    assert isinstance(analysis, SecurityAnalysisEvent)
    assert (analysis.analyzer, analysis.policy, analysis.source, analysis.timestamp) == (
        "model+rules",
        "risky",
        "environment",
        WHEN,
    )


@pytest.mark.parametrize(
    ("model", "rules", "risk"),
    [
        ("LOW", says("HIGH"), "HIGH"),
        ("HIGH", says("LOW"), "HIGH"),
        ("", says("UNKNOWN"), "UNKNOWN"),
        ("", says("LOW"), "LOW"),
        ("MEDIUM", says("UNKNOWN"), "MEDIUM"),
        ("LOW", breaks, "HIGH"),
        ("LOW", lambda _: "harmless", "HIGH"),
        ("LOW", lambda _: None, "HIGH"),
    ],
)
def test_the_highest_risk_counts_and_whoever_breaks_down_sees_the_highest(
    model: str, rules: Analyze, risk: Risk
) -> None:
    asked = call("write", arguments=f'{{"path": "a", "security_risk": "{model}"}}')
    events = events_of(completion(asked), TOOLS, assessment(MODEL, ("rules", rules)))
    assert risks(events) == {id_of(7): risk}


def test_what_only_reads_is_of_low_risk_until_somebody_objects() -> None:
    tools = offered(taking_anything, "look", read_only=True)
    assert risks(events_of(completion(call()), tools, assessment())) == {id_of(7): "LOW"}
    strict = assessment(MODEL, ("mine", says("MEDIUM")))
    assert risks(events_of(completion(call()), tools, strict)) == {id_of(7): "MEDIUM"}


@pytest.mark.parametrize("answer", [completion(words="Hi."), completion(call("fly"))])
def test_where_nothing_can_be_done_nothing_is_assessed(answer: Completion) -> None:
    events = events_of(answer, TOOLS, assessment(MODEL))
    assert "SecurityAnalysisEvent" not in kinds(events)


NAMES = st.sampled_from(["look", "write", "fly", "Look", "functions.write"]) | st.text()
ARGUMENTS = (
    st.sampled_from([GOOD, "{}", "{", "[]", "", '{"path": "a", "security_risk": "LOW"}'])
    | st.text()
    | st.text(st.sampled_from("{}[]\"':,\\ab1\n`"))
)
calls = st.builds(
    MessageToolCall, id=st.sampled_from(["a", "b", "c", ""]), name=NAMES, arguments=ARGUMENTS
)
REASONS = st.sampled_from([None, "stop", "tool_calls", "length"])


@given(st.lists(calls, max_size=6), st.text(max_size=5), REASONS)
def test_events_are_a_function_of_the_completion_alone(
    made: list[MessageToolCall], words: str, reason: str | None
) -> None:
    answer = completion(*made, words=words, finish_reason=reason)
    recorded = Completion.model_validate_json(answer.model_dump_json(exclude_none=True))
    told = assessment(MODEL)
    events = events_of(answer, TOOLS, told)
    assert events == events_of(recorded, TOOLS, told) == events_of(answer, dict(TOOLS), told)


@given(st.lists(calls, min_size=1, max_size=6), REASONS)
def test_every_call_becomes_an_action_or_an_action_with_an_error(
    made: list[Any], reason: str | None
) -> None:
    events = events_of(completion(*made, finish_reason=reason), TOOLS)
    actions = [event for event in events if isinstance(event, ActionEvent)]
    errors = [event for event in events if isinstance(event, AgentErrorEvent)]
    assert events == [*actions, *errors]
    assert [event.tool_call for event in actions] == made
    unread = [event.tool_call_id for event in actions if event.action is None]
    assert unread == [error.tool_call_id for error in errors]
    assert all(event.tool_name in TOOLS for event in actions if event.action is not None)


@given(st.lists(calls, min_size=1, max_size=3), REASONS)
def test_whatever_was_called_can_be_stored_and_read_again(
    made: list[Any], reason: str | None
) -> None:
    tools = offered(taking_anything, "look", "write")
    events = events_of(completion(*made, finish_reason=reason), tools, assessment(MODEL))
    stored = entries(events)
    assert [entry.event.kind for entry in stored] == kinds(events)
    for entry in stored:
        again = type(entry.event).model_validate_json(entry.event.model_dump_json())
        assert again == entry.event

"""Any response of a model becomes events."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from perdure.agent.calls.answer import parse_response
from perdure.agent.calls.completion import Completion
from perdure.agent.calls.risk import Analyze, RiskAssessor, model_risk
from perdure.agent.view.transcript import Transcript
from perdure.events.actions import Action, MCPToolAction
from perdure.events.content import (
    ImageContent,
    Message,
    MessageToolCall,
    TextContent,
    ThinkingBlock,
)
from perdure.events.control import SecurityAnalysisEvent
from perdure.events.event import Event
from perdure.events.messages import MessageEvent
from perdure.events.risk import Risk
from perdure.events.tools import ActionEvent, AgentErrorEvent
from tests.agent.offering import accept_arguments, fake_tools
from tests.builders import (
    TIMESTAMP,
    call,
    completion,
    entries,
    id_of,
    observation,
    summaries_of,
    text,
    with_ids,
)
from tests.logs import add_events


def with_a_path(_: str, arguments: dict[str, Any]) -> Action:
    """Parse `{"path": …}` and nothing else."""
    if set(arguments) != {"path"}:
        raise ValueError("`path` is missing.")
    return MCPToolAction(data=arguments)


TOOLS = fake_tools(with_a_path, "look", "write")
GOOD = '{"path": "a"}'


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def test_a_response_without_calls_becomes_a_message() -> None:
    answer = completion(words="Hello.", response="r-9")
    [message] = parse_response(answer, TOOLS)
    assert isinstance(message, MessageEvent)
    assert message.llm_message == answer.message
    assert (message.source, message.llm_response_id, message.timestamp) == (
        "agent",
        "r-9",
        TIMESTAMP,
    )


@pytest.mark.parametrize(("reason", "truncated"), [("length", True), ("stop", None)])
def test_a_message_that_its_length_limit_cut_says_so(reason: str, truncated: bool | None) -> None:
    [message] = parse_response(completion(words="Once", finish_reason=reason), TOOLS)
    assert isinstance(message, MessageEvent)
    assert message.truncated is truncated


def test_an_empty_response_becomes_a_message() -> None:
    assert kinds(parse_response(completion(), {})) == ["MessageEvent"]


def test_a_call_becomes_an_action_with_parsed_arguments() -> None:
    tool_call = call("write", "call_7", GOOD)
    [event] = parse_response(completion(tool_call, response="r-9"), TOOLS)
    assert isinstance(event, ActionEvent)
    assert event.action == MCPToolAction(data={"path": "a"})
    assert (event.tool_name, event.tool_call_id) == ("write", "call_7")
    assert (event.tool_call, event.llm_response_id, event.timestamp) == (
        tool_call,
        "r-9",
        TIMESTAMP,
    )


def test_the_error_for_an_unknown_tool_lists_the_tools() -> None:
    action, error = parse_response(completion(call("fly", "call_7")), TOOLS)
    assert isinstance(action, ActionEvent)
    assert action.action is None
    assert isinstance(error, AgentErrorEvent)
    assert error.error == "There is no tool 'fly'. Tools: look, write."
    assert (error.classification, error.tool_name) == ("unknown_tool", "fly")
    assert (error.tool_call_id, error.action_id) == ("call_7", None)


def test_the_error_for_a_call_without_any_tools_says_so() -> None:
    _, error = parse_response(completion(call("fly")), {})
    assert isinstance(error, AgentErrorEvent)
    assert error.error == "There is no tool 'fly'. Tools: none."


def test_invalid_arguments_are_answered_with_the_reason() -> None:
    action, error = parse_response(completion(call("look", arguments="{}")), TOOLS)
    assert isinstance(action, ActionEvent)
    assert (action.action, action.tool_call.arguments) == (None, "{}")
    assert isinstance(error, AgentErrorEvent)
    assert error.error == "The arguments of look do not fit: `path` is missing."
    assert error.classification == "bad_arguments"


def test_arguments_that_are_not_json_are_answered_with_an_error() -> None:
    _, error = parse_response(completion(call("look", arguments="{")), TOOLS)
    assert isinstance(error, AgentErrorEvent)
    assert error.classification == "bad_arguments"
    assert error.error.startswith("The arguments of look do not fit: The arguments are not valid")


def test_an_exception_in_a_tools_check_is_reported_to_the_model() -> None:
    def careless(_: str, arguments: dict[str, Any]) -> Action:
        return MCPToolAction(data=arguments["no such key"])

    _, error = parse_response(completion(call("look")), fake_tools(careless, "look"))
    assert isinstance(error, AgentErrorEvent)
    assert error.error == "The arguments of look do not fit: KeyError: 'no such key'"


def test_a_misspelled_name_is_resolved_and_the_call_stored_unchanged() -> None:
    tool_call = call("functions.Look<|channel|>", arguments=GOOD)
    [event] = parse_response(completion(tool_call), TOOLS)
    assert isinstance(event, ActionEvent)
    assert (event.tool_name, event.tool_call) == ("look", tool_call)
    _, error = parse_response(completion(call("LOOK")), TOOLS)
    assert isinstance(error, AgentErrorEvent)
    assert error.tool_name == "look"


def test_an_endless_unknown_name_is_cut_in_the_error() -> None:
    _, error = parse_response(completion(call("fly" * 10_000)), TOOLS)
    assert isinstance(error, AgentErrorEvent)
    assert len(error.error) < 150


CUT = "The arguments of look were cut off, as the answer reached its token limit: send less at "


@pytest.mark.parametrize("arguments", ["", '{"path": "a"', '{"path": "', "{"])
def test_the_error_for_cut_off_arguments_says_so(arguments: str) -> None:
    tool_call = call("look", arguments=arguments)
    action, error = parse_response(completion(tool_call, finish_reason="length"), TOOLS)
    assert isinstance(action, ActionEvent)
    assert action.action is None
    assert isinstance(error, AgentErrorEvent)
    assert error.error.startswith(CUT)
    assert error.classification == "bad_arguments"


def test_only_the_last_call_can_be_cut_off() -> None:
    first, last = call("look", "a", '{"path": "a"'), call("look", "b", GOOD)
    events = parse_response(completion(first, last, finish_reason="length"), TOOLS)
    actions = [event.action for event in events if isinstance(event, ActionEvent)]
    assert actions == [MCPToolAction(data={"path": "a"})] * 2
    assert len(parse_response(completion(first, finish_reason="stop"), TOOLS)) == 1


def test_annotations_are_no_arguments_of_the_tool() -> None:
    arguments = '{"path": "a", "security_risk": "medium", "summary": "Look at a."}'
    [event] = parse_response(completion(call("write", arguments=arguments)), TOOLS)
    assert isinstance(event, ActionEvent)
    assert event.action == MCPToolAction(data={"path": "a"})
    assert (event.security_risk, event.summary) == ("MEDIUM", "Look at a.")


def test_the_resources_of_an_action_are_recorded() -> None:
    tools = {
        "look": replace(TOOLS["look"], resources=lambda action: (f"file:{action.data['path']}",)),
        "write": replace(TOOLS["write"], resources=lambda action: action.no_such_thing),
    }
    calls = [call("look", "a", GOOD), call("write", "b", GOOD), call("look", "c")]
    made = parse_response(completion(*calls), tools)
    touched = [event.touches for event in made if isinstance(event, ActionEvent)]
    assert touched == [("file:a",), None, None]


def test_actions_come_in_the_order_of_calls_and_errors_behind_them() -> None:
    calls = [call("fly", "a"), call("look", "b", GOOD), call("look", "c"), call("write", "d", GOOD)]
    events = parse_response(completion(*calls), TOOLS)
    assert kinds(events) == ["ActionEvent"] * 4 + ["AgentErrorEvent"] * 2
    action_calls = [event.tool_call_id for event in events if isinstance(event, ActionEvent)]
    error_calls = [event.tool_call_id for event in events if isinstance(event, AgentErrorEvent)]
    assert (action_calls, error_calls) == (["a", "b", "c", "d"], ["a", "c"])


def test_only_the_first_action_carries_the_models_thoughts() -> None:
    message = Message(
        role="assistant",
        content=(*text("Let me see.", ""), ImageContent(image_urls=("data:x",))),
        tool_calls=(call("look", "a", GOOD), call("look", "b", GOOD)),
        reasoning_content="Hm.",
        thinking_blocks=(ThinkingBlock(thinking="Hm.", signature="s"),),
    )
    first, second = parse_response(
        Completion(id="r", model="m", message=message, received=TIMESTAMP), TOOLS
    )
    assert isinstance(first, ActionEvent)
    assert isinstance(second, ActionEvent)
    assert first.thought == (TextContent(text="Let me see."),)
    assert (first.reasoning_content, first.thinking_blocks) == ("Hm.", message.thinking_blocks)
    assert (second.thought, second.reasoning_content, second.thinking_blocks) == ((), None, ())


@pytest.mark.parametrize("count", [64, 65, 640])
def test_each_call_beyond_the_most_has_an_error_of_its_own(count: int) -> None:
    calls = [call("look", f"call_{nth}", GOOD) for nth in range(count)]
    events = parse_response(completion(*calls), TOOLS)
    actions = [event for event in events if isinstance(event, ActionEvent)]
    errors = [event for event in events if isinstance(event, AgentErrorEvent)]
    assert len(actions) == count
    assert len(errors) == count - 64
    assert events == [*actions, *errors]
    assert [event.tool_call_id for event in actions if event.action is not None] == [
        f"call_{nth}" for nth in range(64)
    ]
    assert [event.tool_call_id for event in errors] == [f"call_{nth}" for nth in range(64, count)]
    assert {event.classification for event in errors} <= {"too_many_calls"}


def test_a_call_beyond_the_most_names_its_tool_and_its_place() -> None:
    calls = [*[call("look", "c", GOOD)] * 64, call("fly", "d"), call("functions.look", "e")]
    *_, first, second = parse_response(completion(*calls), TOOLS)
    assert isinstance(first, AgentErrorEvent)
    assert isinstance(second, AgentErrorEvent)
    assert (first.tool_name, second.tool_name) == ("fly", "look")
    assert "call 65 of one response" in first.error
    assert "call 66 of one response" in second.error


def test_a_response_of_a_model_that_never_ends_has_a_bounded_number_of_events() -> None:
    calls = [call("fly", f"call_{nth}") for nth in range(5_000)]
    events = parse_response(completion(*calls), TOOLS)
    assert kinds(events) == ["ActionEvent"] * 1_000 + ["AgentErrorEvent"] * 1_000
    size = len(to_json(summaries_of(*events)))
    assert size < 1024 * 1024, "Temporal takes 2 MiB, an encrypted payload is a third longer"


def test_a_model_is_shown_the_errors_of_the_calls_beyond_the_most() -> None:
    calls = [call("look", f"call_{nth}", GOOD) for nth in range(66)]
    events = with_ids(parse_response(completion(*calls), TOOLS))
    results = [observation(id_of(nth), call_id=f"call_{nth}") for nth in range(64)]
    transcript = Transcript()
    add_events(transcript.view, [*events, *with_ids(results, len(events))])
    asked, *answers = transcript.messages()
    assert len(asked["tool_calls"]) == len(answers) == 66
    assert [answer["content"] for answer in answers[:64]] == ["ok"] * 64
    assert all("only the first 64 are run" in answer["content"] for answer in answers[64:])


def assessment(*analyzers: tuple[str, Analyze], base: int = 7) -> RiskAssessor:
    return RiskAssessor("risky", analyzers, lambda position: id_of(base + position))


def says(risk: Risk) -> Analyze:
    return lambda _: risk


def breaks(_: ActionEvent) -> Risk:
    raise RuntimeError("no idea")


MODEL = ("model", model_risk)


def risks(events: Sequence[Event]) -> dict[str, Risk]:
    analysis = events[-1]
    assert isinstance(analysis, SecurityAnalysisEvent)
    return analysis.risks


def test_the_risks_of_an_answer_come_last_by_the_ids_of_its_actions() -> None:
    calls = [call("fly", "a"), call("look", "b", GOOD), call("look", "c"), call("write", "d", GOOD)]
    assessor = assessment(MODEL, ("rules", says("LOW")))
    events = parse_response(completion(*calls), TOOLS, assessor)
    expected = ["ActionEvent"] * 4 + ["AgentErrorEvent"] * 2 + ["SecurityAnalysisEvent"]
    assert kinds(events) == expected
    placed = [entry.event for entry in entries(events, start=7)]
    done = [item.id for item in placed if isinstance(item, ActionEvent) and item.action is not None]
    assert list(risks(events)) == done
    analysis = events[-1]
    assert isinstance(analysis, SecurityAnalysisEvent)
    assert (analysis.analyzer, analysis.policy, analysis.source, analysis.timestamp) == (
        "model+rules",
        "risky",
        "environment",
        TIMESTAMP,
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
def test_the_highest_risk_counts_and_a_failing_analyzer_rates_high(
    model: str, rules: Analyze, risk: Risk
) -> None:
    tool_call = call("write", arguments=f'{{"path": "a", "security_risk": "{model}"}}')
    events = parse_response(completion(tool_call), TOOLS, assessment(MODEL, ("rules", rules)))
    assert risks(events) == {id_of(7): risk}


def test_a_read_only_tool_has_low_risk_unless_an_analyzer_objects() -> None:
    tools = fake_tools(accept_arguments, "look", read_only=True)
    assert risks(parse_response(completion(call()), tools, assessment())) == {id_of(7): "LOW"}
    strict = assessment(MODEL, ("mine", says("MEDIUM")))
    assert risks(parse_response(completion(call()), tools, strict)) == {id_of(7): "MEDIUM"}


@pytest.mark.parametrize("answer", [completion(words="Hi."), completion(call("fly"))])
def test_a_response_without_valid_actions_is_not_assessed(answer: Completion) -> None:
    events = parse_response(answer, TOOLS, assessment(MODEL))
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
    assessor = assessment(MODEL)
    events = parse_response(answer, TOOLS, assessor)
    assert (
        events
        == parse_response(recorded, TOOLS, assessor)
        == parse_response(answer, dict(TOOLS), assessor)
    )


@given(st.lists(calls, min_size=1, max_size=6), REASONS)
def test_every_call_becomes_an_action_or_an_action_with_an_error(
    made: list[Any], reason: str | None
) -> None:
    events = parse_response(completion(*made, finish_reason=reason), TOOLS)
    actions = [event for event in events if isinstance(event, ActionEvent)]
    errors = [event for event in events if isinstance(event, AgentErrorEvent)]
    assert events == [*actions, *errors]
    assert [event.tool_call for event in actions] == made
    unread = [event.tool_call_id for event in actions if event.action is None]
    assert unread == [error.tool_call_id for error in errors]
    assert all(event.tool_name in TOOLS for event in actions if event.action is not None)


@given(st.lists(calls, min_size=1, max_size=3), REASONS)
def test_events_of_any_response_can_be_stored_and_read_again(
    made: list[Any], reason: str | None
) -> None:
    tools = fake_tools(accept_arguments, "look", "write")
    events = parse_response(completion(*made, finish_reason=reason), tools, assessment(MODEL))
    stored = entries(events)
    assert [entry.event.kind for entry in stored] == kinds(events)
    for entry in stored:
        again = type(entry.event).model_validate_json(entry.event.model_dump_json())
        assert again == entry.event


def test_a_long_name_of_an_unknown_tool_is_quoted_in_part() -> None:
    [_, error] = parse_response(completion(call("f" * 1000, "call_1", GOOD)), TOOLS)
    assert isinstance(error, AgentErrorEvent)
    assert "ff…'. Tools: look, write." in error.error
    assert len(error.error) < 500

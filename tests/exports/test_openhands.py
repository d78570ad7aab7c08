"""What OpenHands is handed: one object for each event, in kinds and fields that it has."""

from pathlib import Path
from typing import Any

import pytest

from events.content import TextContent
from events.control import StuckEvent
from events.entry import entry_from
from events.event import event_from
from events.messages import RecallEvent, SystemPromptEvent
from exports.openhands import openhands_event, openhands_events
from tests.builders import (
    WHEN,
    action,
    agent,
    condensation,
    error,
    failed,
    id_of,
    observation,
    placed,
    prompt,
    tool,
    unknown,
    user,
)

THEIRS = {
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "UserRejectObservation",
    "AgentErrorEvent",
    "CondensationRequest",
    "Condensation",
    "CondensationSummaryEvent",
    "PauseEvent",
    "InterruptEvent",
    "SecurityAnalysisEvent",
    "ConversationStateUpdateEvent",
    "ConversationErrorEvent",
}

RECALL = RecallEvent(
    timestamp=WHEN, recall_type="KNOWLEDGE", query="Why?", skills=("builds",), content="Use hatch."
)


def test_every_event_stays_one_event_of_a_kind_that_they_have() -> None:
    folder = Path(__file__).parents[1] / "golden" / "events"
    events = [entry_from(0, path.read_bytes()).event for path in sorted(folder.glob("*.json"))]
    exported = openhands_events(events)
    assert [one["id"] for one in exported] == [event.id for event in events]
    assert {one["kind"] for one in exported} == THEIRS


@pytest.mark.parametrize(
    ("event", "ours"),
    [
        (action(touches=("file:a",)), {"touches"}),
        (user(message_id="m-1"), {"message_id"}),
        (error(id_of(1)), {"action_id"}),
        (condensation(1, 2), {"forgotten_seqs", "forgotten_size", "summary_size"}),
    ],
    ids=lambda it: getattr(it, "kind", ""),
)
def test_a_field_that_is_ours_alone_stays_here(event: Any, ours: set[str]) -> None:
    assert openhands_event(event).keys() == type(event).model_fields.keys() - ours


def test_what_was_called_up_is_a_message_right_behind_the_users() -> None:
    told = openhands_events(placed([user("Why?"), RECALL, agent()]))[1]
    assert (told["id"], told["kind"], told["source"]) == (id_of(1), "MessageEvent", "environment")
    assert told["llm_message"]["role"] == "user"
    assert [part["text"] for part in told["llm_message"]["content"]] == ["Use hatch."]
    assert told["activated_skills"] == ["builds"]


def test_the_evidence_of_a_circle_is_an_update() -> None:
    found = StuckEvent(timestamp=WHEN, pattern="monologue", first_seq=3, last_seq=5, count=3)
    told = openhands_event(found)
    assert (told["kind"], told["key"]) == ("ConversationStateUpdateEvent", "stuck")
    assert told["value"] == {"pattern": "monologue", "first_seq": 3, "last_seq": 5, "count": 3}


def test_an_event_of_a_newer_writer_is_an_update_with_all_that_it_holds() -> None:
    event = unknown("HookRan", id=id_of(4), exit=1)
    told = openhands_event(event)
    assert (told["id"], told["kind"]) == (id_of(4), "ConversationStateUpdateEvent")
    assert (told["key"], told["value"]) == ("HookRan", event.raw)


def test_a_condensation_without_a_model_names_no_answer_of_one() -> None:
    assert openhands_event(condensation(1, 2))["llm_response_id"] == ""


def test_what_they_require_is_there_where_we_have_nothing() -> None:
    seen = observation(id_of(1)).model_dump() | {
        "observation": {"kind": "TerminalObservation", "content": []}
    }
    assert openhands_event(event_from(seen))["observation"]["command"] is None


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("terminal", ("TerminalTool", "TerminalAction", "TerminalObservation")),
        ("finish", ("FinishTool", "FinishAction", "FinishObservation")),
        ("look", ("MCPToolDefinition", "MCPToolAction", "MCPToolObservation")),
    ],
)
def test_a_tool_is_their_own_or_else_one_of_mcp(name: str, classes: tuple[str, ...]) -> None:
    said = TextContent(text="Be careful.")
    offered = (tool(name, repeatable=True),)
    event = SystemPromptEvent(timestamp=WHEN, system_prompt=said, tools=offered)
    [told] = openhands_event(event)["tools"]
    assert (told["kind"], told["action_type"], told["observation_type"]) == classes
    assert told["annotations"]["readOnlyHint"]


def test_a_tool_of_mcp_brings_its_name_and_parameters_along() -> None:
    told = openhands_event(prompt())["tools"][0]["mcp_tool"]
    assert (told["name"], told["description"]) == ("look", "look")
    assert told["inputSchema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("auth", {"kind": "auth", "retryable": False, "user_action": "settings"}),
        ("max_budget", {"kind": "quota", "retryable": False, "user_action": "settings"}),
        ("overloaded", {"kind": "transient", "retryable": True, "user_action": "retry"}),
        ("of a newer writer", {"kind": "unknown", "retryable": False, "user_action": "none"}),
    ],
)
def test_a_failure_is_classified_in_their_terms(code: str, failure: dict[str, Any]) -> None:
    told = openhands_event(failed(code))
    assert (told["code"], told["classification"]) == (code, failure)


def test_an_error_that_the_agent_can_mend_is_classified_as_such() -> None:
    wrong = error(id_of(1)).model_copy(update={"classification": "bad_arguments"})
    assert openhands_event(wrong)["classification"]["kind"] == "agent_action"

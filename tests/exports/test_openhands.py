"""OpenHands events: one object for each event, in kinds and fields that it has."""

from pathlib import Path
from typing import Any

import pytest

from perdure.events.actions import IPythonRunCellAction
from perdure.events.content import TextContent
from perdure.events.control import StuckEvent
from perdure.events.entry import parse_entry
from perdure.events.event import parse_event
from perdure.events.messages import RecallEvent, SystemPromptEvent
from perdure.events.observations import IPythonRunCellObservation
from perdure.exports.openhands import openhands_event
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    condensation,
    error,
    error_event,
    id_of,
    observation,
    prompt,
    tool,
    unknown_event,
    user,
    with_ids,
)

OPENHANDS_KINDS = {
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
    timestamp=TIMESTAMP,
    recall_type="KNOWLEDGE",
    query="Why?",
    skills=("builds",),
    content="Use hatch.",
)


def test_every_event_stays_one_event_of_an_openhands_kind() -> None:
    folder = Path(__file__).parents[1] / "golden" / "events"
    events = [parse_entry(0, path.read_bytes()).event for path in sorted(folder.glob("*.json"))]
    exported = [openhands_event(event) for event in events]
    assert [item["id"] for item in exported] == [event.id for event in events]
    assert {item["kind"] for item in exported} == OPENHANDS_KINDS


@pytest.mark.parametrize(
    ("event", "ours"),
    [
        (action(touches=("file:a",)), {"touches"}),
        (
            user(message_id="m-1"),
            {"message_id", "truncated", "actor", "traceparent", "reopen", "run"},
        ),
        (error(id_of(1)), {"action_id", "state"}),
        (condensation(1, 2), {"forgotten_seqs", "forgotten_size", "summary_size"}),
    ],
    ids=lambda it: getattr(it, "kind", ""),
)
def test_own_fields_are_not_exported(event: Any, ours: set[str]) -> None:
    assert openhands_event(event).keys() == type(event).model_fields.keys() - ours


def test_a_recall_is_a_message_right_behind_the_users() -> None:
    fields = openhands_event(with_ids([user("Why?"), RECALL, agent()])[1])
    assert (fields["id"], fields["kind"], fields["source"]) == (
        id_of(1),
        "MessageEvent",
        "environment",
    )
    assert fields["llm_message"]["role"] == "user"
    assert [part["text"] for part in fields["llm_message"]["content"]] == ["Use hatch."]
    assert fields["activated_skills"] == ["builds"]


def test_a_stuck_event_is_an_update() -> None:
    event = StuckEvent(timestamp=TIMESTAMP, pattern="monologue", first_seq=3, last_seq=5, count=3)
    fields = openhands_event(event)
    assert (fields["kind"], fields["key"]) == ("ConversationStateUpdateEvent", "stuck")
    assert fields["value"] == {"pattern": "monologue", "first_seq": 3, "last_seq": 5, "count": 3}


def test_a_newer_versions_event_is_an_update_with_all_its_fields() -> None:
    event = unknown_event("HookRan", id=id_of(4), exit=1)
    fields = openhands_event(event)
    assert (fields["id"], fields["kind"]) == (id_of(4), "ConversationStateUpdateEvent")
    assert (fields["key"], fields["value"]) == ("HookRan", event.raw)


def test_a_condensation_without_a_model_has_an_empty_response_id() -> None:
    assert openhands_event(condensation(1, 2))["llm_response_id"] == ""


def test_required_openhands_fields_are_there_without_a_value() -> None:
    seen = observation(id_of(1)).model_dump() | {
        "observation": {"kind": "TerminalObservation", "content": []}
    }
    assert openhands_event(parse_event(seen))["observation"]["command"] is None


def test_a_cell_is_a_call_of_an_mcp_tool() -> None:
    cell = IPythonRunCellAction(code="1 + 1", timeout=5)
    call = action("ipython").model_copy(update={"action": cell})
    data = {"code": "1 + 1", "timeout": 5.0, "reset": False}
    assert openhands_event(call)["action"] == {"kind": "MCPToolAction", "data": data}
    shown = IPythonRunCellObservation(content=(TextContent(text="2"),), execution_count=1)
    event = observation(id_of(1)).model_copy(update={"observation": shown, "tool_name": "ipython"})
    assert openhands_event(event)["observation"] == {
        "kind": "MCPToolObservation",
        "content": [{"type": "text", "text": "2", "cache_prompt": False}],
        "is_error": False,
        "tool_name": "ipython",
    }


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("terminal", ("TerminalTool", "TerminalAction", "TerminalObservation")),
        ("finish", ("FinishTool", "FinishAction", "FinishObservation")),
        ("look", ("MCPToolDefinition", "MCPToolAction", "MCPToolObservation")),
    ],
)
def test_a_tool_is_an_openhands_tool_or_else_an_mcp_tool(
    name: str, classes: tuple[str, ...]
) -> None:
    instructions = TextContent(text="Be careful.")
    offered = (tool(name, repeatable=True),)
    event = SystemPromptEvent(timestamp=TIMESTAMP, system_prompt=instructions, tools=offered)
    [sdk_tool] = openhands_event(event)["tools"]
    assert (sdk_tool["kind"], sdk_tool["action_type"], sdk_tool["observation_type"]) == classes
    assert sdk_tool["annotations"]["readOnlyHint"]


def test_an_mcp_tool_has_its_name_and_parameters() -> None:
    definition = openhands_event(prompt())["tools"][0]["mcp_tool"]
    assert (definition["name"], definition["description"]) == ("look", "look")
    assert definition["inputSchema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("auth", {"kind": "auth", "retryable": False, "user_action": "settings"}),
        ("max_budget", {"kind": "quota", "retryable": False, "user_action": "settings"}),
        ("overloaded", {"kind": "transient", "retryable": True, "user_action": "retry"}),
        ("of a newer writer", {"kind": "unknown", "retryable": False, "user_action": "none"}),
    ],
)
def test_a_failure_has_its_openhands_kind(code: str, failure: dict[str, Any]) -> None:
    fields = openhands_event(error_event(code))
    assert (fields["code"], fields["classification"]) == (code, failure)


def test_an_error_that_the_agent_can_mend_is_classified_as_such() -> None:
    wrong = error(id_of(1)).model_copy(update={"classification": "bad_arguments"})
    assert openhands_event(wrong)["classification"]["kind"] == "agent_action"

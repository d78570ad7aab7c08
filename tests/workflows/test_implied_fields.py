"""Payloads that lack what their surroundings imply, as a later version writes them, are read."""

import json
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload

from perdure.agent.loop.start import Start
from perdure.agent.loop.steps import Task
from perdure.agent.loop.stuck import RecentEvent
from perdure.client import workflow
from perdure.client.conversation import Conversation
from perdure.events.summary import USUAL_SOURCES, EventSummary
from perdure.temporal.converter import CappedJSON
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.test_deploy import runs

to_payload = CappedJSON.to_payload


def shorten(value: Any, fields: Any) -> Any:
    """Return the JSON of a value without what is implied."""
    if isinstance(value, Task):
        return {key: fields[key] for key in fields if key not in ("conversation_id", "user_id")}
    if isinstance(value, list) and value and isinstance(value[0], EventSummary):
        for event in fields:
            if event["source"] == USUAL_SOURCES.get(event["kind"]):
                del event["source"]
    if isinstance(value, Start) and value.state is not None:
        events = [list(event.values()) for event in fields["state"]["recent_events"]]
        return fields | {"state": fields["state"] | {"recent_events": events}}
    return fields


def write_short(converter: CappedJSON, value: Any) -> Payload | None:
    payload = to_payload(converter, value)
    if payload is not None:
        payload.data = json.dumps(shorten(value, json.loads(payload.data))).encode()
    return payload


@pytest.mark.parametrize("user", ["local", "ann"])
async def test_a_conversation_with_short_payloads_goes_on_in_a_second_run(
    harness: ConversationHarness, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CappedJSON, "to_payload", write_short)
    monkeypatch.setattr(workflow, "MAX_RUN_EVENTS", 50)
    calls = [tool_call_answer(("add", {"a": number, "b": 1})) for number in range(6)]
    spec = harness.spec(*calls, text_answer("Done."))
    client = harness.client.as_user(user)
    async with harness.worker():
        talk = await client.start("Add.", spec)
        state = await talk.wait_for_turn()
        assert (state.status, state.iterations) == ("finished", 7)
        assert {(it.kind, it.source) for it in state.recent_events} == {
            *USUAL_SOURCES.items(),
            ("MessageEvent", "agent"),
        }
        assert len(await runs(talk)) == 2
        inputs = await read_inputs(talk)
    assert {activity for activity, _ in inputs} >= {"llm.chat", "tool.call"}
    assert not [fields for _, fields in inputs if "conversation_id" in fields]


async def read_inputs(talk: Conversation) -> list[tuple[str, dict[str, Any]]]:
    """Return the activities of the last run, each with the fields of its task."""
    events = (await talk.handle.fetch_history()).events
    scheduled = [event.activity_task_scheduled_event_attributes for event in events]
    return [
        (one.activity_type.name, json.loads(one.input.payloads[0].data))
        for one in scheduled
        if one.activity_type.name
    ]


def test_recent_events_are_read_from_objects_and_from_lists() -> None:
    event = RecentEvent(seq=3, kind="ActionEvent", source="agent", fingerprint="f", tool_name="add")
    fields = event.model_dump(mode="json")
    assert RecentEvent.model_validate(fields) == event
    assert RecentEvent.model_validate_json(json.dumps(list(fields.values()))) == event
    assert RecentEvent.model_validate(list(fields.values())[:4]).tool_name is None

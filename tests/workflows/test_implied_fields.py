"""Payloads leave out what their surroundings imply; versions before wrote it, which is read."""

import json
from typing import Any

import pytest
import temporalio.workflow
from temporalio.api.common.v1 import Payload

from perdure.agent.loop.start import Start
from perdure.agent.loop.steps import Task
from perdure.agent.loop.stuck import RecentEvent
from perdure.client import workflow
from perdure.client.conversation import Conversation
from perdure.events.summary import USUAL_SOURCES, EventSummary
from perdure.temporal.converter import CappedJSON
from perdure.temporal.names import DEFAULT_USER, conversation_id_of, owner_of
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.test_deploy import runs

to_payload = CappedJSON.to_payload


def write_as_before(converter: CappedJSON, value: Any) -> Payload | None:
    payload = to_payload(converter, value)
    if payload is not None:
        payload.data = json.dumps(add_implied_fields(value, json.loads(payload.data))).encode()
    return payload


def add_implied_fields(value: Any, fields: Any) -> Any:
    """Return the JSON of a value with what is implied."""
    if isinstance(value, Task):
        workflow_id = temporalio.workflow.info().workflow_id
        user_id = owner_of(workflow_id) or DEFAULT_USER
        ids = {"conversation_id": conversation_id_of(workflow_id), "user_id": user_id}
        return ids | fields
    if isinstance(value, list) and value and isinstance(value[0], EventSummary):
        return [{"source": event.source} | fields[nth] for nth, event in enumerate(value)]
    if isinstance(value, Start) and value.state is not None:
        events = [dict(event) for event in value.state.recent_events]
        return fields | {"state": fields["state"] | {"recent_events": events}}
    return fields


@pytest.mark.parametrize("version", ["this", "before"])
@pytest.mark.parametrize("user", ["local", "ann"])
async def test_a_conversation_goes_on_in_a_second_run_with_the_payloads_of_a_version(
    harness: ConversationHarness, user: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version == "before":
        monkeypatch.setattr(CappedJSON, "to_payload", write_as_before)
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
        start, tasks, summaries = await read_payloads(talk)
    is_before = version == "before"
    assert {activity for activity, _ in tasks} >= {"llm.chat", "tool.call"}
    assert {"conversation_id" in task for _, task in tasks} == {is_before}
    usual = [it for it in summaries if it["kind"] in USUAL_SOURCES]
    assert {"source" in summary for summary in usual} == {is_before}
    recent_events = start["state"]["recent_events"]
    assert {type(event) for event in recent_events} == {dict if is_before else list}


async def read_payloads(talk: Conversation) -> tuple[Any, list[tuple[str, Any]], list[Any]]:
    """Return the input of the last run, its activities with their tasks, and their summaries."""
    first, *events = (await talk.handle.fetch_history()).events
    scheduled = [event.activity_task_scheduled_event_attributes for event in events]
    completed = [event.activity_task_completed_event_attributes for event in events]
    results = [json.loads(it.result.payloads[0].data) for it in completed if it.result.payloads]
    return (
        json.loads(first.workflow_execution_started_event_attributes.input.payloads[0].data),
        [
            (one.activity_type.name, json.loads(one.input.payloads[0].data))
            for one in scheduled
            if one.activity_type.name
        ],
        [summary for result in results if isinstance(result, list) for summary in result],
    )


@pytest.mark.parametrize("tool_name", ["add", None])
@pytest.mark.parametrize("is_error", [False, True])
def test_recent_events_are_read_from_lists_and_from_objects(
    tool_name: str | None, is_error: bool
) -> None:
    event = RecentEvent(
        seq=3,
        kind="AgentErrorEvent",
        source="agent",
        fingerprint="f",
        tool_name=tool_name,
        is_error=is_error,
    )
    assert RecentEvent.model_validate_json(json.dumps(dict(event))) == event
    assert RecentEvent.model_validate_json(event.model_dump_json()) == event
    assert RecentEvent.model_validate(event.model_dump()) == event
    assert len(json.loads(event.model_dump_json())) == (6 if is_error else 5 if tool_name else 4)


def test_a_summary_has_its_source_unless_it_is_the_usual_one_of_its_kind() -> None:
    fields = {"seq": 3, "fingerprint": "f", "tokens": 1, "sha": "s"}
    for kind, source, is_usual in (
        ("ActionEvent", "agent", True),
        ("ObservationEvent", "environment", True),
        ("ObservationEvent", "user", False),
        ("MessageEvent", "agent", False),
    ):
        summary = EventSummary.model_validate({**fields, "kind": kind, "source": source})
        written = summary.model_dump_json(exclude_none=True)
        assert ("source" not in json.loads(written)) == is_usual
        assert EventSummary.model_validate_json(written) == summary

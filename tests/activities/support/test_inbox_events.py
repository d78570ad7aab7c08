"""Each item of the inbox becomes one event."""

from typing import Any

import pytest

from perdure.activities.support.inbox_events import to_event
from perdure.agent.loop import inbox
from perdure.agent.spec import Agent
from tests.builders import TIMESTAMP

STUCK = {"pattern": "repeats", "first_seq": 3, "last_seq": 8, "count": 3}
UPDATE = "ConversationStateUpdateEvent"


@pytest.mark.parametrize(
    ("item", "kind", "source", "fields"),
    [
        (inbox.PauseRequest(), "PauseEvent", "user", {}),
        (inbox.InterruptRequest(), "InterruptEvent", "user", {}),
        (inbox.ResumeRequest(), UPDATE, "user", {"key": "status", "value": "resumed"}),
        (inbox.CloseRequest(), UPDATE, "user", {"key": "status", "value": "closed"}),
        (inbox.CondenseRequest(), "CondensationRequest", "user", {}),
        (inbox.Approval(actions=(3, 4)), UPDATE, "user", {"key": "confirmed", "value": [3, 4]}),
        (
            inbox.ConfirmationRequest(actions=(3,)),
            UPDATE,
            "environment",
            {"key": "status", "value": "waiting_for_confirmation"},
        ),
        (inbox.StateNote(key="title", value="T"), UPDATE, "user", {"key": "title", "value": "T"}),
        (
            inbox.TurnFailure(code="auth", detail="No key."),
            "ConversationErrorEvent",
            "environment",
            {"code": "auth", "detail": "No key."},
        ),
        (inbox.RefusedInput(detail="No."), UPDATE, "environment", {"key": "refused"}),
        (
            inbox.WebhookFailure(
                webhook_id="1f", event="turn_end", event_id="e", reason="It said 500."
            ),
            UPDATE,
            "environment",
            {"key": "webhook_failed"},
        ),
        (
            inbox.AgentWarning(topic="stuck", text="Try something else."),
            "MessageEvent",
            "environment",
            {"sender": "stuck"},
        ),
        (inbox.StuckFinding(**STUCK), "StuckEvent", "environment", STUCK),
    ],
)
def test_an_item_becomes_its_event(
    item: inbox.InboxItem, kind: str, source: str, fields: dict[str, Any]
) -> None:
    event = to_event(item, TIMESTAMP, Agent(model="m")).model_dump(mode="json")
    assert (event["kind"], event["source"], event["timestamp"]) == (kind, source, TIMESTAMP)
    assert {name: event[name] for name in fields} == fields


def test_a_change_of_the_spec_records_the_whole_spec() -> None:
    event = to_event(inbox.SpecChange(changes={"parallel": 2}), TIMESTAMP, Agent(model="m"))
    value = event.model_dump(mode="json")["value"]
    assert (value["parallel"], value["model"]["name"]) == (2, "m")

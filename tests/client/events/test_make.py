"""Programs make events: the seed's examples run, with an id and a time where it gives none."""

import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from perdure import (
    ActionEvent,
    Invalid,
    Message,
    MessageEvent,
    ObservationEvent,
    PauseEvent,
    TextContent,
    make_event,
)
from perdure.events.actions import MCPToolAction
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.event import dump_event, parse_event
from tests.client.events.seed_examples import make_seed_condensation, make_seed_events

HELLO = Message(role="user", content=(TextContent(text="帮我创建一个 Python 文件"),))


def test_the_seeds_list_of_events_is_made() -> None:
    message, action, observation = make_seed_events()
    assert isinstance(message, MessageEvent)
    assert message.timestamp == "2025-01-15T10:00:00.000000"
    assert isinstance(action, ActionEvent)
    assert action.action == MCPToolAction(data={"path": "test.py", "content": "..."})
    assert json.loads(action.tool_call.arguments) == {"path": "test.py", "content": "..."}
    assert isinstance(observation, ObservationEvent)
    assert observation.action_id == action.id == "evt-002"
    assert observation.observation.content == (TextContent(text='{"success": true}'),)


def test_an_event_without_an_id_and_a_time_gets_them() -> None:
    before = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
    first, second = (make_event(MessageEvent, source="user", llm_message=HELLO) for _ in range(2))
    after = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
    assert before <= first.timestamp <= second.timestamp <= after
    assert first.id != second.id
    assert UUID(first.id).version == 4
    assert (first.activated_skills, first.extended_content) == ((), ())


def test_the_seeds_spellings_are_accepted() -> None:
    event = make_event(
        MessageEvent,
        source="user",
        llm_message={"role": "user", "content": "Go."},
        activated_microagents=["files"],
        extended_content=[TextContent(text="More.")],
        timestamp=datetime(2025, 1, 15, 12, tzinfo=timezone(timedelta(hours=2))),
    )
    assert event.activated_skills == ("files",)
    assert event.timestamp == "2025-01-15T10:00:00.000000"


def test_what_is_made_is_written_and_read_as_any_event() -> None:
    for event in [*make_seed_events(), make_seed_condensation(), make_event(PauseEvent)]:
        assert parse_event(json.loads(json.dumps(dump_event(event)))) == event


def test_a_misspelt_field_is_an_error_at_once() -> None:
    with pytest.raises(Invalid, match=r"This is no MessageEvent: .*conent"):
        make_event(MessageEvent, source="user", llm_message=HELLO, conent="...")


def test_an_event_cannot_be_changed() -> None:
    event = make_event(PauseEvent)
    with pytest.raises(ValueError, match="frozen"):
        event.timestamp = "2025-01-15T10:00:00.000000"  # type: ignore[misc]

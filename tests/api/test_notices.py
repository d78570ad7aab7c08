"""What clients are told beside the events themselves."""

from perdure.agent.loop.start import ConversationStatus, build_status
from perdure.api.frames import FRAME
from perdure.api.notices import notice_of_event, notice_of_status
from perdure.events.event import AnyEvent
from tests.builders import (
    EVENT_OF_EACH_KIND,
    SUSPENSION,
    apply_events,
    opened_state,
    state_update,
    user,
)


def status_after(*events: AnyEvent) -> ConversationStatus:
    return build_status("0-1", apply_events(opened_state(), user(), *events))


def test_a_suspension_is_told_by_its_code() -> None:
    [notice] = filter(None, map(notice_of_event, EVENT_OF_EACH_KIND))
    sent = notice.model_dump()
    assert {name: sent[name] for name in ("status_update", "type", "id")} == {
        "status_update": True,
        "type": "error",
        "id": "AGENT_ERROR$TOO_MANY_CONVERSATIONS",
    }
    assert "Send a message" in sent["message"]
    assert FRAME.validate_json(notice.model_dump_json()) == notice


def test_a_client_that_comes_later_is_told_once() -> None:
    working, suspended = status_after(), status_after(SUSPENSION)
    titled = status_after(SUSPENSION, state_update("title", "Doors"))
    assert notice_of_status(suspended) == notice_of_event(SUSPENSION)
    assert notice_of_status(suspended, working) == notice_of_event(SUSPENSION)
    assert notice_of_status(titled, suspended) is None
    assert notice_of_status(working) is notice_of_status(working, suspended) is None
    assert notice_of_status(status_after(SUSPENSION, user())) is None

"""Frames are read as they were made, whatever they leave out."""

import pytest

from perdure.agent.loop.start import ConversationStatus
from perdure.api.frames import Frame, NoticeFrame, StatusFrame
from perdure.events.status import Loading, ModelRetry, StatusDetail
from perdure.gateway.following.ready_frame import make_ready

DETAILS = [
    StatusDetail(retry=ModelRetry(kind="unknown", attempt=2)),
    StatusDetail(retry=ModelRetry(model=None, kind="unknown", attempt=2, next_at=None)),
    StatusDetail(loading=(Loading(what="restore"),)),
]


def status_frame(detail: StatusDetail) -> StatusFrame:
    status = ConversationStatus(conversation_id="c", status="running", detail=detail)
    return StatusFrame(status=status)


@pytest.mark.parametrize(
    "frame",
    [*map(status_frame, DETAILS), NoticeFrame(type="info", id="STATUS$X", message="So.")],
    ids=lambda frame: frame.kind,
)
def test_a_frame_is_read_as_it_was_made(frame: Frame) -> None:
    assert make_ready(frame).frame == frame

"""The calls that a program is told to answer are those that wait for a person."""

from perdure.agent.loop.start import ConversationStatus, PendingCall
from perdure.gateway.mcp.standing import WaitingCall, list_waiting


def make_call(number: int, *, asks: bool) -> PendingCall:
    name = f"call-{number}"
    return PendingCall(seq=number, tool_name="add", tool_call_id=name, risk="LOW", asks=asks)


def test_calls_at_work_are_not_pending() -> None:
    calls = (make_call(3, asks=False), make_call(4, asks=True))
    status = ConversationStatus(
        conversation_id="c", status="waiting_for_confirmation", pending=calls
    )
    assert list_waiting(status) == [WaitingCall(call_id="call-4", tool="add", risk="LOW")]

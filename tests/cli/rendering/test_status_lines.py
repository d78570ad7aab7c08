"""The lines of `perdure status`."""

import pytest

from perdure.agent.loop.start import build_status
from perdure.agent.loop.state import State
from perdure.agent.loop.status import Status
from perdure.cli.rendering.status_lines import status_lines
from perdure.events.usage import Usage


def test_the_status_lines_have_tokens_by_kind_and_cost_by_model() -> None:
    whole = Usage(
        prompt_tokens=12345,
        completion_tokens=67,
        cached_tokens=1000,
        cache_write_tokens=20,
        reasoning_tokens=30,
        cost=0.25,
    )
    part = Usage(prompt_tokens=5, completion_tokens=6, cost=0.05)
    status = build_status("c", State(title="Sums")).model_copy(
        update={"spent": whole, "spent_on": {"large": whole, "small": part}}
    )
    lines = list(status_lines(status))
    tokens = "12,345 in (1,000 from the cache, 20 to the cache), 67 out (30 of reasoning)"
    assert "title        Sums" in lines
    assert f"tokens       {tokens}" in lines
    assert "cost         $0.2500" in lines
    assert f"             large: {tokens}, $0.2500" in lines
    assert "             small: 5 in, 6 out, $0.0500" in lines


@pytest.mark.parametrize(
    ("status", "wait"),
    [
        ("finished", "your next message"),
        ("paused", "`perdure resume c`"),
        ("error", "a message, or `perdure resume c`"),
        ("waiting_for_confirmation", "you, to allow or refuse 0 calls: `perdure approve c`, or"),
    ],
)
def test_a_conversation_at_rest_says_what_it_waits_for(status: Status, wait: str) -> None:
    lines = status_lines(build_status("c", State(status=status, next_seq=9)))
    [line] = [line for line in lines if line.startswith("waits for ")]
    assert line.startswith(f"waits for    {wait}")


def test_a_conversation_at_work_waits_for_nobody_and_its_trouble_names_its_commands() -> None:
    status = build_status("c", State(status="running", next_seq=9), waiting=1)
    slow = status.model_copy(update={"trouble": "It is slow. `perdure interrupt` stops it."})
    lines = list(status_lines(slow))
    assert not [line for line in lines if line.startswith("waits for")]
    assert "trouble      It is slow. `perdure interrupt c` stops it." in lines
    assert "unrecorded   1 request not in the log yet" in lines


def test_a_conversation_without_events_waits_for_a_worker() -> None:
    assert "waits for    a worker that takes it up" in status_lines(build_status("c", State()))

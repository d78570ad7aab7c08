"""The lines of `perdure status`."""

from perdure.agent.loop.start import build_status
from perdure.agent.loop.state import State
from perdure.cli.follow import status_lines
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

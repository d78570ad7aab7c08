"""Invalid specs are refused, as a workflow with one would fail midway."""

from typing import Any

import pytest
from pydantic import ValidationError

from perdure.agent.spec import Agent

MODEL = {"name": "small"}


@pytest.mark.parametrize(
    "fields",
    [
        {"limits": {"deadline": "2026-99-99T99:99:99.000000"}},
        {"limits": {"max_budget": float("nan")}},
        {"limits": {"max_iterations": -1}},
        {"model": {**MODEL, "timeout": float("inf")}},
        {"model": {**MODEL, "timeout": 1e300}},
        {"model": {**MODEL, "timeout": 0}},
        {"model": {"name": ""}},
        {"model": {"name": "m" * 5000}},
        {"fallbacks": [{**MODEL, "timeout": -5}]},
        {"tool_timeout": 1e18},
        {"heartbeat_timeout": 0},
        {"idle_timeout": float("nan")},
        {"mcp": [{"name": "files", "start_timeout": 0}]},
        {"stuck": {"window": 10**9}},
        {"condenser": {"kind": "amortized", "max_size": -1}},
        {"tags": ["t" * 3000]},
        {"tags": [""]},
        {"fallbacks": [{**MODEL, "api_base": "x" * 30_000}]},
    ],
)
def test_what_no_clock_no_counter_and_no_state_has_room_for_is_refused(
    fields: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError):
        Agent.model_validate({"model": MODEL, **fields})


def test_a_prompt_may_be_longer_than_all_the_rest() -> None:
    spec = Agent.model_validate({"model": MODEL, "system_prompt": "p" * 100_000})
    assert spec.system_prompt is not None


@pytest.mark.parametrize("field", ["system_prompt", "instructions", "code"])
def test_half_a_surrogate_pair_is_refused(field: str) -> None:
    with pytest.raises(ValidationError, match="half a surrogate pair"):
        Agent.model_validate({"model": MODEL, field: "half of \ud800 a pair"})

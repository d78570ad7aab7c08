"""Random specs and changes, small enough that every field matters."""

from typing import Any

from hypothesis import strategies as st

from perdure.agent.policies import Confirmation, Limits, StuckThresholds
from perdure.agent.spec import ModelSpec, SummaryCondenser
from tests.builders import SPEC

CHANGES: list[dict[str, Any]] = [
    {"confirmation": {"policy": "never"}},
    {"confirmation": {"policy": "always"}},
    {"confirmation": {"policy": "risky", "threshold": "LOW"}},
    {"limits": {"max_iterations": 4, "max_budget": 9.0, "max_tokens": None, "max_events": 400}},
    {"condenser": {"kind": "none"}},
    {"parallel": 1},
]

specs = st.builds(
    lambda limits, **fields: SPEC.model_copy(update={"limits": limits, **fields}),
    limits=st.builds(
        Limits,
        max_iterations=st.sampled_from([4, 4, 3, 2, 1, 0]),
        max_budget=st.sampled_from([None, 2.0]),
        max_tokens=st.sampled_from([None, 500]),
        max_events=st.sampled_from([None, 25]),
    ),
    confirmation=st.builds(
        Confirmation,
        policy=st.sampled_from(["never", "always", "risky"]),
        threshold=st.sampled_from(["LOW", "MEDIUM", "HIGH"]),
        confirm_unknown=st.booleans(),
    ),
    condenser=st.just(SummaryCondenser(max_size=8)),
    stuck=st.just(StuckThresholds(action_observation=2, action_error=1, monologue=2)),
    parallel=st.integers(1, 3),
    title_model=st.sampled_from([None, ModelSpec(name="small")]),
)

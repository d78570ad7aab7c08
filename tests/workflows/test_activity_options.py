"""Timeouts and retries of steps."""

from datetime import timedelta

from perdure.agent.extensions import McpServer
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Prepare, Think
from perdure.workflows.activity_options import activity_options
from tests.builders import SPEC, action, apply_events, opened_state, user


def test_the_timeout_of_prepare_includes_the_start_of_servers() -> None:
    slow = McpServer(name="slow", command="slow", start_timeout=300)
    spec = SPEC.model_copy(update={"mcp": (slow,)})
    timeout = activity_options(Prepare(spec_seq=1), State(), spec)["start_to_close_timeout"]
    assert timeout is not None
    assert timeout > timedelta(minutes=5)


def test_the_steps_of_a_sample_may_be_silent_for_longer() -> None:
    def timeout(seconds: float, is_sample: bool) -> float:
        spec = SPEC.model_copy(update={"heartbeat_timeout": seconds})
        step = Think(spec_seq=1, prompt_seq=2, response_index=0)
        timeout = activity_options(step, State(), spec, is_sample)["heartbeat_timeout"]
        assert timeout is not None
        return timeout.total_seconds()

    assert (timeout(2, is_sample=False), timeout(2, is_sample=True)) == (2, 5)
    assert (timeout(60, is_sample=False), timeout(60, is_sample=True)) == (60, 60)


def test_only_repeatable_calls_are_retried_and_not_for_ever() -> None:
    state = apply_events(opened_state(), user(), action("look"))

    def attempts(repeatable: bool) -> int:
        step = Act(action_seq=4, spec_seq=1, repeatable=repeatable)
        policy = activity_options(step, state, SPEC)["retry_policy"]
        assert policy is not None
        return policy.maximum_attempts

    assert attempts(repeatable=False) == 1
    assert 1 < attempts(repeatable=True) < 100

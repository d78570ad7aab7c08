"""Timeouts and retries of steps."""

from datetime import timedelta

from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Prepare, Think
from perdure.agent.spec import McpServer
from perdure.events.actions import TerminalAction
from perdure.workflows.activity_options import activity_options
from tests.builders import SPEC, action, apply_events, opened_state, user


def test_the_timeout_of_prepare_includes_the_start_of_servers() -> None:
    slow = McpServer(name="slow", command="slow", start_timeout=300)
    spec = SPEC.model_copy(update={"mcp": (slow,)})
    timeout = activity_options(Prepare(spec_seq=1), State(), spec)["start_to_close_timeout"]
    assert timeout is not None
    assert timeout > timedelta(minutes=5)


def test_only_repeatable_calls_are_retried_and_not_for_ever() -> None:
    state = apply_events(opened_state(), user(), action("look"))

    def attempts(repeatable: bool) -> int:
        step = Act(action_seq=4, spec_seq=1, repeatable=repeatable)
        policy = activity_options(step, state, SPEC)["retry_policy"]
        assert policy is not None
        return policy.maximum_attempts

    assert attempts(repeatable=False) == 1
    assert 1 < attempts(repeatable=True) < 100


def test_the_summary_of_a_step_fits_into_temporals_limit() -> None:
    model = SPEC.model.model_copy(update={"name": "ж" * 255})
    spec = SPEC.model_copy(update={"model": model})
    summary = activity_options(Think(spec_seq=1), State(), spec)["summary"]
    assert summary is not None
    assert len(summary.encode()) < 400


def test_an_operator_sees_the_command_beside_its_step() -> None:
    listing = action("terminal").model_copy(update={"action": TerminalAction(command="ls -la")})
    state = apply_events(opened_state(), user(), listing, action("look", "call_2"))
    summaries = [
        activity_options(Act(action_seq=seq, spec_seq=1, repeatable=False), state, SPEC)["summary"]
        for seq in (4, 5)
    ]
    assert summaries == ["terminal: ls -la", "look"]

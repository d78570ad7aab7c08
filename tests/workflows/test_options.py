"""How patient each step is."""

from datetime import timedelta

from agent.spec import McpServer
from agent.state import State
from agent.steps import Act, Prepare, Think
from events.actions import TerminalAction
from tests.builders import SPEC, action, after, opening, user
from workflows.options import options


def test_servers_get_the_time_that_they_need_to_start() -> None:
    slow = McpServer(name="slow", command="slow", start_timeout=300)
    spec = SPEC.model_copy(update={"mcp": (slow,)})
    timeout = options(Prepare(spec=1), State(), spec)["start_to_close_timeout"]
    assert timeout is not None
    assert timeout > timedelta(minutes=5)


def test_a_call_is_made_again_only_where_it_can_be_and_not_for_ever() -> None:
    state = after(opening(), user(), action("look"))

    def attempts(repeatable: bool) -> int:
        step = Act(action=4, spec=1, repeatable=repeatable)
        policy = options(step, state, SPEC)["retry_policy"]
        assert policy is not None
        return policy.maximum_attempts

    assert attempts(repeatable=False) == 1
    assert 1 < attempts(repeatable=True) < 100


def test_what_stands_beside_a_step_is_short_enough_for_temporal() -> None:
    model = SPEC.model.model_copy(update={"name": "ж" * 255})
    spec = SPEC.model_copy(update={"model": model})
    summary = options(Think(spec=1), State(), spec)["summary"]
    assert summary is not None
    assert len(summary.encode()) < 400


def test_an_operator_sees_the_command_beside_its_step() -> None:
    listing = action("terminal").model_copy(update={"action": TerminalAction(command="ls -la")})
    state = after(opening(), user(), listing, action("look", "call_2"))
    summaries = [
        options(Act(action=seq, spec=1, repeatable=False), state, SPEC)["summary"] for seq in (4, 5)
    ]
    assert summaries == ["terminal: ls -la", "look"]

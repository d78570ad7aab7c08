"""The line that an operator reads beside a step in the Temporal UI."""

import pytest

from perdure.agent.extensions import McpServer
from perdure.agent.loop.inbox import PauseRequest, UserMessage
from perdure.agent.loop.state import State, seconds_until_end
from perdure.agent.loop.step_summary import summarize_step
from perdure.agent.loop.steps import (
    Act,
    GenerateTitle,
    Open,
    Prepare,
    Record,
    Refusal,
    ResolveLostCall,
    SaveState,
    Step,
    Think,
)
from perdure.agent.spec import Agent
from perdure.events.actions import TerminalAction
from tests.builders import SPEC, action, apply_events, opened_state, user

MESSAGE = UserMessage(text="Add up\nthese numbers.")
LISTING = action("terminal").model_copy(update={"action": TerminalAction(command="ls -la")})
CALLS = apply_events(opened_state(), user(), LISTING, action("look", "call_2"))
SERVER = McpServer(name="clock", command="clock")


@pytest.mark.parametrize(
    ("step", "summary"),
    [
        (Open(spec=SPEC), "begin"),
        (Open(), "read the log"),
        (Record(items=(MESSAGE, PauseRequest())), "message: Add up these numbers., pause"),
        (
            Record(items=(), refusal=Refusal(action_seqs=(3,), reason="interrupted")),
            "rejection",
        ),
        (Act(action_seq=4, spec_seq=1, repeatable=False), "terminal: ls -la"),
        (Act(action_seq=5, spec_seq=1, repeatable=False), "look"),
        (ResolveLostCall(action_seq=9, detail="lost"), "call of event 9"),
        (SaveState(state=State(status="finished", next_seq=7)), "finished · 7 events"),
    ],
)
def test_a_step_is_summarized_by_what_it_does(step: Step | Open, summary: str) -> None:
    assert summarize_step(step, CALLS, SPEC) == summary


def test_a_step_of_the_model_names_the_model() -> None:
    spec = Agent(model="openai/gpt-5")
    assert summarize_step(Think(spec_seq=1), CALLS, spec) == f"gpt-5 · {CALLS.view_events} events"
    assert summarize_step(GenerateTitle(spec_seq=1, message_seq=2), CALLS, spec) == "gpt-5 · title"


def test_the_tools_and_servers_of_an_agent_are_counted() -> None:
    spec = Agent(model="m", tools=("terminal",), mcp=(SERVER,))
    assert summarize_step(Prepare(spec_seq=1), State(), spec) == "1 tool, 1 MCP server"
    spec = Agent(model="m", tools=("terminal", "think"))
    assert summarize_step(Prepare(spec_seq=1), State(), spec) == "2 tools"


@pytest.mark.parametrize(
    "step", [Think(spec_seq=1), Record(items=(UserMessage(text="ж" * 50_000),))], ids=type
)
def test_a_summary_fits_into_temporals_limit(step: Step) -> None:
    model = SPEC.model.model_copy(update={"name": "ж" * 255})
    spec = SPEC.model_copy(update={"model": model})
    assert len(summarize_step(step, State(), spec).encode()) < 400


@pytest.mark.parametrize(
    ("status", "seconds"),
    [("finished", 60), ("error", 60), ("idle", 60), ("paused", 3600)],
)
def test_a_workflow_that_nobody_waits_for_ends_after_a_minute(status: str, seconds: int) -> None:
    state = State.model_validate({"status": status})
    assert seconds_until_end(Agent(model="m"), state) == seconds


def test_a_short_idle_time_holds_after_a_turn_too() -> None:
    assert seconds_until_end(Agent(model="m", idle_timeout=0.5), State(status="finished")) == 0.5

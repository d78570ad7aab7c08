"""Whether a conversation is about to work is told before anything is recorded."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agent.loop.admission import until_suspended, will_run
from perdure.agent.loop.inbox import (
    CloseRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    ResumeRequest,
    StateNote,
    UserMessage,
)
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Record, Step
from tests.agent.driver import RandomConversation
from tests.builders import agent, apply_events, opened_state, user

RECORD = UserMessage(text="And.", run=False)
SAY, RESUME, PAUSE = UserMessage(text="Go on."), ResumeRequest(), PauseRequest()
STOP, CLOSE = InterruptRequest(), CloseRequest()
NOTE = StateNote(key="title", value="Doors")
SUSPEND = InterruptRequest(reason="too_many_conversations")

AT_REST = apply_events(opened_state(), user(), agent())
WORKING = apply_events(opened_state(), user())


class PredictedConversation(RandomConversation):
    """A random conversation that is asked before each step whether it will run."""

    def do(self, step: Step) -> None:
        rested = self.state.at_rest
        super().do(step)
        recorded = isinstance(step, Record) and step.from_inbox
        assert recorded or not rested or self.state.at_rest, "no other step begins to work"

    def record(self, step: Record) -> None:
        expected = will_run(self.state, self.inbox[: step.from_inbox])
        super().record(step)
        if step.from_inbox:
            assert (self.state.status == "running") == expected


@pytest.mark.long
@given(st.data())
@settings(max_examples=200)
def test_a_prediction_is_what_the_events_say(data: st.DataObject) -> None:
    drive = PredictedConversation(data)
    drive.inbox.append(SAY)
    for _ in range(data.draw(st.integers(0, 8), label="disturbances")):
        for _ in range(data.draw(st.integers(0, 6), label="rounds")):
            drive.step()
        drive.add_request()
    drive.runs_to_rest(120)


@pytest.mark.parametrize(
    ("state", "inbox", "expected"),
    [
        (AT_REST, [], False),
        (AT_REST, [SAY], True),
        (AT_REST, [NOTE, RESUME], False),
        (AT_REST, [RECORD], False),
        (AT_REST, [RECORD, RESUME], True),
        (WORKING, [RECORD], True),
        (AT_REST, [PAUSE, SAY], False),
        (AT_REST, [PAUSE, SAY, RESUME], True),
        (AT_REST, [SAY, STOP], False),
        (AT_REST, [SAY, STOP, SAY], True),
        (AT_REST, [CLOSE, SAY], False),
        (WORKING, [], True),
        (WORKING, [SUSPEND], False),
        (WORKING, [STOP, RESUME], True),
    ],
)
def test_the_items_that_wait_decide(
    state: State, inbox: Sequence[InboxItem], expected: bool
) -> None:
    assert will_run(state, inbox) is expected


def test_what_comes_behind_a_suspension_waits() -> None:
    assert until_suspended([SAY, SUSPEND, SAY]) == [SAY, SUSPEND]
    assert until_suspended([SAY, STOP, SAY]) == [SAY, STOP, SAY]

"""Requests that are repeated while a workflow is behind its log."""

import pytest

from perdure.agent.loop.state import State
from perdure.agent.loop.wait import Wait
from perdure.client import repetition
from perdure.client.repetition import (
    is_answer_awaited,
    is_response_awaited,
    repeat_while_behind,
)
from perdure.errors import Invalid
from tests.storage.made import log_in
from tests.storage.memory import MemoryStore

NOTHING_WAITS = Invalid("No action waits for an answer.")


class LateWorkflow:
    """A workflow that refuses a number of requests first."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.requests = 0

    async def respond(self) -> str:
        self.requests += 1
        if self.requests <= self.refusals:
            raise NOTHING_WAITS
        return "accepted"


@pytest.mark.parametrize("refusals", [0, 1, 3])
async def test_a_request_is_repeated_until_the_workflow_knows_what_the_log_has(
    refusals: int,
) -> None:
    workflow = LateWorkflow(refusals)
    answer = await repeat_while_behind(workflow.respond, log_in(MemoryStore()), lambda _: True)
    assert (answer, workflow.requests) == ("accepted", refusals + 1)


async def test_a_request_about_what_the_log_does_not_have_is_made_once() -> None:
    workflow = LateWorkflow(1)
    with pytest.raises(Invalid):
        await repeat_while_behind(workflow.respond, log_in(MemoryStore()), lambda _: False)
    assert workflow.requests == 1


async def test_a_workflow_that_never_knows_is_asked_so_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repetition, "DELAYS", (0.0, 0.0))
    workflow = LateWorkflow(100)
    with pytest.raises(Invalid):
        await repeat_while_behind(workflow.respond, log_in(MemoryStore()), lambda _: True)
    assert workflow.requests == 3


def test_an_answer_is_awaited_by_its_question_alone() -> None:
    question = Wait(seq=3, action_id="a", tool_call_id="c", question="Tea?", choices=("yes",))
    asking, resting = State(wait=question), State()
    timer = State(wait=Wait(seq=3, action_id="a", tool_call_id="c", until="2030-01-01"))
    assert is_answer_awaited(asking, None, None)
    assert is_answer_awaited(asking, "yes", "c")
    assert not is_answer_awaited(asking, "no", None)
    assert not is_answer_awaited(asking, None, "d")
    assert not is_answer_awaited(resting, None, None)
    assert not is_answer_awaited(timer, None, None)
    assert not is_response_awaited(asking, (), None)
    assert not is_response_awaited(resting, ("c",), 9)

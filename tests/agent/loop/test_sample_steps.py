"""The steps of an attempt beyond its agent's own."""

from typing import Any

import pytest

from perdure.agent.loop.attempt import Allowance, Attempt
from perdure.agent.loop.sample_steps import count_started_turns, needed_allowance, next_sample_step
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Record, Say, SetUp, Think
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.usage import Usage

SPEC = Agent(model=ModelSpec(name="m"))
TRIAL = Attempt(batch="b", sample="one", sample_set="s", chunk=0, line=0, later_turns=2)
THINK = Think(spec_seq=1)


def state(**fields: Any) -> State:
    return State(spec=SPEC, spec_seq=1, **fields)


def test_a_sample_is_set_up_before_it_says_anything() -> None:
    step = next_sample_step(TRIAL.model_copy(update={"needs_setup": True}), state())
    assert isinstance(step, SetUp)
    step = next_sample_step(TRIAL, state())
    assert isinstance(step, Say)
    assert (step.turn, step.shown_skills) == (0, None)


def test_the_next_turn_is_said_once_the_one_before_is_answered() -> None:
    begun = state(first_user_seq=3, status="finished", message_seqs={"turn 0": 3})
    step = next_sample_step(TRIAL, begun)
    assert isinstance(step, Say)
    assert step.turn == 1
    over = state(
        first_user_seq=3, status="finished", message_seqs={"turn 0": 3, "turn 1": 5, "turn 2": 9}
    )
    assert next_sample_step(TRIAL, over) is None


@pytest.mark.parametrize("status", ["error", "stuck", "closed", "idle", "paused"])
def test_a_turn_without_an_answer_is_the_last_one(status: str) -> None:
    assert (
        next_sample_step(TRIAL, state(first_user_seq=3, status=status, message_seqs={"turn 0": 3}))
        is None
    )


def test_a_sample_that_could_not_be_set_up_says_nothing() -> None:
    trial = TRIAL.model_copy(update={"needs_setup": True})
    assert next_sample_step(trial, state(status="error")) is None


def test_turns_are_counted_by_their_own_names() -> None:
    assert (
        count_started_turns(
            state(message_seqs={"turn 0": 3, "turn 10": 40, "of a person": 7, "turn x": 9})
        )
        == 11
    )


def test_no_allowance_is_requested_within_it_or_for_free_steps() -> None:
    allowed = TRIAL.model_copy(update={"allowance": Allowance(cost=1.0, tokens=100)})
    rich = state(usage=Usage(cost=0.4), last_usage=Usage(cost=0.4))
    poor = state(usage=Usage(cost=0.9), last_usage=Usage(cost=0.4))
    assert needed_allowance(allowed, rich, [THINK]) is None
    assert needed_allowance(TRIAL, poor, [THINK]) is None
    assert needed_allowance(allowed, poor, [Record(items=())]) is None
    assert needed_allowance(allowed, poor, [Act(action_seq=1, spec_seq=1, repeatable=True)]) is None


def test_a_larger_allowance_is_requested_before_it_is_spent() -> None:
    allowed = TRIAL.model_copy(update={"allowance": Allowance(cost=1.0, tokens=100)})
    spent = Usage(cost=0.9, prompt_tokens=30, completion_tokens=10)
    more = needed_allowance(allowed, state(usage=spent, last_usage=Usage(cost=0.4)), [THINK])
    assert more == Allowance(cost=1.8, tokens=100)
    tokens = Usage(prompt_tokens=90, completion_tokens=9)
    last = Usage(prompt_tokens=40, completion_tokens=1)
    more = needed_allowance(allowed, state(usage=tokens, last_usage=last), [THINK])
    assert more == Allowance(cost=1.0, tokens=198)

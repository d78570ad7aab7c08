"""What a trial does beyond its agent's work."""

from typing import Any

import pytest

from agent.spec import ModelSpec, Spec
from agent.state import State
from agent.steps import Act, Record, Say, SetUp, Think
from agent.trial import Allowance, Trial
from agent.trying import said, trial_step, wanted
from events.usage import Usage

SPEC = Spec(model=ModelSpec(name="m"))
TRIAL = Trial(batch="b", samples="s", chunk=0, line=0, turns=2)
THINK = Think(spec=1)


def state(**fields: Any) -> State:
    return State(spec=SPEC, spec_seq=1, **fields)


def test_a_sample_is_set_up_before_it_says_anything() -> None:
    step = trial_step(TRIAL.model_copy(update={"setup": True}), state())
    assert isinstance(step, SetUp)
    step = trial_step(TRIAL, state())
    assert isinstance(step, Say)
    assert (step.turn, step.skills) == (0, None)


def test_the_next_turn_is_said_once_the_one_before_is_answered() -> None:
    begun = state(first=3, status="finished", seen={"turn 0": 3})
    step = trial_step(TRIAL, begun)
    assert isinstance(step, Say)
    assert step.turn == 1
    over = state(first=3, status="finished", seen={"turn 0": 3, "turn 1": 5, "turn 2": 9})
    assert trial_step(TRIAL, over) is None


@pytest.mark.parametrize("status", ["error", "stuck", "closed", "idle", "paused"])
def test_a_turn_without_an_answer_is_the_last_one(status: str) -> None:
    assert trial_step(TRIAL, state(first=3, status=status, seen={"turn 0": 3})) is None


def test_a_sample_that_could_not_be_set_up_says_nothing() -> None:
    trial = TRIAL.model_copy(update={"setup": True})
    assert trial_step(trial, state(status="error")) is None


def test_turns_are_counted_by_their_own_names() -> None:
    assert said(state(seen={"turn 0": 3, "turn 10": 40, "of a person": 7, "turn x": 9})) == 11


def test_nothing_is_asked_for_within_the_allowance_or_for_what_costs_nothing() -> None:
    allowed = TRIAL.model_copy(update={"allowance": Allowance(cost=1.0, tokens=100)})
    rich = state(spent=Usage(cost=0.4), last=Usage(cost=0.4))
    poor = state(spent=Usage(cost=0.9), last=Usage(cost=0.4))
    assert wanted(allowed, rich, [THINK]) is None
    assert wanted(TRIAL, poor, [THINK]) is None
    assert wanted(allowed, poor, [Record(items=())]) is None
    assert wanted(allowed, poor, [Act(action=1, spec=1, repeatable=True)]) is None


def test_more_is_asked_for_before_it_is_spent() -> None:
    allowed = TRIAL.model_copy(update={"allowance": Allowance(cost=1.0, tokens=100)})
    spent = Usage(cost=0.9, prompt_tokens=30, completion_tokens=10)
    more = wanted(allowed, state(spent=spent, last=Usage(cost=0.4)), [THINK])
    assert more == Allowance(cost=1.8, tokens=100)
    tokens = Usage(prompt_tokens=90, completion_tokens=9)
    last = Usage(prompt_tokens=40, completion_tokens=1)
    more = wanted(allowed, state(spent=tokens, last=last), [THINK])
    assert more == Allowance(cost=1.0, tokens=198)

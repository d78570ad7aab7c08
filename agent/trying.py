"""What a trial does beyond its agent's work, and when it must ask for more to spend."""

from collections.abc import Sequence

from agent.state import State
from agent.steps import Condense, Entitle, Say, SetUp, Step, Think
from agent.trial import Allowance, Trial

TURN = "turn "
"""Before the number of a turn, in the id of the message by which the sample begins it."""

ASKING = (Think, Condense, Entitle)
"""The steps that cost something."""


def said(state: State) -> int:
    """How many turns the sample has begun."""
    turns = (name[len(TURN) :] for name in state.seen if name.startswith(TURN))
    return max((int(turn) + 1 for turn in turns if turn.isdecimal()), default=0)


def trial_step(trial: Trial, state: State) -> SetUp | Say | None:
    """What the sample does while its agent has nothing to do; None: the attempt is over.

    A turn that ended in anything but an answer is the last one.
    """
    if state.first is None:
        if state.status != "idle":
            return None
        if trial.setup:
            return SetUp(trial=trial, spec=state.spec_seq)
        return Say(trial=trial, turn=0, spec=state.spec_seq, skills=None)
    turn = said(state)
    if state.status != "finished" or turn > trial.turns:
        return None
    return Say(trial=trial, turn=turn, spec=state.spec_seq, skills=state.skills)


def wanted(trial: Trial, state: State, steps: Sequence[Step]) -> Allowance | None:
    """What must be allowed in all before these steps are taken; None: they may be.

    The next answer is taken to cost what the last one did.
    """
    allowed = trial.allowance
    if allowed is None or not any(isinstance(step, ASKING) for step in steps):
        return None
    spent, last = spent_of(state), state.last
    cost, tokens = spent.cost or 0.0, spent.tokens or 0
    more = last.prompt_tokens + last.completion_tokens
    short_of_cost = allowed.cost is not None and cost + last.cost > allowed.cost
    short_of_tokens = allowed.tokens is not None and tokens + more > allowed.tokens
    if not (short_of_cost or short_of_tokens):
        return None
    # A sample that has needed twice as much as was foreseen is given room for as much again.
    return Allowance(
        cost=None if allowed.cost is None else max(2 * cost, cost + last.cost, allowed.cost),
        tokens=None if allowed.tokens is None else max(2 * tokens, tokens + more, allowed.tokens),
    )


def spent_of(state: State) -> Allowance:
    spent = state.spent
    return Allowance(cost=spent.cost, tokens=spent.prompt_tokens + spent.completion_tokens)

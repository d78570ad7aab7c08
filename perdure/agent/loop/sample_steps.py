"""The steps of an attempt beyond the agent's own, and its requests for a larger allowance."""

from collections.abc import Sequence

from perdure.agent.loop.attempt import Allowance, Attempt
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Condense, GenerateTitle, Say, SetUp, Step, Think
from perdure.events.usage import Usage

TURN_ID_PREFIX = "turn "
"""The prefix of message ids by which a sample begins its turns; the number follows."""

PAID_STEPS = (Think, Condense, GenerateTitle)
"""The steps that cost something."""


def count_started_turns(state: State) -> int:
    names = (name for name in state.message_seqs if name.startswith(TURN_ID_PREFIX))
    turns = (name.removeprefix(TURN_ID_PREFIX) for name in names)
    return max((int(turn) + 1 for turn in turns if turn.isdecimal()), default=0)


def next_sample_step(attempt: Attempt, state: State) -> SetUp | Say | None:
    """Return the sample's step while the agent is at rest; None ends the attempt.

    A turn with any end but a final answer is the last one.
    """
    if state.first_user_seq is None:
        if state.status != "idle":
            return None
        if attempt.needs_setup:
            return SetUp(attempt=attempt, spec_seq=state.spec_seq)
        return Say(attempt=attempt, turn=0, spec_seq=state.spec_seq, shown_skills=None)
    turn = count_started_turns(state)
    if state.status != "finished" or turn > attempt.later_turns:
        return None
    return Say(attempt=attempt, turn=turn, spec_seq=state.spec_seq, shown_skills=state.shown_skills)


def needed_allowance(attempt: Attempt, state: State, steps: Sequence[Step]) -> Allowance | None:
    """Return the allowance needed before these steps, or None if the present one is enough.

    The next response is estimated to cost as much as the last one.
    """
    if attempt.allowance is None or not any(isinstance(step, PAID_STEPS) for step in steps):
        return None
    allowed = attempt.allowance.model_dump(exclude_none=True)
    spent = spent_allowance(state.usage).model_dump()
    last = spent_allowance(state.last_usage).model_dump()
    if all(spent[name] + last[name] <= amount for name, amount in allowed.items()):
        return None
    # Ask for twice the amount spent, so that requests become rarer as an attempt grows.
    needed = {
        name: max(2 * spent[name], spent[name] + last[name], amount)
        for name, amount in allowed.items()
    }
    return Allowance(**needed)


def spent_allowance(spent: Usage) -> Allowance:
    return Allowance(cost=spent.cost, tokens=spent.prompt_tokens + spent.completion_tokens)

"""What to do next: the one place where that is decided."""

from collections.abc import Sequence

from agent.inbox import Failed, Item, weight
from agent.state import Pending, State
from agent.steps import Act, Prepare, Record, Settle, Step, Think

ROOM = 96 * 1024
"""Bytes of waiting items that one step records; at least one item always goes."""

MANY = 200
"""How many of them at most: a digest of each comes back, and 128 KiB may."""


def decide(state: State, inbox: Sequence[Item]) -> Step | None:
    """The next step. None: there is nothing to do until somebody asks for something."""
    if inbox:
        return Record(items=load(inbox))
    for pending in state.pending:
        if pending.lost is not None:
            return Settle(action=pending.seq, known=pending.lost)
    if state.status != "running":
        return None
    if state.pending:
        return _act(state, state.pending[0])
    if not state.prompted:
        return Prepare(spec=state.spec_seq)
    if failed := _limit(state):
        return Record(items=(failed,))
    return Think(spec=state.spec_seq)


def load(inbox: Sequence[Item]) -> tuple[Item, ...]:
    """As much of the inbox as one step records; at least one item, where there is any."""
    taken: list[Item] = []
    left = ROOM
    for item in inbox[:MANY]:
        left -= weight(item)
        if taken and left < 0:
            break
        taken.append(item)
    return tuple(taken)


def _act(state: State, pending: Pending) -> Act:
    return Act(action=pending.seq, spec=state.spec_seq, repeatable=pending.repeatable)


def _limit(state: State) -> Failed | None:
    assert state.spec is not None, "a conversation that runs has been opened with a spec"
    limits = state.spec.limits
    if state.iterations >= limits.max_iterations:
        detail = (
            f"The agent used its {limits.max_iterations} answers for this turn: "
            "send a message to give it another turn, or raise max_iterations."
        )
        return Failed(code="max_iterations", detail=detail)
    if limits.max_budget is not None and state.spent.cost >= limits.max_budget:
        detail = (
            f"The conversation has cost ${state.spent.cost:.4f} of its ${limits.max_budget:.4f}: "
            "start another one, or raise max_budget."
        )
        return Failed(code="max_budget", detail=detail)
    return None

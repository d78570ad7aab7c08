"""What to do next: the one place where that is decided."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from agent.condense.wants import wants_condensing
from agent.inbox import (
    CloseAsked,
    ConfirmationAsked,
    Confirmed,
    FoundStuck,
    InterruptAsked,
    Item,
    Nudged,
    Rejected,
    Said,
    weight,
)
from agent.limits import reached, warning
from agent.spec import Spec
from agent.state import DELEGATE, Pending, State, asking
from agent.steps import (
    Act,
    Asked,
    Condense,
    Delegate,
    Entitle,
    Prepare,
    Record,
    Refusal,
    Settle,
    Step,
    Think,
)
from agent.stuck import nudge, verdict

ROOM = 96 * 1024
"""Bytes of waiting items that one step records; at least one item always goes."""

MANY = 100
"""How many of them at most: a digest of each comes back, and 128 KiB may."""

STOPPED = "The user stopped the agent before this was done."


def decide(
    state: State, inbox: Sequence[Item], seconds_left: float | None = None
) -> tuple[Step, ...]:
    """The next steps, side by side. None: there is nothing to do until somebody asks for it.

    `seconds_left` is how far off the deadline is, where there is one.
    """
    # First: that a call was lost is known to nobody else, and must not be forgotten in a pause.
    for pending in state.pending:
        if pending.lost is not None:
            return (Settle(action=pending.seq, known=pending.lost),)
    if inbox:
        return (_recorded(state, inbox),)
    if state.status == "closed" or state.spec is None:
        return ()
    if state.status == "idle" and state.pending:  # the answer and the interrupt crossed
        refused = Refusal(actions=tuple(one.seq for one in state.pending), reason=STOPPED)
        return (Record(items=(), refusal=refused),)
    if state.condense == "user" and not (state.pending and state.status == "running"):
        return (_condense(state, "user"),)
    if state.status != "running":
        return _entitled(state, state.spec)
    in_time = seconds_left is None or seconds_left > 0
    if state.pending and in_time:
        return _worked_off(state, state.spec)
    return (_next(state, state.spec, seconds_left),)


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


def _recorded(state: State, inbox: Sequence[Item]) -> Record:
    waiting = load(inbox)
    items = tuple(_rejected_once(state, waiting))
    return Record(
        items=items,
        taken=len(waiting),
        refusal=refusal(state, items),
        spec=state.spec_seq,
        skills=None if state.first is None else state.skills,
    )


def _rejected_once(state: State, items: Sequence[Item]) -> Iterator[Item]:
    """The items; two people may say no to one call, which is answered once."""
    left = {one.seq for one in state.pending}
    for item in items:
        if isinstance(item, Rejected):
            actions = tuple(seq for seq in item.actions if seq in left)
            left -= set(actions)
            item = item.model_copy(update={"actions": actions})
        yield item


def refusal(state: State, items: Sequence[Item]) -> Refusal | None:
    """What will not happen because of what was asked for.

    A person who speaks while actions wait has something else in mind; one who interrupts wants
    nothing more of this batch.
    """
    if any(isinstance(item, InterruptAsked | CloseAsked) for item in items):
        refused, reason = state.pending, STOPPED
        settled = _seqs(items, Rejected)
    elif any(isinstance(item, Said) for item in items):
        refused, reason = asking(state), "Superseded by a new message of the user."
        before = tuple(takewhile(lambda item: not isinstance(item, Said), items))
        settled = _seqs(before, Confirmed) | _seqs(items, Rejected)
    else:
        return None
    left = tuple(one.seq for one in refused if one.lost is None and one.seq not in settled)
    return Refusal(actions=left, reason=reason) if left else None


def _seqs(items: Sequence[Item], kind: type[Confirmed] | type[Rejected]) -> set[int]:
    return {seq for item in items if isinstance(item, kind) for seq in item.actions}


def _condense(state: State, asked: Asked) -> Condense:
    return Condense(
        spec=state.spec_seq, forgotten=state.forgotten, asked=asked, tries=state.overflows
    )


def _entitled(state: State, spec: Spec) -> tuple[Step, ...]:
    if spec.title_model is None or state.title is not None or state.first is None:
        return ()
    return (Entitle(spec=state.spec_seq, message=state.first),)


def _worked_off(state: State, spec: Spec) -> tuple[Step, ...]:
    """The actions that can be done now, or the question to a person who has to allow some."""
    if waiting := asking(state):
        return (_note(ConfirmationAsked(actions=tuple(one.seq for one in waiting))),)
    together = tuple(_side_by_side(state, spec.parallel))
    errands = sum(one.tool_name == DELEGATE for one in together)
    return tuple(_act(state, one, errands) for one in together)


def _side_by_side(state: State, most: int) -> Iterator[Pending]:
    """The first actions of the batch that do not get in each other's way."""
    first = state.pending[0]
    batch = takewhile(lambda one: one.batch == first.batch, state.pending)
    taken: list[Pending] = []
    for one in batch:
        if len(taken) == max(1, most) or any(_clash(state, one, other) for other in taken):
            return
        taken.append(one)
        yield one


def _clash(state: State, one: Pending, other: Pending) -> bool:
    """Whether the two must not run at the same time."""
    readers = state.tools.read_only
    if one.tool_name in readers and other.tool_name in readers:
        return False
    if one.touches is None or other.touches is None:
        return True
    return not set(one.touches).isdisjoint(other.touches)


def _act(state: State, pending: Pending, errands: int) -> Act | Delegate:
    """What is left of the budget is shared by the errands of one moment."""
    if pending.tool_name == DELEGATE:
        left = _left(state)
        share = None if left is None else left / errands
        return Delegate(action=pending.seq, spec=state.spec_seq, budget=share, files=state.files)
    assert state.prompt_seq is not None, "actions come after the prompt"
    return Act(
        action=pending.seq,
        spec=state.spec_seq,
        prompt=state.prompt_seq,
        repeatable=pending.repeatable,
        skills=state.skills or None,
        files=state.files,
    )


def _left(state: State) -> float | None:
    assert state.spec is not None, "actions come after the spec"
    budget = state.spec.limits.max_budget
    return None if budget is None else max(0.0, budget - state.spent.cost)


def _next(state: State, spec: Spec, seconds_left: float | None) -> Step:
    """The agent's turn: to be stopped, warned, relieved of old events, or asked."""
    if state.prompt_seq is None:
        return Prepare(spec=state.spec_seq)
    if found := verdict(state.recent, spec.stuck, state.tools.waits):
        return _note(FoundStuck(**found.model_dump()))
    if failed := reached(state, seconds_left):
        return _note(failed)
    if text := nudge(state.recent, spec.stuck, state.tools.waits):
        return _note(Nudged(topic="stuck", text=text))
    if state.condense == "overflow":
        return _condense(state, "overflow")
    if warned := warning(state, seconds_left):
        return _note(warned)
    if state.shown >= state.hopeless and wants_condensing(
        spec.condenser, state.shown, state.tokens
    ):
        return _condense(state, "size")
    return Think(
        spec=state.spec_seq,
        prompt=state.prompt_seq,
        forgotten=state.forgotten or None,
        number=state.answers,
    )


def _note(item: Item) -> Record:
    return Record(items=(item,))

"""A conversation as its workflow knows it: small, and a pure fold of the log."""

import hashlib
from functools import reduce
from typing import Any

from pydantic import Field

from agent.inbox import Item, Said
from agent.spec import Spec
from agent.status import Happening, Status, after
from events.base import Frozen
from events.digest import Digest
from events.usage import Usage

REMEMBERED = 300
"""How many of the newest message ids a conversation tells repeats by; all of them at their longest
take 41 KB of the 64 KB that a state may have."""


class Pending(Frozen):
    """An action that has no answer yet; `lost` says what is known of a call that was lost."""

    seq: int
    action_id: str
    tool_name: str
    repeatable: bool
    lost: str | None = None


class State(Frozen):
    """What has happened, as far as anything is decided by it.

    `sha` is a running hash over the stored bytes of every event. `owes` says whether the agent
    owes somebody an answer, `heard` is the slot of the newest message of a person, `finish` that of
    a call of `finish` in a batch that is still being worked off. `iterations` counts the model's
    answers in this turn.
    """

    next_seq: int = 0
    sha: str = ""
    status: Status = "idle"
    reason: str | None = None
    run_id: str | None = None
    spec: Spec | None = None
    spec_seq: int = 0
    prompted: bool = False
    repeatable: tuple[str, ...] = ()
    pending: tuple[Pending, ...] = ()
    owes: bool = False
    heard: int = -1
    finish: int | None = None
    turn: int = 0
    iterations: int = 0
    answers: int = 0
    spent: Usage = Usage()
    seen: dict[str, int] = Field(default_factory=dict)

    @property
    def at_rest(self) -> bool:
        """Whether nothing happens until somebody asks for it."""
        return self.status != "running"


def knows(state: State, item: Item) -> bool:
    """Whether this is a message that the log holds, by its sender's own id for it."""
    return isinstance(item, Said) and item.message_id in state.seen


def fold(state: State, digests: list[Digest]) -> State:
    """The state after these events; those it has taken in already are passed over."""
    new = (digest for digest in digests if digest.seq >= state.next_seq)
    return reduce(evolve, new, state)


def evolve(state: State, fact: Digest) -> State:
    """The state after one more event.

    Raises ValueError where an event is missing before it.
    """
    if fact.seq != state.next_seq:
        raise ValueError(f"event {fact.seq} follows event {state.next_seq - 1}: one is missing")
    sha = hashlib.sha256(f"{state.sha}{fact.sha}".encode()).hexdigest()[:32]
    changes = _answered_by_model(state, fact) | _change(state, fact)
    return state.model_copy(update={"next_seq": fact.seq + 1, "sha": sha, **changes})


def lost(state: State, action: int, known: str) -> State:
    """The state once the call of the action in slot `action` has been lost."""
    pending = tuple(
        one.model_copy(update={"lost": known}) if one.seq == action else one
        for one in state.pending
    )
    return state.model_copy(update={"pending": pending})


def _change(state: State, fact: Digest) -> dict[str, Any]:
    match fact.kind:
        case "MessageEvent" if fact.source == "user":
            return _heard(state, fact)
        case "MessageEvent" if fact.source == "agent":
            return _turn_over(state)
        case "SystemPromptEvent":
            return {"prompted": True, "repeatable": fact.repeatable or ()}
        case "ActionEvent":
            return _intended(state, fact)
        case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
            return _answered(state, fact)
        case "PauseEvent":
            return _moved(state, "pause")
        case "StuckEvent":
            return _moved(state, "stuck")
        case "ConversationErrorEvent":
            return _moved(state, "failure", f"{fact.key}: {fact.value}")
        case "ConversationStateUpdateEvent":
            return _updated(state, fact)
        case _:
            return {}


def _moved(state: State, happening: Happening, reason: str | None = None) -> dict[str, Any]:
    return {"status": after(state.status, happening), "reason": reason}


def _heard(state: State, fact: Digest) -> dict[str, Any]:
    moved = _moved(state, "message")
    turn = {} if state.status == "running" else {"turn": state.turn + 1, "iterations": 0}
    heard = {**moved, **turn, "owes": True, "heard": fact.seq}
    if fact.message_id is None:
        return heard
    seen = {**state.seen, fact.message_id: fact.seq}
    while len(seen) > REMEMBERED:
        del seen[next(iter(seen))]
    return {**heard, "seen": seen}


def _turn_over(state: State) -> dict[str, Any]:
    return {**_moved(state, "answer"), "owes": False, "finish": None}


def _intended(state: State, fact: Digest) -> dict[str, Any]:
    if fact.is_error:  # not executable: its error stands behind it
        return {}
    assert fact.action_id is not None, "an action has an id"
    assert fact.tool_name is not None, "an action names its tool"
    pending = Pending(
        seq=fact.seq,
        action_id=fact.action_id,
        tool_name=fact.tool_name,
        repeatable=fact.tool_name in state.repeatable,
    )
    return {"pending": (*state.pending, pending)}


def _answered(state: State, fact: Digest) -> dict[str, Any]:
    """Take an answered action off the list; a batch in which `finish` succeeded ends the turn.

    A message that came after the agent had decided to finish keeps the turn open: it must be seen.
    """
    answered = [one for one in state.pending if one.action_id == fact.action_id]
    left = tuple(one for one in state.pending if one.action_id != fact.action_id)
    finish = state.finish
    if fact.kind == "ObservationEvent" and fact.tool_name == "finish" and not fact.is_error:
        finish = next((one.seq for one in answered), finish)
    if left or finish is None:
        return {"pending": left, "finish": finish}
    if state.heard > finish:
        return {"pending": left, "finish": None}
    return {"pending": left, **_turn_over(state)}


def _answered_by_model(state: State, fact: Digest) -> dict[str, Any]:
    """Count an answer of the model by the bill, which its first event carries."""
    if fact.usage is None:
        return {}
    return {
        "iterations": state.iterations + 1,
        "answers": state.answers + 1,
        "spent": _sum(state.spent, fact.usage),
    }


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in Usage.model_fields})


def _updated(state: State, fact: Digest) -> dict[str, Any]:
    match fact.key, fact.value:
        case "opened", value:
            return {"run_id": value["run_id"], "pending": _reopened(state)}
        case "spec", value:
            return {"spec": Spec.model_validate(value), "spec_seq": fact.seq}
        case "status", "resumed":
            return _moved(state, "resume" if state.owes else "rest")
        case "status", "closed":
            return _moved(state, "close")
        case _:
            return {}


def _reopened(state: State) -> tuple[Pending, ...]:
    known = "The conversation's workflow was lost while the call may have been running."
    return tuple(
        one if one.repeatable else one.model_copy(update={"lost": known}) for one in state.pending
    )

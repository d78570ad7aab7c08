"""From one state to the next: what each event means for what is decided."""

import hashlib
from functools import reduce
from typing import Any

from agent.ranges import merged
from agent.spec import Spec
from agent.state import Pending, State, Traits, asking
from agent.status import Happening, after
from agent.stuck import remember
from events.digest import Digest
from events.usage import Usage

REMEMBERED = 300
"""How many of the newest message ids a conversation tells repeats by."""

SPELT = 24 * 1024
"""Bytes of all these ids: a state as large as can be must fit into what Temporal is given."""

MOST_SKILLS = 64
"""How many of the newest skills a conversation knows to have been shown."""

MOST_BILLED = 16
"""Models that have a bill of their own; all others share one."""

SHOWN = frozenset(
    {
        "SystemPromptEvent",
        "MessageEvent",
        "RecallEvent",
        "ActionEvent",
        "ObservationEvent",
        "AgentErrorEvent",
        "UserRejectObservation",
    }
)
"""The events that a model is shown, each as a part of its prompt."""

COUNTED = tuple(name for name in Usage.model_fields if name not in ("model", "purpose"))
"""What of several bills is added up."""


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
    changes = _traced(state, fact) | _viewed(state, fact) | _billed(state, fact)
    changes |= _change(state, fact) | _placed(fact)
    return state.model_copy(update={"next_seq": fact.seq + 1, "sha": sha, **changes})


def _change(state: State, fact: Digest) -> dict[str, Any]:
    match fact.kind:
        case "MessageEvent":
            return _said(state, fact)
        case "SystemPromptEvent":
            return _prompted(fact)
        case "ActionEvent":
            return _intended(state, fact)
        case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
            return _answered(state, fact)
        case "SecurityAnalysisEvent":
            return _assessed(state, fact)
        case "RecallEvent":
            shown = dict.fromkeys((*state.skills, *(fact.value or ())))
            return {"skills": tuple(shown)[-MOST_SKILLS:]}
        case "CondensationRequest":
            return _asked_to_condense(state, fact)
        case "Condensation":
            return {"condense": None, "hopeless": 0}
        case "PauseEvent":
            return _moved(state, "pause")
        case "InterruptEvent":
            return _interrupted(state)
        case "StuckEvent":
            return _moved(state, "stuck", f"{fact.key}: {fact.value}")
        case "ConversationErrorEvent":
            failed = _moved(state, "failure", f"{fact.key}: {fact.value}")
            return {**failed, "condense": None, "overflows": 0}
        case "ConversationStateUpdateEvent":
            return _updated(state, fact)
        case _:
            return {}


def _moved(state: State, happening: Happening, reason: str | None = None) -> dict[str, Any]:
    """A status that stays keeps its reason, unless it has failed anew."""
    then = after(state.status, happening)
    if then == state.status and happening not in ("failure", "stuck"):
        return {}
    return {"status": then, "reason": reason}


def _interrupted(state: State) -> dict[str, Any]:
    moved = _moved(state, "interrupt", "interrupted by the user")
    wanted = None if state.condense == "user" else state.condense
    return {**moved, "finish": None, "condense": wanted}


def _said(state: State, fact: Digest) -> dict[str, Any]:
    if fact.source == "user":
        return _heard(state, fact)
    if fact.source == "environment":
        return {"told": tuple(dict.fromkeys((*state.told, fact.key)))} if fact.key else {}
    return {} if fact.key == "interrupted" else _turn_over(state)


def _heard(state: State, fact: Digest) -> dict[str, Any]:
    moved = _moved(state, "message")
    turn = {} if state.status == "running" else {"turn": state.turn + 1, "iterations": 0}
    first = fact.seq if state.first is None else state.first
    heard = {**moved, **turn, "owes": True, "first": first, "heard": fact.seq, "told": ()}
    if fact.message_id is None:
        return heard
    seen = {**state.seen, fact.message_id: fact.seq}
    while len(seen) > REMEMBERED or sum(map(len, seen)) > SPELT:
        del seen[next(iter(seen))]
    return {**heard, "seen": seen}


def _turn_over(state: State) -> dict[str, Any]:
    return {**_moved(state, "answer"), "owes": False, "finish": None}


def _prompted(fact: Digest) -> dict[str, Any]:
    traits = Traits(
        repeatable=fact.repeatable or (), read_only=fact.read_only or (), waits=fact.waits or ()
    )
    return {"prompt_seq": fact.seq, "tools": traits}


def _intended(state: State, fact: Digest) -> dict[str, Any]:
    if fact.is_error:  # not executable: its error stands behind it
        return {}
    assert fact.action_id is not None, "an action has an id"
    assert fact.tool_name is not None, "an action names its tool"
    pending = Pending(
        seq=fact.seq,
        action_id=fact.action_id,
        tool_name=fact.tool_name,
        tool_call_id=fact.tool_call_id or "",
        batch=fact.llm_response_id or "",
        repeatable=fact.tool_name in state.tools.repeatable,
        headline=fact.headline,
        touches=fact.touches,
        risk=fact.risk or "UNKNOWN",
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
    going_on = {**_unless_asking(state, left), "finish": finish}
    if left or finish is None:
        return going_on
    if state.heard > finish:
        return {**going_on, "finish": None}
    return {"pending": left, **_turn_over(state)}


def _unless_asking(state: State, pending: tuple[Pending, ...]) -> dict[str, Any]:
    """These actions are left; where none of them waits for a person any more, the agent goes on."""
    left = {"pending": pending}
    if asking(state.model_copy(update=left)):
        return left
    return {**left, **_moved(state, "respond")}


def _assessed(state: State, fact: Digest) -> dict[str, Any]:
    risks = fact.value or {}
    pending = tuple(
        one.model_copy(update={"risk": risks[one.action_id]}) if one.action_id in risks else one
        for one in state.pending
    )
    return {"pending": pending}


def _allowed(state: State, actions: list[int]) -> dict[str, Any]:
    pending = tuple(
        one.model_copy(update={"allowed": True}) if one.seq in actions else one
        for one in state.pending
    )
    return _unless_asking(state, pending)


def _asked(state: State) -> tuple[Pending, ...]:
    waiting = asking(state)
    return tuple(
        one.model_copy(update={"asked": True}) if one in waiting else one for one in state.pending
    )


def _asked_to_condense(state: State, fact: Digest) -> dict[str, Any]:
    if fact.source == "user":
        return {"condense": state.condense or "user"}
    return {"condense": "overflow", "overflows": state.overflows + 1}


def _traced(state: State, fact: Digest) -> dict[str, Any]:
    if state.spec is None:
        return {}
    return {"recent": remember(state.recent, fact, state.spec.stuck)}


def _viewed(state: State, fact: Digest) -> dict[str, Any]:
    """What an event does to the prompt: it grows by it, or shrinks by what is forgotten."""
    if fact.kind == "Condensation":
        if fact.value is None:  # a newer writer's: no view is changed by what cannot be read
            return {}
        summary = fact.value["summary"]
        return {
            "shown": max(0, state.shown - fact.value["count"] + (summary > 0)),
            "tokens": max(0, state.tokens - fact.value["size"] + summary),
            "forgotten": merged(state.forgotten, fact.value["forgotten"]),
        }
    if fact.kind not in SHOWN:
        return {}
    return {"shown": state.shown + 1, "tokens": state.tokens + fact.size}


def _billed(state: State, fact: Digest) -> dict[str, Any]:
    """Add a bill up; an answer of the model is counted by its bill, which its first event has."""
    bill = fact.usage
    if bill is None:
        return {}
    on = f"{bill.purpose or 'chat'} {bill.model}".rstrip()
    if on not in state.spent_on and len(state.spent_on) >= MOST_BILLED:
        on = "others"
    spent_on = {**state.spent_on, on: _sum(state.spent_on.get(on, Usage()), bill)}
    spent = {"spent": _sum(state.spent, bill), "spent_on": spent_on}
    if bill.purpose:
        return spent
    counts = {"iterations": state.iterations + 1, "answers": state.answers + 1}
    return {**spent, **counts, "last": bill, "overflows": 0}


def _placed(fact: Digest) -> dict[str, Any]:
    return {} if fact.home is None else {"files": fact.seq, "home": fact.home}


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in COUNTED})


def _updated(state: State, fact: Digest) -> dict[str, Any]:
    match fact.key, fact.value:
        case "opened", value:
            return {"run_id": value["run_id"], "pending": _reopened(state)}
        case "spec", _:
            return _configured(state, fact)
        case "status", "resumed":
            moved = _moved(state, "resume" if state.owes else "rest")
            return {**moved, "recent": (), "told": ()}
        case "status", "waiting_for_confirmation":
            return {**_moved(state, "ask"), "pending": _asked(state)}
        case "status", "closed":
            return _moved(state, "close")
        case "confirmed", actions:
            return _allowed(state, actions)
        case "title", title:
            return {"title": title}
        case "not_condensed", _ if state.condense == "user":
            return {"condense": None}
        case _:
            return {}


def _configured(state: State, fact: Digest) -> dict[str, Any]:
    """Another spec is in force; by its policy there may be nothing left to wait for."""
    new = {"spec": Spec.model_validate(fact.value), "spec_seq": fact.seq, "told": ()}
    return {**new, **_unless_asking(state.model_copy(update=new), state.pending)}


def _reopened(state: State) -> tuple[Pending, ...]:
    """Only of a conversation that was running can a call have been lost with its workflow."""
    if state.status != "running" or asking(state):
        return state.pending
    known = "The conversation's workflow was lost while the call may have been running."
    return tuple(
        one if one.repeatable else one.model_copy(update={"lost": known}) for one in state.pending
    )

"""The state of a discussion after a step, from what the step recorded."""

from collections.abc import Sequence
from typing import Any

from perdure.agent.discussion.decide import is_last_phase, phase_of, tally_of
from perdure.agent.discussion.logged import apply_logged
from perdure.agent.discussion.state import Contribution, DiscussionState
from perdure.agent.discussion.steps import (
    Answer,
    DiscussionStep,
    Prune,
    RecordResult,
    TakeTurns,
    Write,
)

MAX_CONTRIBUTION_IDS = 500


def evolve(
    state: DiscussionState,
    step: DiscussionStep,
    recorded: RecordResult,
    inbox: Sequence[Contribution] = (),
) -> DiscussionState:
    """Return the state after a step; a contribution was the first of the inbox."""
    shown = state.end
    if recorded.first:
        state = apply_logged(state, before=recorded.first)
    counts = not (isinstance(step, Write) and step.contribution)
    state = _update(state, step=state.step + counts, end=max(state.end, recorded.end))
    match step:
        case TakeTurns():
            state = _note_turns(state, recorded.answers, shown)
            state = _after_turns(state, step, recorded)
        case Write(effect="contribution"):
            state = _note_contribution(state, inbox[0], recorded)
        case Write():
            state = _after_writing(state, step, recorded)
        case Prune():
            state = _begin_next_phase(state)
    return state if state.ending is None else _go_to_summary(state)


def end_early(state: DiscussionState, reason: str) -> DiscussionState:
    """Let the discussion end for a limit: it sums up what it has, and no phase follows.

    Where the log says already that the next phase begins, that one is the last.
    """
    if state.stage == "prune":
        return state
    return _go_to_summary(_update(state, ending=reason))


def _go_to_summary(state: DiscussionState) -> DiscussionState:
    if state.stage not in ("intents", "grants", "speeches", "vote"):
        return state
    return _update(state, stage="summary", queue=())


def _update(state: DiscussionState, **changes: Any) -> DiscussionState:
    return state.model_copy(update=changes)


def _note_turns(state: DiscussionState, answers: Sequence[Answer], shown: int) -> DiscussionState:
    begun = [answer.speaker for answer in answers if answer.begun]
    return _update(
        state,
        seen={**state.seen, **dict.fromkeys(begun, shown)},
        begun=tuple(dict.fromkeys((*state.begun, *begun))),
        costs={**state.costs, **{answer.speaker: answer.cost for answer in answers if answer.cost}},
        tokens={
            **state.tokens,
            **{answer.speaker: answer.tokens for answer in answers if answer.tokens},
        },
    )


def _after_turns(
    state: DiscussionState, step: TakeTurns, recorded: RecordResult
) -> DiscussionState:
    answers = recorded.answers
    match step.request:
        case "intent":
            intents = tuple(answer.intent for answer in answers if answer.intent)
            state = _update(state, intents=intents, consensus=not intents)
            return _update(state, stage="grants") if intents else _end_round(state)
        case "grants":
            granted = answers[0].granted
            state = _update(state, consensus=answers[0].consensus)
            return _begin_speeches(state, granted)
        case "speech":
            speeches = dict(state.speeches)
            for answer in answers:
                speeches[answer.speaker] = speeches.get(answer.speaker, 0) + answer.spoke
            left = state.queue[1:]
            state = _update(state, speeches=speeches, queue=left)
            return state if left else _end_round(state)
        case "vote":
            ballots = {answer.speaker: answer.ballot for answer in answers if answer.ballot}
            return _update(state, ballots={**state.ballots, **ballots}, stage="tally")
        case "summary":
            return _update(state, summary=recorded.summary, stage="transition")


def _after_writing(state: DiscussionState, step: Write, recorded: RecordResult) -> DiscussionState:
    match step.effect:
        case "grants":
            granted = [str(draft.content["details"]["speaker"]) for draft in step.drafts]
            return _begin_speeches(state, granted)
        case "tally":
            tally = recorded.tally or tally_of(state)
            state = _update(state, tally=tally, ballots={})
            if tally.winner is not None or state.round >= phase_of(state).rounds:
                return _update(state, stage="summary")
            return _begin_round(state)
        case "summary":
            return _update(state, summary=recorded.summary, stage="transition")
        case "transition" if state.outline.prune is not None:
            return _update(state, stage="prune")
        case "transition":
            return _begin_next_phase(state)
        case _:
            return _update(state, stage="over")


def _begin_speeches(state: DiscussionState, granted: Sequence[str]) -> DiscussionState:
    if not granted:
        return _end_round(state)
    return _update(state, stage="speeches", queue=tuple(granted), last_granted=granted[-1])


def _end_round(state: DiscussionState) -> DiscussionState:
    phase = phase_of(state)
    state = _update(state, intents=(), queue=())
    if phase.end == "vote":
        return _update(state, stage="vote")
    agreed = phase.end == "consensus" and state.consensus
    if agreed or state.round >= phase.rounds:
        return _update(state, stage="summary")
    return _begin_round(state)


def _begin_round(state: DiscussionState) -> DiscussionState:
    return _update(state, stage="intents", round=state.round + 1, consensus=False)


def _begin_next_phase(state: DiscussionState) -> DiscussionState:
    if is_last_phase(state):
        return _update(state, stage="over")
    changes = {"phase": state.phase + 1, "round": 1, "ballots": {}, "consensus": False}
    return _update(state, stage="intents", **changes)


def _note_contribution(
    state: DiscussionState, item: Contribution, recorded: RecordResult
) -> DiscussionState:
    changes: dict[str, Any] = {"people": tuple(dict.fromkeys((*state.people, item.speaker)))}
    if item.type == "SPEECH":
        count = state.speeches.get(item.speaker, 0) + 1
        changes["speeches"] = {**state.speeches, item.speaker: count}
        changes["consensus"] = False
    else:
        changes["ballots"] = {**state.ballots, item.speaker: item.content}
    if item.id is not None:
        contributed = {**state.contributed, item.id: recorded.sequence}
        while len(contributed) > MAX_CONTRIBUTION_IDS:
            del contributed[next(iter(contributed))]
        changes["contributed"] = contributed
    return _update(state, **changes)

"""The next step of a discussion, decided from its state alone."""

from collections import Counter
from collections.abc import Sequence

from perdure.agent.discussion.log_state import END, GRANT, JOINED, PHASE_TRANSITION
from perdure.agent.discussion.logged import apply_logged
from perdure.agent.discussion.spec import Phase
from perdure.agent.discussion.state import Contribution, DiscussionState
from perdure.agent.discussion.steps import (
    DiscussionStep,
    Draft,
    Intent,
    Place,
    Prune,
    TakeTurns,
    Write,
)
from perdure.agent.discussion.tally import Tally
from perdure.events.discussion import MODERATOR, SYSTEM, system_content


def decide(state: DiscussionState, inbox: Sequence[Contribution] = ()) -> DiscussionStep | None:
    """Return the next step; None once the discussion is over."""
    if state.stage == "over":
        return None
    # What comes anew stands behind what an earlier run has written: the steps come there first.
    if inbox and not has_ended(state) and state.end >= state.logged_end:
        return _contribute(state, inbox[0])
    number, place, phase = state.step, Place(phase=state.phase, round=state.round), phase_of(state)
    match state.stage:
        case "intents":
            return _turns(state, "intent", phase.speakers)
        case "grants":
            return _grant(state, phase)
        case "speeches":
            return _turns(state, "speech", state.queue[:1])
        case "vote":
            return _turns(state, "vote", phase.speakers)
        case "tally":
            content = tally_of(apply_logged(state)).model_dump(exclude_none=True)
            draft = Draft(type="VOTE", speaker=SYSTEM, content=content, meta=meta(state))
            return Write(number=number, place=place, drafts=(draft,), effect="tally")
        case "summary":
            return _summarize(state)
        case "transition":
            to = END if is_last_phase(state) else state.outline.phases[state.phase + 1].name
            content = system_content(PHASE_TRANSITION, **{"from": phase.name, "to": to})
            draft = Draft(type="SYSTEM", speaker=SYSTEM, content=content)
            return Write(number=number, place=place, drafts=(draft,), effect="transition")
        case "prune":
            assert state.outline.prune is not None, "without a policy nothing is pruned"
            return Prune(number=number, policy=state.outline.prune, through=state.end)


def has_ended(state: DiscussionState) -> bool:
    """Tell whether the log says that the discussion is over; it may still be pruned."""
    return state.stage == "over" or (state.stage == "prune" and is_last_phase(state))


def phase_of(state: DiscussionState) -> Phase:
    return state.outline.phases[state.phase]


def is_last_phase(state: DiscussionState) -> bool:
    """Tell whether no phase follows, as none does after a limit."""
    return state.ending is not None or state.phase + 1 == len(state.outline.phases)


def meta(state: DiscussionState) -> dict[str, str | int]:
    return {"phase": phase_of(state).name, "round": state.round}


def tally_of(state: DiscussionState) -> Tally:
    """Count the ballots of this vote."""
    phase = phase_of(state)
    counted = Counter(ballot.strip().casefold() for ballot in state.ballots.values())
    counts = {option: counted[option.casefold()] for option in phase.options}
    most = max(counts.values())
    winners = [option for option, number in counts.items() if number == most]
    is_majority = most > phase.majority * sum(counts.values()) and len(winners) == 1
    return Tally(phase=phase.name, counts=counts, winner=winners[0] if is_majority else None)


def rank_intents(state: DiscussionState) -> list[Intent]:
    """Order the intents by the policy; who has spoken less goes first among the equally urgent."""
    agents = state.outline.agents
    if state.outline.policy == "round_robin":
        first = agents.index(state.last_granted) + 1 if state.last_granted in agents else 0
        order = {name: nth for nth, name in enumerate(agents[first:] + agents[:first])}
        return sorted(state.intents, key=lambda intent: order[intent.speaker])
    return sorted(
        state.intents,
        key=lambda intent: (
            -intent.urgency,
            state.speeches.get(intent.speaker, 0),
            agents.index(intent.speaker),
        ),
    )


def find_limit(state: DiscussionState, seconds: float) -> str | None:
    """Return the limit that the discussion has reached; `seconds` is its age."""
    limits = state.outline.limits
    if limits.budget is not None and state.cost >= limits.budget:
        return f"it has spent ${state.cost:.4f} of ${limits.budget:g}"
    if limits.turns is not None and state.turns >= limits.turns:
        return f"it has had {limits.turns} speeches"
    if limits.time is not None and seconds >= limits.time:
        return f"its {limits.time:g} seconds are over"
    return None


def _turns(
    state: DiscussionState,
    request: str,
    speakers: Sequence[str],
    candidates: Sequence[Intent] = (),
    most: int = 0,
) -> TakeTurns:
    return TakeTurns.model_validate(
        {
            "number": state.step,
            "request": request,
            "place": Place(phase=state.phase, round=state.round),
            "speakers": tuple(speakers),
            "candidates": tuple(candidates),
            "most": most,
        }
    )


def _grant(state: DiscussionState, phase: Phase) -> DiscussionStep:
    ranked = rank_intents(state)
    most = phase.speeches or len(ranked)
    if state.outline.limits.turns is not None:
        most = min(most, state.outline.limits.turns - state.turns)
    if state.outline.policy == "model":
        return _turns(state, "grants", (MODERATOR,), ranked, most)
    drafts = tuple(grant_draft(intent.speaker, meta(state)) for intent in ranked[:most])
    place = Place(phase=state.phase, round=state.round)
    return Write(number=state.step, place=place, drafts=drafts, effect="grants")


def grant_draft(speaker: str, meta: dict[str, str | int]) -> Draft:
    content = system_content(GRANT, speaker=speaker)
    return Draft(type="SYSTEM", speaker=SYSTEM, content=content, meta=meta)


def _summarize(state: DiscussionState) -> DiscussionStep:
    """Sum up a phase by the moderator's model; after a limit, without one."""
    if state.outline.has_model and state.ending is None:
        return _turns(state, "summary", (MODERATOR,))
    draft = digest_draft(phase_of(state).name)
    place = Place(phase=state.phase, round=state.round)
    return Write(number=state.step, place=place, drafts=(draft,), effect="summary")


def digest_draft(phase: str) -> Draft:
    """Draft the summary that lists who said what."""
    return Draft(type="SUMMARY", speaker=MODERATOR, meta={"phase": phase}, digest=True)


def _contribute(state: DiscussionState, item: Contribution) -> Write:
    """Write what a person says or votes; a speech is granted as every other."""
    drafts: list[Draft] = []
    if item.speaker not in state.people:
        content = system_content(JOINED, speaker=item.speaker)
        drafts.append(Draft(type="SYSTEM", speaker=SYSTEM, content=content))
    about: dict[str, str | int] = meta(state)
    about |= {"reply_to": item.reply_to} if item.reply_to else {}
    about |= {"contribution": item.id} if item.id else {}
    if item.type == "SPEECH":
        drafts.append(grant_draft(item.speaker, meta(state)))
        drafts.append(Draft(type="SPEECH", speaker=item.speaker, content=item.content, meta=about))
    else:
        ballot = {"ballot": item.content, **({"reason": item.reason} if item.reason else {})}
        drafts.append(Draft(type="VOTE", speaker=item.speaker, content=ballot, meta=about))
    return Write(
        number=state.step,
        place=Place(phase=state.phase, round=state.round),
        drafts=tuple(drafts),
        effect="contribution",
        contribution=item.id,
    )

"""The events that the answers of a step's agents become."""

from collections.abc import Sequence
from typing import Any

from perdure.activities.discussion.turns import TurnAnswer
from perdure.agent.discussion.answers import parse_ballot, parse_grants, parse_intent
from perdure.agent.discussion.decide import digest_draft, grant_draft
from perdure.agent.discussion.log_state import PASSED_OVER
from perdure.agent.discussion.spec import DiscussionSpec, Phase
from perdure.agent.discussion.steps import Answer, Draft, Intent, TakeTurns
from perdure.events.discussion import MODERATOR, SYSTEM, system_content

MAX_REASON_CHARS = 500

NO_BALLOT = "its ballot is none of the options"
NO_GRANTS = "it did not say who should speak"


def make_drafts(
    spec: DiscussionSpec, step: TakeTurns, texts: Sequence[TurnAnswer]
) -> tuple[tuple[Answer, ...], list[Draft]]:
    """Return what each answer came to, and the events to write, in the order of the speakers."""
    answers: list[Answer] = []
    drafts: list[Draft] = []
    phase = spec.phases[step.place.phase]
    meta: dict[str, Any] = {"phase": phase.name, "round": step.place.round}
    for speaker, text in zip(step.speakers, texts, strict=True):
        answer, events = _interpret(step, phase, speaker, text, meta)
        totals = {"begun": text.exists, "cost": text.total_cost, "tokens": text.total_tokens}
        answers.append(answer.model_copy(update=totals))
        drafts += events
    return tuple(answers), drafts


def _interpret(
    step: TakeTurns, phase: Phase, speaker: str, turn: TurnAnswer, meta: dict[str, Any]
) -> tuple[Answer, list[Draft]]:
    if step.request in ("grants", "summary"):
        return _interpret_moderator(step, phase, turn, meta)
    if turn.failure is not None:
        return _pass_over(speaker, turn.failure, meta)
    text = turn.text
    if step.request == "intent":
        intent = parse_intent(text)
        if intent is None or not intent.speaks:
            return Answer(speaker=speaker), []
        wish = Intent(speaker=speaker, urgency=intent.urgency, line=intent.line)
        content = {"urgency": intent.urgency, "line": intent.line}
        draft = Draft(type="INTENT", speaker=speaker, content=content, meta=meta)
        return Answer(speaker=speaker, intent=wish), [draft]
    if step.request == "vote":
        ballot = parse_ballot(text, phase.options)
        if ballot is None:
            return _pass_over(speaker, NO_BALLOT, meta)
        vote = {name: value for name, value in ballot.model_dump().items() if value}
        draft = Draft(type="VOTE", speaker=speaker, content=vote, meta=meta)
        return Answer(speaker=speaker, ballot=ballot.ballot), [draft]
    meta = {**meta, **({"tokens": turn.tokens} if turn.tokens else {})}
    draft = Draft(type="SPEECH", speaker=speaker, content=text, meta=meta)
    return Answer(speaker=speaker, spoke=True), [draft]


def _interpret_moderator(
    step: TakeTurns, phase: Phase, turn: TurnAnswer, meta: dict[str, Any]
) -> tuple[Answer, list[Draft]]:
    """A moderator without an answer is noted, and the policy or a digest takes its place."""
    if step.request == "summary":
        if turn.failure is None:
            draft = Draft(
                type="SUMMARY", speaker=MODERATOR, content=turn.text, meta={"phase": phase.name}
            )
            return Answer(speaker=MODERATOR), [draft]
        answer, drafts = _pass_over(MODERATOR, turn.failure, meta)
        return answer, [*drafts, digest_draft(phase.name)]
    names = [intent.speaker for intent in step.candidates]
    grants = None if turn.failure else parse_grants(turn.text, names, step.most)
    if grants is None:
        answer, drafts = _pass_over(MODERATOR, turn.failure or NO_GRANTS, meta)
        granted = tuple(names[: step.most])
    else:
        answer, drafts = Answer(speaker=MODERATOR, consensus=grants.consensus), []
        granted = grants.speakers
    drafts = [*drafts, *(grant_draft(name, meta) for name in granted)]
    return answer.model_copy(update={"granted": granted}), drafts


def _pass_over(speaker: str, reason: str, meta: dict[str, Any]) -> tuple[Answer, list[Draft]]:
    """Note why an agent is passed over, which ends a grant that it has."""
    reason = reason if len(reason) <= MAX_REASON_CHARS else f"{reason[: MAX_REASON_CHARS - 1]}…"
    content = system_content(PASSED_OVER, speaker=speaker, reason=reason)
    draft = Draft(type="SYSTEM", speaker=SYSTEM, content=content, meta=meta)
    return Answer(speaker=speaker, failure=reason), [draft]

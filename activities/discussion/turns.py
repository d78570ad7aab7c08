"""The turns of a discussion's agents: what they are asked, and what they answered."""

from collections.abc import Sequence

from perdure.agent.discussion import prompts
from perdure.agent.discussion.spec import DiscussionAgent, DiscussionSpec
from perdure.agent.discussion.steps import (
    DISCUSSION_TAG,
    PrepareTurn,
    TakeTurns,
    speaker_conversation_id,
    turn_message_id,
)
from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import MAX_RUN_EVENTS, Start
from perdure.agent.spec import Agent
from perdure.events.base import Frozen
from perdure.events.control import ConversationErrorEvent
from perdure.events.discussion import MODERATOR, AgentVisibleEvent, DiscussionEvent
from perdure.events.entry import Entry
from perdure.events.event import agent_text
from perdure.events.messages import MessageEvent
from perdure.storage.discussions.service import MAX_LIMIT
from perdure.storage.discussions.shared_log import SharedLog
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state

MAX_NEWS_BYTES = 32 * 1024
"""Bytes of the events that one prompt shows; older ones are left out."""

SENDER = "discussion"

SILENT = "it said nothing"


class TurnAnswer(Frozen):
    """The text of a turn, or why there is none, and what the conversation has cost so far."""

    text: str = ""
    failure: str | None = None
    tokens: int = 0
    """Tokens of the model's responses in this turn."""
    exists: bool = False
    total_cost: float = 0.0
    total_tokens: int = 0


async def prepare_turn(log: SharedLog, spec: DiscussionSpec, request: PrepareTurn) -> Start:
    """Build the start of the conversation in which an agent takes its turn."""
    step, key = request.step, request.key
    events, omitted = await _read_news(log, request)
    phase = spec.phases[step.place.phase]
    text = "".join(
        (
            prompts.news(list(map(AgentVisibleEvent.from_event, events)), omitted),
            prompts.phase_line(phase, step.place.round),
            _ask(spec, step),
        )
    )
    message = UserMessage(text=text, message_id=turn_message_id(step.number), sender=SENDER)
    return Start(
        conversation_id=speaker_conversation_id(key, request.speaker),
        user_id=key.user_id,
        spec=None if request.begun else build_agent(spec, request.speaker, key.session_id),
        discussion=key.session_id,
        searchable=request.searchable,
        model_queues=request.model_queues,
        inbox=(message,),
        max_run_events=MAX_RUN_EVENTS,
    )


async def read_answer(log: EventLog, step: int) -> TurnAnswer:
    """Read what an agent answered to the message of a step."""
    state = await read_state(log)
    seq = state.message_seqs.get(turn_message_id(step))
    totals = {
        "exists": state.spec is not None,
        "total_cost": state.usage.cost,
        "total_tokens": state.usage.prompt_tokens + state.usage.completion_tokens,
    }
    if seq is None:
        return TurnAnswer(failure="its conversation did not begin", **totals)
    entries = _first_turn(await log.read(seq, state.next_seq - seq))
    text, failure = "", None
    for entry in entries:
        if isinstance(entry.event, ConversationErrorEvent):
            text, failure = "", entry.event.export_note()
        elif said := agent_text(entry.event):
            text, failure = said, None
    tokens = sum(entry.usage.completion_tokens for entry in entries if entry.usage)
    if not text.strip():
        failure = failure or SILENT
    return TurnAnswer(text=text.strip(), failure=failure, tokens=tokens, **totals)


def build_agent(spec: DiscussionSpec, speaker: str, session_id: str) -> Agent:
    """Return the agent of a conversation: as the spec has it, with its part in the discussion."""
    if speaker == MODERATOR:
        assert spec.moderator.agent is not None, "a policy alone takes no turns"
        agent, prompt = spec.moderator.agent, prompts.moderator_prompt(spec)
    else:
        participant = _find_agent(spec, speaker)
        agent = participant.agent
        prompt = prompts.agent_prompt(spec, speaker, participant.persona)
    model, most = agent.model, spec.limits.speech_tokens
    if most is not None and speaker != MODERATOR:
        most = min(most, model.max_output_tokens or most)
        model = model.model_copy(update={"max_output_tokens": most})
    changes = {"model": model, "agent": agent.agent or speaker, "title_model": None}
    if not agent.tools and agent.system_prompt is None:
        changes["system_prompt"] = prompt
    else:  # our own prompt says how to work with tools
        changes["instructions"] = "\n\n".join(filter(None, (prompt, agent.instructions)))
    tags = (*agent.tags, f"{DISCUSSION_TAG}{session_id}")
    return agent.model_copy(update={**changes, "tags": tags})


def _find_agent(spec: DiscussionSpec, speaker: str) -> DiscussionAgent:
    return next(agent for agent in spec.agents if agent.id == speaker)


def _ask(spec: DiscussionSpec, step: TakeTurns) -> str:
    phase = spec.phases[step.place.phase]
    match step.request:
        case "intent":
            return prompts.INTENT
        case "speech":
            return prompts.SPEECH
        case "vote":
            return prompts.vote_request(phase.question or spec.topic, phase.options)
        case "summary":
            return prompts.SUMMARY.format(phase=phase.name)
        case "grants":
            intents = [(it.speaker, it.urgency, it.line) for it in step.candidates]
            return prompts.grants_request(intents, step.most)


async def _read_news(log: SharedLog, request: PrepareTurn) -> tuple[list[DiscussionEvent], int]:
    """Read the newest visible events of others that the agent has not seen, and count the rest.

    None is newer than the step, whatever agents beside it write meanwhile.
    """
    state = await log.refresh()
    unseen = [it for it, _ in state.visible if request.seen < it <= request.through]
    events = await log.read(unseen[-MAX_LIMIT:])
    left: list[DiscussionEvent] = []
    size = 0
    for event in reversed(events):
        if event.speaker == request.speaker:
            continue
        size += len(event.text.encode()) + 100
        if size > MAX_NEWS_BYTES and left:
            break
        left.append(event)
    others = sum(event.speaker != request.speaker for event in events)
    return left[::-1], len(unseen[:-MAX_LIMIT]) + others - len(left)


def _first_turn(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries up to the message of the next turn."""
    for nth, entry in enumerate(entries):
        if nth and isinstance(entry.event, MessageEvent) and entry.event.sender == SENDER:
            return entries[:nth]
    return entries

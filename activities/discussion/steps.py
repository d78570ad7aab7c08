"""The activities of a discussion: open it, prepare turns, record answers and events, prune."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from pydantic import ValidationError
from temporalio import activity

from perdure.activities.discussion.answers import make_drafts
from perdure.activities.discussion.turns import TurnAnswer, prepare_turn, read_answer
from perdure.activities.support.resources import Activities, Resources
from perdure.activities.support.step import (
    final_failure,
    non_retryable,
    now,
)
from perdure.agent.discussion.digest import digest
from perdure.agent.discussion.log_state import OPENED
from perdure.agent.discussion.logged import find_contributions
from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec, outline
from perdure.agent.discussion.steps import (
    Draft,
    OpenDiscussion,
    OpenedDiscussion,
    PrepareTurn,
    PruneEvents,
    RecordEvents,
    RecordResult,
    RecordTurns,
    speaker_conversation_id,
    step_event_id,
    step_name,
)
from perdure.agent.discussion.tally import Tally
from perdure.agent.loop.start import Start
from perdure.errors import ClientError
from perdure.events.discussion import (
    MAX_CONTENT_BYTES,
    SYSTEM,
    DiscussionEvent,
    system_content,
)
from perdure.secrets.masking import mask_value
from perdure.storage.cache import Cache
from perdure.storage.discussions.folder import load_spec
from perdure.storage.discussions.service import MAX_LIMIT
from perdure.storage.discussions.shared_log import SharedLog, select_visible
from perdure.storage.errors import BadSlot

MAX_OPEN_DISCUSSIONS = 64
"""Discussions whose log and spec stay in a worker's memory."""

OPENING = "opening"
"""The name of the step that opens a discussion."""


class DiscussionActivities(Activities):
    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self._open: Cache[tuple[str, str, str], tuple[SharedLog, DiscussionSpec]] = Cache(
            MAX_OPEN_DISCUSSIONS
        )

    @activity.defn(name="discussion.open")
    async def open(self, request: OpenDiscussion) -> OpenedDiscussion:
        """Write the event that names topic and agents; a repeat finds it."""
        async with self._discussion(request.key) as (log, spec):
            details: dict[str, Any] = {
                "topic": spec.topic,
                "agents": [agent.id for agent in spec.agents],
                "phases": [phase.name for phase in spec.phases],
            }
            content = system_content(OPENED, **details)
            draft = Draft(type="SYSTEM", speaker=SYSTEM, content=content)
            [event] = await self._append(log, request.key, OPENING, 0, [draft])
            log_end = (await log.refresh()).end
            later = await log.read(range(event.sequence + 1, log_end + 1))
            logged = find_contributions(later, (agent.id for agent in spec.agents))
            return OpenedDiscussion(
                outline=outline(spec), end=event.sequence, logged=tuple(logged), log_end=log_end
            )

    @activity.defn(name="discussion.prepare")
    async def prepare(self, request: PrepareTurn) -> Start:
        """Build the start of the conversation in which an agent takes a turn."""
        async with self._discussion(request.key) as (log, spec):
            return await prepare_turn(log, spec, request)

    @activity.defn(name="discussion.answers")
    async def record_answers(self, request: RecordTurns) -> RecordResult:
        """Write what the agents answered; one without an answer is passed over."""
        async with self._discussion(request.key) as (log, spec):
            texts = [await self._read_answer(request, speaker) for speaker in request.step.speakers]
            answers, drafts = make_drafts(spec, request.step, texts)
            events = await self._append(
                log, request.key, step_name(request.step), request.after, drafts
            )
            summaries = [event.text for event in events if event.type == "SUMMARY"]
            return _make_result(request.after, events, answers=answers, summary=summaries[-1:])

    @activity.defn(name="discussion.events")
    async def record_events(self, request: RecordEvents) -> RecordResult:
        """Write events; what a person says is refused where the log refuses it."""
        async with self._discussion(request.key) as (log, _):
            step = request.step
            try:
                events = await self._append(
                    log, request.key, step_name(step), request.after, step.drafts
                )
            except (ClientError, ValidationError) as error:
                if step.effect != "contribution":
                    raise non_retryable(error) from error
                return RecordResult(end=(await log.refresh()).end)
            summaries = [event.text for event in events if event.type == "SUMMARY"]
            tally = Tally.model_validate(events[-1].content) if step.effect == "tally" else None
            return _make_result(request.after, events, summary=summaries[-1:], tally=tally)

    @activity.defn(name="discussion.prune")
    async def prune(self, request: PruneEvents) -> None:
        """Take events out of the readers' sight; a repeat finds none."""
        async with self._discussion(request.key) as (log, _):
            await log.prune(request.step.policy, now(), request.step.through)

    async def _read_answer(self, request: RecordTurns, speaker: str) -> TurnAnswer:
        log = self.resources.log(request.key.user_id, speaker_conversation_id(request.key, speaker))
        answer = await read_answer(log, request.step.number)
        if failure := request.failures.get(speaker):
            answer = answer.model_copy(update={"text": "", "failure": failure})
        return answer

    async def _append(
        self,
        log: SharedLog,
        key: DiscussionKey,
        step: str,
        after: int,
        drafts: Sequence[Draft],
    ) -> list[DiscussionEvent]:
        """Write the events of a step in order, each once however often this is called."""
        events: list[DiscussionEvent] = []
        mask = partial(mask_value, mask=self.resources.secrets_of(key.user_id).mask)
        for nth, draft in enumerate(drafts):
            content = await _digest(log, draft) if draft.digest else draft.content
            event = DiscussionEvent(
                event_id=step_event_id(key, step, nth),
                type=draft.type,
                speaker=draft.speaker,
                content=_cut(mask(content)),
                timestamp=now(),
                session_id=key.session_id,
                sequence=1,
                meta=draft.meta or None,
            )
            events.append(await log.append(event, events[-1].sequence if events else after))
        return events

    @asynccontextmanager
    async def _discussion(
        self, key: DiscussionKey
    ) -> AsyncIterator[tuple[SharedLog, DiscussionSpec]]:
        """Heartbeat while the body runs; yield the log and the spec. Raises ApplicationError."""
        async with self.heartbeating_for(key.user_id):
            place = (key.user_id, key.session_id)
            # A discussion that was deleted may have left its id to another one: its run tells.
            opened = (*place, activity.info().workflow_run_id or "")
            if (known := self._open.get(opened)) is None:
                spec = await load_spec(self.resources.store, *place)
                if spec is None:
                    sentence = f"There is no discussion {key.session_id}: start one first."
                    raise final_failure("DiscussionNotFound", sentence)
                known = SharedLog(self.resources.store, *place), spec
                self._open.put(opened, known)
            try:
                yield known
            # What the log refuses once it refuses again; a bad slot's sentence names the object.
            except (BadSlot, ClientError, ValidationError) as error:
                raise non_retryable(error) from error


def _make_result(
    after: int, events: Sequence[DiscussionEvent], summary: Sequence[str], **more: Any
) -> RecordResult:
    last = events[-1].sequence if events else after
    first = events[0].sequence if events else 0
    summaries = next(iter(summary), None)
    return RecordResult(end=last, first=first, sequence=last, summary=summaries, **more)


async def _digest(log: SharedLog, draft: Draft) -> str:
    events = await log.read(select_visible(await log.refresh(), MAX_LIMIT))
    return digest(str(draft.meta["phase"]), events)


def _cut(content: Any) -> Any:
    """Cut a text that is longer than an event takes."""
    if not isinstance(content, str) or len(content.encode()) <= MAX_CONTENT_BYTES:
        return content
    end = " … (cut)"
    return content.encode()[: MAX_CONTENT_BYTES - len(end) - 8].decode(errors="ignore") + end

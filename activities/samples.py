"""The steps of a conversation that is an attempt at a sample: what comes before and after."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.batch_folders import told
from activities.judging import judged
from activities.llm_messages import save_messages
from activities.log import keep_state
from activities.masking import masked
from activities.outcomes import Left, outcome_of
from activities.saying import say
from activities.set_up import SetUpFailed, set_up
from activities.step import at_work, digests, is_retry, now, origin
from activities.workspace import keeps, recorded, restored
from activities.world import World, spec_at
from activities.writer import Writer, write_alone
from agent.spec import Spec
from agent.state import State
from agent.steps import Finish, Say, SetUp, Task
from agent.trial import Scored, Trial
from evaluation.progress import scored_of
from evaluation.result import Attempt, rescored
from evaluation.running import Rescoring
from evaluation.sample import Sample, conversation_id
from evaluation.spec import BatchSpec
from events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from events.digest import Digest
from events.entry import Entry
from events.files import Files
from storage.batches import BatchFolder
from storage.log import EventLog
from storage.state import state_of
from tools.terminal import SESSIONS

SETTING_UP = 600.0
"""Seconds that the command of a sample may take before its first message."""


@dataclass(frozen=True)
class Attempting:
    """One attempt at a sample, and where all of it is."""

    trial: Trial
    batch: BatchSpec
    sample: Sample
    folder: BatchFolder
    log: EventLog


class SampleActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="sample.set_up")
    async def set_up(self, task: Task[SetUp]) -> list[Digest]:
        """Make the workspace what the sample says; a repeated attempt makes it anew."""
        async with at_work(self.world.secrets) as news:
            one = await self._attempting(task, task.step.trial)
            spec = await spec_at(one.log, task.step.spec)
            if is_retry() and (held := await one.log.find(task.base)) is not None:
                await restored(self.world, one.log, spec, held.seq)  # it may have been elsewhere
                return digests(await self._asked(one, held, spec))
            place = self.world.workspace(spec, task.conversation_id)
            walls = self.world.sandbox
            try:
                output = await set_up(
                    one.sample, place, walls, news.tell, network=spec.network, timeout=SETTING_UP
                )
            except SetUpFailed as error:
                detail = self.world.secrets.mask(str(error))
                failed = ConversationErrorEvent(timestamp=now(), code="setup_failed", detail=detail)
                return digests(await write_alone(one.log, [failed], task.base, "failure"))
            event = ConversationStateUpdateEvent(
                timestamp=now(),
                source="environment",
                key="set_up",
                value=masked({"sample": one.sample.id, "output": output}, self.world.secrets.mask),
            )
            return digests(await self._set_up(one, task, spec, event))

    @activity.defn(name="sample.say")
    async def say(self, task: Task[Say]) -> list[Digest]:
        """Say what the sample says in this turn."""
        async with at_work():
            one = await self._attempting(task, task.step.trial)
            spec = await spec_at(one.log, task.step.spec)
            writer = Writer(one.log, task.base)
            await say(self.world, writer, one.sample, task.step.turn, spec, task.step.skills)
            return digests(await writer.all())

    @activity.defn(name="sample.finish")
    async def finish(self, task: Task[Finish]) -> Scored:
        """Keep the state, score what the agent left behind, and put the result on record."""
        async with at_work(self.world.secrets):
            one = await self._attempting(task, task.step.trial)
            state = task.step.state
            await keep_state(one.log, state, closing=True)
            if self.world.save_llm_messages:
                await save_messages(one.log, state)
            self.world.mcp.forget(task.conversation_id)
            await SESSIONS.end(task.conversation_id)  # nothing changes while it is looked at
            trial, sample = one.trial, one.sample
            if is_retry() and (
                held := await one.folder.result(sample.id, trial.epoch, trial.number)
            ):
                return scored_of(held.attempts[0])
            attempt = await self._attempt(one, state)
            recorded = await one.folder.record(sample, attempt)
            self.world.forget(one.log, state.next_seq)
            return scored_of(recorded)

    @activity.defn(name="sample.rescore")
    async def rescore(self, task: Rescoring) -> Scored:
        """Score an attempt again, from its log; what the agent did stays as it is."""
        async with at_work(self.world.secrets):
            trial = task.trial
            name = conversation_id(
                f"{task.user_id}/{trial.batch}", task.sample, trial.epoch, trial.number
            )
            log = self.world.log_of(task.user_id, name)
            folder = self.world.batch(task.user_id, trial.batch)
            batch, sample = await told(folder, trial)
            one = Attempting(trial, batch, sample, folder, log)
            state = await state_of(log)
            attempt = await self._attempt(one, state)
            await folder.rescore(sample, attempt)
            self.world.forget(log, state.next_seq)
            return scored_of(attempt)

    async def _attempting(
        self, task: Task[SetUp] | Task[Say] | Task[Finish], trial: Trial
    ) -> Attempting:
        folder = self.world.batch(task.user_id, trial.batch)
        batch, sample = await told(folder, trial)
        return Attempting(trial, batch, sample, folder, self.world.log(task))

    async def _set_up(
        self,
        one: Attempting,
        task: Task[SetUp],
        spec: Spec,
        event: ConversationStateUpdateEvent,
    ) -> list[Entry]:
        """Say that it is done, where the files are, and what the sample asks."""

        async def append(files: Files | None) -> list[Entry]:
            return await one.log.append(
                [event], base=task.base, origin=origin("set up"), shared=True, files=files
            )

        entries = await recorded(self.world, one.log, spec, None, append, changed=True)
        return await self._asked(one, entries[-1], spec)

    async def _asked(self, one: Attempting, last: Entry, spec: Spec) -> list[Entry]:
        """That it is set up, and what the sample says then."""
        writer = Writer(one.log, last.seq + 1)
        if isinstance(last.event, ConversationStateUpdateEvent):
            await say(self.world, writer, one.sample, 0, spec, None)
        return [last, *await writer.all()]

    async def _attempt(self, one: Attempting, state: State) -> Attempt:
        """What came of it, with its scores; what could not be scored is a failure."""
        left = await outcome_of(one.log, state)
        attempt = _unscored(one, left, state)
        if left.failure is not None:
            return attempt.model_copy(update={"status": "failed", "failure": left.failure})
        spec = state.spec or one.batch.agent
        place = await self._place(one, spec, state) if one.trial.look else None
        outcome = left.outcome.model_copy(update={"workspace": str(place) if place else None})
        judgement = await judged(self.world, one.batch, one.sample, outcome, place, _Kept(one))
        paid = attempt.model_copy(update={"grading": judgement.usage})
        if judgement.failure is not None:
            return paid.model_copy(update={"status": "failed", "failure": judgement.failure})
        return rescored(paid, judgement.scores)

    async def _place(self, one: Attempting, spec: Spec, state: State) -> Path | None:
        """Where the agent's files are; nowhere, if they are gone and were not kept."""
        folder = self.world.workspaces / one.log.conversation_id
        await restored(self.world, one.log, spec, state.files)
        never_changed = state.files is None and keeps(self.world, spec)
        if not folder.is_dir() and not never_changed:
            return None
        return self.world.workspace(spec, one.log.conversation_id)


class _Kept:
    """The replies of grading models: asked for once, unless the scorers are others by now."""

    def __init__(self, one: Attempting) -> None:
        told = "".join(scorer.model_dump_json() for scorer in one.batch.scorers)
        self._scorers = hashlib.sha256(told.encode()).hexdigest()[:8]
        self._one = one

    async def read(self, scorer: str) -> bytes | None:
        return await self._one.folder.grading(*self._place(scorer))

    async def keep(self, scorer: str, body: bytes) -> bytes:
        return await self._one.folder.keep_grading(*self._place(scorer), body)

    def _place(self, scorer: str) -> tuple[str, int, int, str]:
        trial = self._one.trial
        return self._one.sample.id, trial.epoch, trial.number, f"{scorer}.{self._scorers}"


def _unscored(one: Attempting, left: Left, state: State) -> Attempt:
    return Attempt(
        conversation_id=one.log.conversation_id,
        epoch=one.trial.epoch,
        number=one.trial.number,
        status="limited" if left.limit else "scored",
        answer=left.answer,
        limit=left.limit,
        stuck=left.stuck,
        usage=state.spent,
        seconds=left.seconds,
        turns=left.turns,
        tool_calls=left.tool_calls,
        tool_errors=left.tool_errors,
    )

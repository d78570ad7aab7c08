"""The activities of an attempt at a sample: set-up, turns, scoring."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from perdure.activities.batch.outcomes import AttemptOutcome, read_outcome
from perdure.activities.batch.sample_messages import write_turn
from perdure.activities.batch.scoring import score_attempt
from perdure.activities.batch.set_up import SetUpFailed, set_up
from perdure.activities.support.batch_cache import load_batch_and_sample
from perdure.activities.support.llm_messages import save_messages
from perdure.activities.support.resources import Resources, load_spec
from perdure.activities.support.save_state import save_state
from perdure.activities.support.step import heartbeating, is_retry, now, origin, summarize_all
from perdure.activities.support.writer import Writer, append_exclusive
from perdure.activities.workspace.snapshots import keeps_files, record_with_files, restore_files
from perdure.agent.loop.attempt import Attempt, AttemptSummary
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import FinishAttempt, Say, SetUp, Task
from perdure.agent.spec import Agent
from perdure.evaluation.messages import RescoreRequest
from perdure.evaluation.progress import summarize_attempt
from perdure.evaluation.result import AttemptResult, replace_scores
from perdure.evaluation.sample import Sample, conversation_id
from perdure.evaluation.spec import BatchSpec
from perdure.events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from perdure.events.entry import Entry, Files
from perdure.events.summary import EventSummary
from perdure.secrets.masking import mask_value
from perdure.storage.batches import BatchFolder
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.temporal.timeouts import SETUP_TIMEOUT
from perdure.tools.terminal import SESSIONS


@dataclass(frozen=True)
class SampleAttempt:
    """An attempt at a sample, with its batch, folder and log."""

    trial: Attempt
    batch: BatchSpec
    sample: Sample
    folder: BatchFolder
    log: EventLog


class SampleActivities:
    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    @activity.defn(name="sample.set_up")
    async def set_up(self, task: Task[SetUp]) -> list[EventSummary]:
        """Set up the workspace of a sample; a retry sets it up anew."""
        async with heartbeating(self.resources.secrets) as progress:
            attempt = await self._load_attempt(task, task.step.attempt)
            spec = await load_spec(attempt.log, task.step.spec_seq)
            if is_retry() and (recorded := await attempt.log.find(task.base)) is not None:
                # The earlier attempt may have run on another worker.
                await restore_files(self.resources, attempt.log, spec, recorded.seq)
                return summarize_all(await self._write_first_turn(attempt, recorded, spec))
            try:
                output = await set_up(
                    attempt.sample,
                    self.resources.workspace(spec, task.conversation_id),
                    self.resources.sandbox,
                    progress.report,
                    network=spec.network,
                    timeout=SETUP_TIMEOUT.total_seconds(),
                )
            except SetUpFailed as error:
                detail = self.resources.secrets.mask(str(error))
                failed = ConversationErrorEvent(timestamp=now(), code="setup_failed", detail=detail)
                return summarize_all(
                    await append_exclusive(attempt.log, [failed], task.base, "failure")
                )
            event = ConversationStateUpdateEvent(
                timestamp=now(),
                source="environment",
                key="set_up",
                value=mask_value(
                    {"sample": attempt.sample.id, "output": output}, self.resources.secrets.mask
                ),
            )
            return summarize_all(await self._record_set_up(attempt, task, spec, event))

    @activity.defn(name="sample.say")
    async def say(self, task: Task[Say]) -> list[EventSummary]:
        """Write the messages of the sample's turn."""
        async with heartbeating():
            attempt = await self._load_attempt(task, task.step.attempt)
            spec = await load_spec(attempt.log, task.step.spec_seq)
            writer = Writer(attempt.log, task.base)
            await write_turn(
                self.resources, writer, attempt.sample, task.step.turn, spec, task.step.shown_skills
            )
            return summarize_all(await writer.entries())

    @activity.defn(name="sample.finish")
    async def finish(self, task: Task[FinishAttempt]) -> AttemptSummary:
        """Save the state, score the attempt, and record the result."""
        async with heartbeating(self.resources.secrets):
            attempt = await self._load_attempt(task, task.step.attempt)
            state = task.step.state
            await save_state(attempt.log, state, closing=True)
            if self.resources.save_llm_messages:
                await save_messages(attempt.log, state)
            self.resources.mcp.close_conversation(task.conversation_id)
            await SESSIONS.close_session(
                task.conversation_id
            )  # nothing may change while it is scored
            trial, sample = attempt.trial, attempt.sample
            if is_retry() and (
                recorded := await attempt.folder.read_result(sample.id, trial.epoch, trial.number)
            ):
                return summarize_attempt(recorded.attempts[0])
            result = await attempt.folder.record_attempt(sample, await self._score(attempt, state))
            self.resources.evict(attempt.log, state.next_seq)
            return summarize_attempt(result)

    @activity.defn(name="sample.rescore")
    async def rescore(self, task: RescoreRequest) -> AttemptSummary:
        """Score an attempt again from its log."""
        async with heartbeating(self.resources.secrets):
            trial = task.trial
            name = conversation_id(
                f"{task.user_id}/{trial.batch}", task.sample, trial.epoch, trial.number
            )
            log = self.resources.log_of(task.user_id, name)
            folder = self.resources.batch(task.user_id, trial.batch)
            batch, sample = await load_batch_and_sample(folder, trial)
            attempt = SampleAttempt(trial, batch, sample, folder, log)
            state = await read_state(log)
            result = await self._score(attempt, state)
            await folder.replace_attempt(sample, result)
            self.resources.evict(log, state.next_seq)
            return summarize_attempt(result)

    async def _load_attempt(
        self, task: Task[SetUp] | Task[Say] | Task[FinishAttempt], trial: Attempt
    ) -> SampleAttempt:
        folder = self.resources.batch(task.user_id, trial.batch)
        batch, sample = await load_batch_and_sample(folder, trial)
        return SampleAttempt(trial, batch, sample, folder, self.resources.log(task))

    async def _record_set_up(
        self,
        attempt: SampleAttempt,
        task: Task[SetUp],
        spec: Agent,
        event: ConversationStateUpdateEvent,
    ) -> list[Entry]:
        """Record the set-up with a snapshot of its files, and the first turn."""

        async def append(files: Files | None) -> list[Entry]:
            return await attempt.log.append(
                [event], base=task.base, origin=origin("set up"), shared=True, files=files
            )

        entries = await record_with_files(
            self.resources, attempt.log, spec, None, append, changed=True
        )
        return await self._write_first_turn(attempt, entries[-1], spec)

    async def _write_first_turn(
        self, attempt: SampleAttempt, last: Entry, spec: Agent
    ) -> list[Entry]:
        """Write the first turn behind the set-up, unless that has failed."""
        writer = Writer(attempt.log, last.seq + 1)
        if isinstance(last.event, ConversationStateUpdateEvent):
            await write_turn(self.resources, writer, attempt.sample, 0, spec, None)
        return [last, *await writer.entries()]

    async def _score(self, attempt: SampleAttempt, state: State) -> AttemptResult:
        """Score the finished conversation; a scorer error becomes `status="failed"`."""
        final = await read_outcome(attempt.log, state)
        unscored = _unscored_attempt(attempt, final, state)
        if final.failure is not None:
            return unscored.model_copy(update={"status": "failed", "failure": final.failure})
        spec = state.spec or attempt.batch.agent
        workspace = (
            await self._workspace_left(attempt, spec, state)
            if attempt.trial.scores_workspace
            else None
        )
        path = str(workspace) if workspace else None
        outcome = final.outcome.model_copy(update={"workspace": path})
        result = await score_attempt(
            self.resources,
            attempt.batch,
            attempt.sample,
            outcome,
            workspace,
            _StoredReplies(attempt),
        )
        unscored = unscored.model_copy(update={"grading": result.usage})
        if result.failure is not None:
            return unscored.model_copy(update={"status": "failed", "failure": result.failure})
        return replace_scores(unscored, result.scores)

    async def _workspace_left(
        self, attempt: SampleAttempt, spec: Agent, state: State
    ) -> Path | None:
        """Return the agent's workspace, None if it is gone and was not kept."""
        folder = self.resources.workspaces / attempt.log.conversation_id
        await restore_files(self.resources, attempt.log, spec, state.files_seq)
        never_changed = state.files_seq is None and keeps_files(self.resources, spec)
        if not folder.is_dir() and not never_changed:
            return None
        return self.resources.workspace(spec, attempt.log.conversation_id)


class _StoredReplies:
    """The stored replies of grading models, requested again only if the scorers changed."""

    def __init__(self, attempt: SampleAttempt) -> None:
        scorers = "".join(scorer.model_dump_json() for scorer in attempt.batch.scorers)
        self._scorers = hashlib.sha256(scorers.encode()).hexdigest()[:8]
        self._attempt = attempt

    async def read(self, scorer: str) -> bytes | None:
        return await self._attempt.folder.read_grading(*self._key(scorer))

    async def keep(self, scorer: str, body: bytes) -> bytes:
        return await self._attempt.folder.record_grading(*self._key(scorer), body)

    def _key(self, scorer: str) -> tuple[str, int, int, str]:
        trial = self._attempt.trial
        return self._attempt.sample.id, trial.epoch, trial.number, f"{scorer}.{self._scorers}"


def _unscored_attempt(attempt: SampleAttempt, final: AttemptOutcome, state: State) -> AttemptResult:
    return AttemptResult(
        conversation_id=attempt.log.conversation_id,
        epoch=attempt.trial.epoch,
        number=attempt.trial.number,
        status="limited" if final.limit else "scored",
        answer=final.answer,
        limit=final.limit,
        stuck=final.stuck,
        usage=state.usage,
        seconds=final.seconds,
        turns=final.turns,
        tool_calls=final.tool_calls,
        tool_errors=final.tool_errors,
    )

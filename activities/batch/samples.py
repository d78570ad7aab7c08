"""The activities of an attempt at a sample: set-up, turns, scoring."""

from functools import partial

from temporalio import activity

from perdure.activities.batch.command import CommandContext
from perdure.activities.batch.outcomes import read_outcome
from perdure.activities.batch.sample_messages import write_turn
from perdure.activities.batch.scoring import score_attempt
from perdure.activities.batch.set_up import SetUpFailed, set_up
from perdure.activities.support.inbox_events import error_event, state_update
from perdure.activities.support.load import load_batch, load_spec
from perdure.activities.support.resources import Activities
from perdure.activities.support.save_state import save_closed
from perdure.activities.support.step import final_failure, is_retry, now, origin
from perdure.activities.support.writer import Writer, append_exclusive
from perdure.activities.workspace.file_changes import record_changes
from perdure.activities.workspace.snapshots import keeps_files, record_with_files, restore_files
from perdure.agent.loop.attempt import Attempt, AttemptSummary
from perdure.agent.loop.model_queues import GRADED
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import FinishAttempt, Say, SetUp, Task
from perdure.agent.spec import Agent
from perdure.evaluation.messages import RescoreRequest
from perdure.evaluation.progress import summarize_attempt
from perdure.evaluation.result import AttemptResult
from perdure.evaluation.sample import Sample, attempt_conversation_id
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.events.summary import EventSummary
from perdure.storage.batches import BatchFolder
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.temporal.timeouts import SETUP_TIMEOUT
from perdure.temporal.worker_load import waiting
from perdure.tools.terminal import SESSIONS


class SampleActivities(Activities):
    @activity.defn(name="sample.set_up")
    async def set_up(self, task: Task[SetUp]) -> list[EventSummary]:
        """Set up the workspace of a sample; a retry sets it up anew."""
        async with self.begin(task) as (log, progress):
            self.resources.queues.admit_tool()
            spec = await load_spec(log, task.step.spec_seq)
            sample = await self.resources.load_sample(task.user_id, task.step.attempt)
            recorded = await log.find(task.base) if is_retry() else None
            if recorded is not None:  # maybe on another worker
                await restore_files(self.resources, log, spec, recorded.seq)
                return await self._write_first_turn(log, sample, recorded, spec)
            folder = self.resources.workspace(spec, log)
            sandbox, masker = self.resources.sandbox, self.resources.secrets_of(task.user_id).masker
            context = CommandContext(folder, sandbox, spec.network, masker)
            seconds = SETUP_TIMEOUT.total_seconds()
            try:
                with waiting():
                    output = await set_up(sample, context, progress.report, seconds)
            except SetUpFailed as error:
                failed = error_event(now(), "setup_failed", str(error))
                return await append_exclusive(log, [failed], task.base, "failure")
            event = state_update(now(), "set_up", {"sample": sample.id, "output": output})
            append = partial(
                log.append, [event], base=task.base, origin=origin("set up"), shared=True
            )
            entries = await record_with_files(self.resources, log, spec, None, append, changed=True)
            return await self._write_first_turn(log, sample, entries[-1], spec)

    @activity.defn(name="sample.say")
    async def say(self, task: Task[Say]) -> list[EventSummary]:
        """Write the messages of the sample's turn."""
        step = task.step
        async with self.begin(task) as (log, _):
            spec = await load_spec(log, step.spec_seq)
            sample = await self.resources.load_sample(task.user_id, task.step.attempt)
            writer = Writer(log, task.base)
            await write_turn(self.resources, writer, sample, step.turn, spec, step.shown_skills)
            return await writer.summaries()

    @activity.defn(name="sample.finish")
    async def finish(self, task: Task[FinishAttempt]) -> AttemptSummary:
        """Save the state, score the attempt, and record the result."""
        attempt, state = task.step.attempt, task.step.state
        async with self.begin(task) as (log, _):
            folder = self.resources.batch(task.user_id, attempt.batch)
            await record_changes(self.resources, log, state.spec)
            await save_closed(self.resources, log, state, origin().run)
            # Nothing may change while it is scored.
            self.resources.mcp.close_conversation(log.prefix)
            await SESSIONS.close_session(log.prefix)
            place = (attempt.sample, attempt.epoch, attempt.number)
            if is_retry() and (recorded := await folder.read_result(*place)):
                return summarize_attempt(recorded.attempts[0])
            sample = await self.resources.load_sample(task.user_id, attempt)
            result = await self._score(folder, attempt, sample, log, state)
            result = await folder.record_attempt(sample, result)
            self.resources.evict(log, state.next_seq)
            return summarize_attempt(result)

    @activity.defn(name="sample.rescore")
    async def rescore(self, request: RescoreRequest) -> AttemptSummary:
        """Score an attempt again from its log."""
        async with self.heartbeating_for(request.user_id):
            attempt = request.attempt
            name = attempt_conversation_id(request.user_id, attempt)
            log = self.resources.log(request.user_id, name)
            folder = self.resources.batch(request.user_id, attempt.batch)
            sample = await self.resources.load_sample(request.user_id, attempt)
            state = await read_state(log)
            result = await self._score(folder, attempt, sample, log, state)
            await folder.replace_attempt(sample, result)
            self.resources.evict(log, state.next_seq)
            return summarize_attempt(result)

    async def _write_first_turn(
        self, log: EventLog, sample: Sample, last: Entry, spec: Agent
    ) -> list[EventSummary]:
        """Write the first turn behind the set-up, unless that has failed."""
        writer = Writer(log, last.seq + 1)
        if isinstance(last.event, ConversationStateUpdateEvent):
            await write_turn(self.resources, writer, sample, 0, spec, None)
        return [summarize(last), *await writer.summaries()]

    async def _score(
        self, folder: BatchFolder, attempt: Attempt, sample: Sample, log: EventLog, state: State
    ) -> AttemptResult:
        """Score the finished conversation; a scorer error becomes `status="failed"`."""
        outcome, result = await read_outcome(log, state)
        place = {"epoch": attempt.epoch, "number": attempt.number}
        result = result.model_copy(update=place)
        if result.failure is not None:
            return result
        batch = await load_batch(folder)
        spec = state.spec or batch.agent
        find = partial(self._find_workspace, log, spec, state.files_seq)
        parts = (self.resources, folder, batch, sample, outcome, result)
        return await score_attempt(*parts, find if attempt.scores_workspace else None)

    async def _find_workspace(self, log: EventLog, spec: Agent, slot: int | None) -> str | None:
        """Return the agent's workspace, None if it is gone and was not kept.

        Raises ApplicationError on the queue of a model, whose workers may have other workspaces,
        and on a worker that runs no tools.
        """
        if self.resources.queues.is_model_queue():
            raise final_failure(GRADED, "The workspace is scored on its own queue.")
        self.resources.queues.admit_tool()
        folder = self.resources.own_folder(log)
        await restore_files(self.resources, log, spec, slot)
        never_changed = slot is None and keeps_files(self.resources, spec)
        if not folder.is_dir() and not never_changed:
            return None
        return str(self.resources.workspace(spec, log))

"""The activities that run a tool call, and that answer a lost one."""

import asyncio
import logging
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from temporalio import activity

from perdure.activities.support.inbox_events import answer_fields
from perdure.activities.support.load import load_event, load_spec
from perdure.activities.support.resources import Activities, Resources
from perdure.activities.support.server_tools import find_changed_prompt
from perdure.activities.support.step import (
    StepProgress,
    final_failure,
    ignore_cancellation,
    is_local,
    is_retry,
    now,
    origin,
    summarize_all,
    was_cancel_requested,
)
from perdure.activities.support.store_outage import await_store
from perdure.activities.support.stored_images import store_images
from perdure.activities.support.writer import MAX_ADOPTED_ENTRIES
from perdure.activities.workspace.file_changes import begin_changes
from perdure.activities.workspace.recall import recall_for_files
from perdure.activities.workspace.snapshots import record_with_files, restore_files
from perdure.agent.loop.state import HARMLESS_TOOLS
from perdure.agent.loop.steps import Act, ResolveLostCall, Task
from perdure.agent.spec import Agent
from perdure.agent.surroundings import name_author
from perdure.events.actions import FileEditorAction
from perdure.events.custom import AnyObservation
from perdure.events.entry import Entry
from perdure.events.messages import SystemPromptEvent
from perdure.events.status import Loading
from perdure.events.summary import EventSummary
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, ToolErrorKind
from perdure.sandbox.sandbox import SandboxUnusable
from perdure.secrets.masking import mask_value
from perdure.storage.errors import Altered, StoreRefused, StoreUnavailable, Unrestorable
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from perdure.temporal.worker_load import waiting
from perdure.tools.errors import CatalogError
from perdure.tools.mcp.servers import OutcomeUnknown
from perdure.tools.memory import REMEMBER_NAME
from perdure.tools.state import CommitConflict
from perdure.tools.tool import Context, Tool, ToolFailed

logger = logging.getLogger(__name__)

Answer: TypeAlias = ObservationEvent | AgentErrorEvent

MAX_PARTIAL_CHARS = 30_000
"""Length limit of the output that is kept of an interrupted tool."""


class ToolActivities(Activities):
    @activity.defn(name="tool.call")
    async def call(self, task: Task[Act]) -> list[EventSummary]:
        """Run the tool of an action, unless the action has an answer already."""
        async with self.begin(task) as (log, progress):
            self.resources.queues.admit_tool()
            call = await await_store(partial(_load_call, self.resources, log, task, progress))
            if call.spec.secrets:  # a removed one counts no more, and a new one counts at once
                await self.resources.load_secrets(log.user_id, max_age=0.0)
            if is_local():
                await call.ensure_files_are_here()
            entries = await await_store(call.find_answer) or await call.make()
            if entries[-1].origin == origin() and not was_cancel_requested():
                entries += await call.recall(entries[-1].seq + 1)
                entries += await call.relist(entries[-1].seq + 1)
            return summarize_all(entries)

    @activity.defn(name="tool.settle")
    async def resolve_lost_call(self, task: Task[ResolveLostCall]) -> list[EventSummary]:
        """Adopt the late answer of a lost call, or record that its outcome is unknown."""
        async with self.begin(task) as (log, _):
            action = await load_event(log, task.step.action_seq, ActionEvent)
            unknown = (
                f"The outcome of this call of {action.tool_name} is unknown: {task.step.detail} "
                f"It was called with {action.tool_call.arguments}. It may have taken effect, in "
                "whole or in part: check before repeating it."
            )
            answer = _error(action, "outcome_unknown", unknown)
            entries = await log.append([answer], base=task.base, origin=origin(), shared=True)
            # What the lost call wrote behind its answer belongs to this step, not to the next.
            return summarize_all(entries + await log.read(entries[-1].seq + 1, MAX_ADOPTED_ENTRIES))


@dataclass(frozen=True)
class _Call:
    """A tool call, with the spec in force and the prompt that offered its tool."""

    resources: Resources
    log: EventLog
    task: Task[Act]
    progress: StepProgress
    action: ActionEvent
    spec: Agent
    prompt: SystemPromptEvent

    async def ensure_files_are_here(self) -> None:
        """Raise ApplicationError if the newest files of the conversation are another worker's."""
        slot = self.task.step.files_seq
        files = (await self.log.get(slot)).files if slot is not None else None
        if files is not None and files.home != self.resources.home:
            raise final_failure("FilesElsewhere", "The worker that has the files makes the call.")

    async def find_answer(self) -> list[Entry] | None:
        """Find the answer of a call that must not or need not be made again.

        Raises Fenced if another run holds the slot of the answer, as it may have made the call.
        """
        if self.task.step.repeatable and not is_retry():
            return None
        return await self.log.find_answer(self.action.id, self.task.base, origin().run)

    async def make(self) -> list[Entry]:
        """Make the call, and record its answer."""
        try:
            answer = await self._run_tool()
        except asyncio.CancelledError:
            # Another worker may repeat a repeatable call; any other is recorded as interrupted.
            if self.task.step.repeatable and not was_cancel_requested():
                raise
            reason = _describe_interruption(self.action, self.progress)
            answer = _error(self.action, "interrupted", reason)
        return await ignore_cancellation(self._record(answer))

    async def _record(self, answer: Answer) -> list[Entry]:
        """Append the answer, however long the store is unavailable.

        If the action was answered meanwhile, the late result is stored as a blob instead.
        """
        changed = self._may_change_files()
        answer = await await_store(partial(store_images, self.log, answer))
        log, slot = self.log, self.task.step.files_seq
        append = partial(log.append, [answer], base=self.task.base, origin=origin(), shared=True)
        record = partial(
            record_with_files, self.resources, log, self.spec, slot, append, changed=changed
        )
        entries = await await_store(record, (StoreUnavailable, StoreRefused))
        if entries[-1].origin.activity != origin().activity:
            key = await log.store_blob(answer.model_dump_json(exclude_none=True).encode())
            logger.warning("a late result of %s is kept as %s", answer.action_id, key)
        return entries

    def _may_change_files(self) -> bool:
        read_only = {tool.name for tool in self.prompt.tools if tool.annotations.readOnlyHint}
        return self.action.tool_name not in read_only.union(HARMLESS_TOOLS, (REMEMBER_NAME,))

    async def recall(self, base: int) -> list[Entry]:
        """Record the skills and instructions that the files of the action recall."""
        touched, shown = _touched_resources(self.action), self.task.step.shown_skills or ()
        recalled = await recall_for_files(touched, self.spec, self.workspace, shown)
        if recalled is None:
            return []
        return await self.log.append([recalled], base=base, origin=origin("recall"), shared=True)

    async def relist(self, base: int) -> list[Entry]:
        """Record the prompt again if the call of a server's tool has changed its tools."""
        changed = await find_changed_prompt(
            self.resources, self.log, self.spec, self.prompt, self.action.tool_name
        )
        if changed is None:
            return []
        return await self.log.append([changed], base=base, origin=origin("tools"), shared=True)

    async def _run_tool(self) -> Answer:
        action, spec, name = self.action, self.spec, self.action.tool_name
        fail = partial(_error, action, "tool_raised")
        try:
            tools = self.resources.offered_tools(spec, self.prompt, self.log)
            tool = tools[name]
        except (CatalogError, KeyError) as error:
            message = f"{name} was not called: this worker does not have it ({error})."
            return _error(action, "unknown_tool", message)
        slot = self.task.step.files_seq
        try:
            restored = partial(restore_files, self.resources, self.log, spec, slot)
            await await_store(partial(restored, self._tell_restoring))
        except (Altered, StoreRefused, Unrestorable, SandboxUnusable, OSError) as error:
            return fail(f"{name} was not called: its files are not here. {error}")
        if self._may_change_files():
            await begin_changes(self.resources, spec, self.log, self.task.step.action_seq)
        try:
            async with asyncio.timeout(spec.tool_timeout) as limit:
                observation, context = await self._call(tool)
        except OutcomeUnknown as error:
            return _error(action, "outcome_unknown", str(error))
        except ToolFailed as error:
            return fail(str(error))
        except Exception as error:
            if self.task.step.repeatable and isinstance(error, StoreUnavailable):
                raise  # of a local activity: the ordinary one that follows waits
            logger.info("tool %s raised", name, exc_info=error)
            if limit.expired():
                return fail(f"{name} was stopped: it took over {spec.tool_timeout:g} s.")
            return fail(f"{name} failed: {str(error) or type(error).__name__}")
        return await ignore_cancellation(self._answer(observation, context))

    async def _call(self, tool: Tool) -> tuple[AnyObservation, Context]:
        """Call the tool; return what it returned, and the context with what it has changed.

        A call that may be made again is, while the store that it needs is unavailable.
        """

        async def call() -> tuple[AnyObservation, Context]:
            context = self._context()
            with waiting():
                return await tool.run(self.action.action, context), context

        return await (await_store(call) if self.task.step.repeatable else call())

    async def _answer(self, observation: AnyObservation, context: Context) -> Answer:
        """Return the answer of a call that has ended, with what it has changed of the state."""
        action = self.action
        if observation.is_error:
            return ObservationEvent(**answer_fields(action, now()), observation=observation)
        secrets = self.resources.secrets_of(self.log.user_id)
        mask = partial(mask_value, mask=secrets.mask)
        try:
            changes = await await_store(partial(context.state.commit, mask))
        except (CommitConflict, Altered, ValueError) as error:
            written = error.written if isinstance(error, CommitConflict) else {}
            answer = _error(action, "tool_raised", f"{action.tool_name} failed: {error}")
            return answer.model_copy(update={"state": written or None})
        fields = answer_fields(action, now())
        return ObservationEvent(**fields, observation=observation, state=changes or None)

    def _tell_restoring(self, is_restoring: bool) -> None:
        loading = Loading(what="restore", name="workspace")
        self.progress.load(*([loading] if is_restoring else []))

    def _context(self) -> Context:
        log = self.log
        return Context(
            conversation_id=self.task.conversation_id,
            action_id=self.action.id,
            seq=self.task.step.action_seq,
            workspace=self.workspace,
            log=LogReader(log.store, log.user_id, log.conversation_id, log.cache),
            progress=self.progress.report,
            keep=log.store_blob,
            secrets=self.resources.secrets_of(log.user_id).lend(self.spec.secrets),
            sandbox=self.resources.sandbox,
            network=self.spec.network,
            variables=name_author(self.spec.git_user_name, self.spec.git_user_email),
            may_write_app=self.resources.may_write_app(log.user_id),
            replay_cells=self.spec.replay_cells,
            memory=self.resources.memory_of(self.spec, log),
        )

    @cached_property
    def workspace(self) -> Path:
        return self.resources.workspace(self.spec, self.log)


def _touched_resources(action: ActionEvent) -> tuple[str, ...]:
    """Return the resources of an action, with the path of a file that its tool did not name."""
    if action.touches is None and isinstance(action.action, FileEditorAction):
        return (f"file:{action.action.path}",)
    return action.touches or ()


def _describe_interruption(action: ActionEvent, progress: StepProgress) -> str:
    """Say why a call was interrupted, with its output so far."""
    details = activity.cancellation_details()
    reason = "because nobody waits for it any more"
    if details is not None and details.cancel_requested:
        reason = "by the user, by a deadline or by a limit"
    elif details is None or details.worker_shutdown:
        reason = "because its worker was shut down"
    sentence = f"{action.tool_name} was stopped {reason}, in the middle of what it did."
    if not progress.text.strip():
        return sentence
    return f"{sentence} Its output so far:\n{progress.text[-MAX_PARTIAL_CHARS:].strip()}"


async def _load_call(
    resources: Resources, log: EventLog, task: Task[Act], progress: StepProgress
) -> _Call:
    action = await load_event(log, task.step.action_seq, ActionEvent)
    spec = await load_spec(log, task.step.spec_seq)
    prompt = await load_event(log, task.step.prompt_seq, SystemPromptEvent)
    return _Call(resources, log, task, progress, action, spec, prompt)


def _error(action: ActionEvent, kind: ToolErrorKind, text: str) -> AgentErrorEvent:
    return AgentErrorEvent(**answer_fields(action, now()), error=text, classification=kind)

"""The activities that run a tool call, and that answer a lost one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from temporalio import activity

from perdure.activities.support.inbox_events import answer_fields
from perdure.activities.support.resources import (
    Activities,
    Resources,
    load_event,
    load_spec,
)
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
from perdure.activities.support.writer import MAX_ADOPTED_ENTRIES
from perdure.activities.workspace.file_changes import begin_changes
from perdure.activities.workspace.recall import recall_for_files
from perdure.activities.workspace.snapshots import record_with_files, restore_files
from perdure.agent.loop.state import HARMLESS_TOOLS
from perdure.agent.loop.steps import Act, ResolveLostCall, Task
from perdure.agent.spec import Agent
from perdure.events.actions import FileEditorAction
from perdure.events.base import UNASSIGNED_ID
from perdure.events.entry import Entry
from perdure.events.messages import SystemPromptEvent
from perdure.events.summary import EventSummary
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, ToolErrorKind
from perdure.sandbox.sandbox import SandboxUnusable
from perdure.storage.errors import (
    Altered,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    Unrestorable,
)
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from perdure.tools.catalog import CatalogError
from perdure.tools.mcp.servers import OutcomeUnknown
from perdure.tools.tool import Context, ToolFailed

logger = logging.getLogger(__name__)

Answer: TypeAlias = ObservationEvent | AgentErrorEvent

T = TypeVar("T")

MAX_PARTIAL_CHARS = 30_000
"""Length limit of the output that is kept of an interrupted tool."""

RELIST_TIMEOUT = 10.0
"""Timeout in seconds for listing the tools of servers after a call."""

STORE_RETRY_INTERVAL = 1.0
"""Seconds between two tries while the store is unavailable."""


class ToolActivities(Activities):
    @activity.defn(name="tool.call")
    async def call(self, task: Task[Act]) -> list[EventSummary]:
        """Run the tool of an action, unless the action has an answer already."""
        async with self.begin(task) as (log, progress):
            call = await _await_store(partial(_load_call, self.resources, log, task, progress))
            if is_local():
                await call.ensure_files_are_here()
            entries = await _await_store(call.find_answer) or await call.make()
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
        log, slot = self.log, self.task.step.files_seq
        append = partial(log.append, [answer], base=self.task.base, origin=origin(), shared=True)
        record = partial(
            record_with_files, self.resources, log, self.spec, slot, append, changed=changed
        )
        entries = await _await_store(record, (StoreUnavailable, StoreRefused))
        if entries[-1].origin.activity != origin().activity:
            key = await log.store_blob(answer.model_dump_json(exclude_none=True).encode())
            logger.warning("a late result of %s is kept as %s", answer.action_id, key)
        return entries

    def _may_change_files(self) -> bool:
        read_only = {tool.name for tool in self.prompt.tools if tool.annotations.readOnlyHint}
        return self.action.tool_name not in read_only.union(HARMLESS_TOOLS)

    async def recall(self, base: int) -> list[Entry]:
        """Record the skills and instructions that the files of the action recall."""
        touched, shown = _touched_resources(self.action), self.task.step.shown_skills or ()
        recalled = await recall_for_files(touched, self.spec, self.workspace, shown)
        if recalled is None:
            return []
        return await self.log.append([recalled], base=base, origin=origin("recall"), shared=True)

    async def relist(self, base: int) -> list[Entry]:
        """Record the prompt again if the call of a server's tool has changed its tools."""
        if not self.spec.mcp:
            return []
        own_tools = self.resources.own_tools(self.spec, self.log)
        if self.action.tool_name in own_tools:
            return []
        others = [tool for tool in self.prompt.tools if tool.name not in own_tools]
        place = (self.log.prefix, self.spec.mcp, self.workspace)
        try:
            async with asyncio.timeout(RELIST_TIMEOUT):
                changes = await self.resources.mcp.find_changes(*place, others)
        except (CatalogError, TimeoutError) as error:
            logger.info("what the servers offer now is not known: %s", error)
            return []
        if changes is None:
            return []
        tools = (*(tool for tool in self.prompt.tools if tool.name in own_tools), *changes)
        update = {"id": UNASSIGNED_ID, "timestamp": now(), "tools": tools}
        changed = self.prompt.model_copy(update=update)
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
            await _await_store(partial(restore_files, self.resources, self.log, spec, slot))
        except (Altered, StoreRefused, Unrestorable, SandboxUnusable, OSError) as error:
            return fail(f"{name} was not called: its files are not here. {error}")
        context = self._context()
        if self._may_change_files():
            await begin_changes(self.resources, spec, self.log, self.task.step.action_seq)
        try:
            async with asyncio.timeout(spec.tool_timeout) as limit:
                observation = await tool.run(action.action, context)
            return ObservationEvent(**answer_fields(action, now()), observation=observation)
        except OutcomeUnknown as error:
            return _error(action, "outcome_unknown", str(error))
        except ToolFailed as error:
            return fail(str(error))
        except Exception as error:
            logger.info("tool %s raised", name, exc_info=error)
            if limit.expired():
                return fail(f"{name} was stopped: it took over {spec.tool_timeout:g} s.")
            return fail(f"{name} failed: {str(error) or type(error).__name__}")

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
            secrets=self.resources.secrets.lend(self.spec.secrets),
            sandbox=self.resources.sandbox,
            network=self.spec.network,
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


async def _await_store(
    work: Callable[[], Awaitable[T]], errors: tuple[type[StoreError], ...] = (StoreUnavailable,)
) -> T:
    """Retry while the store is unavailable, as the step itself may not be retried."""
    while True:
        try:
            return await work()
        except errors as error:
            if is_local():  # the ordinary activity that follows waits
                raise
            logger.warning("a call waits for the store: %s", error)
            await asyncio.sleep(STORE_RETRY_INTERVAL)


async def _load_call(
    resources: Resources, log: EventLog, task: Task[Act], progress: StepProgress
) -> _Call:
    action = await load_event(log, task.step.action_seq, ActionEvent)
    spec = await load_spec(log, task.step.spec_seq)
    prompt = await load_event(log, task.step.prompt_seq, SystemPromptEvent)
    return _Call(resources, log, task, progress, action, spec, prompt)


def _error(action: ActionEvent, kind: ToolErrorKind, text: str) -> AgentErrorEvent:
    return AgentErrorEvent(**answer_fields(action, now()), error=text, classification=kind)

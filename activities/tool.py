"""The activities that run a tool call, and that answer a lost one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from temporalio import activity

from perdure.activities.support.resources import (
    Resources,
    cached_tools,
    load_action,
    load_prompt,
    load_spec,
    read_only_tools,
)
from perdure.activities.support.step import (
    StepProgress,
    heartbeating,
    ignore_cancellation,
    is_retry,
    now,
    origin,
    summarize_all,
    was_cancel_requested,
)
from perdure.activities.support.writer import MAX_ADOPTED_ENTRIES
from perdure.activities.workspace.recall import recall_for_files
from perdure.activities.workspace.snapshots import record_with_files, restore_files
from perdure.agent.loop.state import HARMLESS_TOOLS
from perdure.agent.loop.steps import Act, ResolveLostCall, Task
from perdure.agent.spec import Agent
from perdure.events.actions import FileEditorAction
from perdure.events.base import UNASSIGNED_ID
from perdure.events.custom import AnyObservation
from perdure.events.entry import Entry
from perdure.events.files import Files
from perdure.events.messages import SystemPromptEvent
from perdure.events.summary import EventSummary
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, ToolErrorKind
from perdure.sandbox.sandbox import SandboxUnusable
from perdure.storage.errors import Altered, Fenced, StoreRefused, StoreUnavailable, Unrestorable
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


class Call(NamedTuple):
    """A tool call, with the spec in force and the prompt that offered its tool."""

    action: ActionEvent
    spec: Agent
    prompt: SystemPromptEvent


class ToolActivities:
    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    @activity.defn(name="tool.call")
    async def call(self, task: Task[Act]) -> list[EventSummary]:
        """Run the tool of an action, unless the action has an answer already."""
        async with heartbeating(self.resources.secrets) as progress:
            log = self.resources.log(task)
            call, answered = await _await_store(partial(_load_call, log, task))
            action, spec, prompt = call
            entries = answered or await self._make_call(call, task, log, progress)
            if entries[-1].origin == origin() and not was_cancel_requested():
                entries += await self._recall(log, entries[-1].seq + 1, action, task, spec)
                if spec.mcp and action.tool_name not in cached_tools(spec.tools):
                    base = entries[-1].seq + 1
                    entries += await self._relist(log, base, prompt, spec)
            return summarize_all(entries)

    @activity.defn(name="tool.settle")
    async def resolve_lost_call(self, task: Task[ResolveLostCall]) -> list[EventSummary]:
        """Adopt the late answer of a lost call, or record that its outcome is unknown."""
        async with heartbeating():
            log = self.resources.log(task)
            action = await load_action(log, task.step.action_seq)
            unknown = (
                f"The outcome of this call of {action.tool_name} is unknown: {task.step.detail} "
                f"It was called with {action.tool_call.arguments}. It may have taken effect, in "
                "whole or in part: check before repeating it."
            )
            answer = _error_event(action, "outcome_unknown", unknown)
            entries = await _append_answer(log, task.base, answer)
            # What the lost call wrote behind its answer belongs to this step, not to the next.
            return summarize_all(entries + await log.read(entries[-1].seq + 1, MAX_ADOPTED_ENTRIES))

    async def _make_call(
        self, call: Call, task: Task[Act], log: EventLog, progress: StepProgress
    ) -> list[Entry]:
        """Make the call, and record its answer."""
        action = call.action
        try:
            answer = await self._run_tool(call, task, log, progress)
        except asyncio.CancelledError:
            # Another worker may repeat a repeatable call; any other is recorded as interrupted.
            if task.step.repeatable and not was_cancel_requested():
                raise
            answer = _error_event(action, "interrupted", _describe_interruption(action, progress))
        return await ignore_cancellation(self._record(log, task, call, answer))

    async def _record(
        self, log: EventLog, task: Task[Act], call: Call, answer: Answer
    ) -> list[Entry]:
        """Append the answer, however long the store is unavailable.

        If the action was answered meanwhile, the late result is stored as a blob instead.
        """
        changing = answer.tool_name not in (*HARMLESS_TOOLS, *read_only_tools(call.prompt))
        append = partial(_append_answer, log, task.base, answer)
        while True:
            try:
                entries = await record_with_files(
                    self.resources, log, call.spec, task.step.files_seq, append, changed=changing
                )
                break
            except (StoreUnavailable, StoreRefused) as error:
                logger.warning("a result waits for the store: %s", error)
                await asyncio.sleep(STORE_RETRY_INTERVAL)
        if entries[-1].origin.activity != origin().activity:
            key = await log.store_blob(answer.model_dump_json(exclude_none=True).encode())
            logger.warning("a late result of %s is kept as %s", answer.action_id, key)
        return entries

    async def _recall(
        self, log: EventLog, base: int, action: ActionEvent, task: Task[Act], spec: Agent
    ) -> list[Entry]:
        """Record the skills and instructions that the files of the action recall."""
        workspace = self.resources.workspace(spec, task.conversation_id)
        recalled = await recall_for_files(
            _touched_resources(action), spec, workspace, task.step.shown_skills or ()
        )
        if recalled is None:
            return []
        return await log.append([recalled], base=base, origin=origin("recall"), shared=True)

    async def _relist(
        self, log: EventLog, base: int, prompt: SystemPromptEvent, spec: Agent
    ) -> list[Entry]:
        """Record the prompt again if the call has changed the tools of a server."""
        try:
            async with asyncio.timeout(RELIST_TIMEOUT):
                tools = await self.resources.relist_tools(spec, prompt, log.conversation_id)
        except (CatalogError, TimeoutError) as error:
            logger.info("what the servers offer now is not known: %s", error)
            return []
        if tools is None:
            return []
        changed = prompt.model_copy(
            update={"id": UNASSIGNED_ID, "timestamp": now(), "tools": tools}
        )
        return await log.append([changed], base=base, origin=origin("tools"), shared=True)

    async def _run_tool(
        self, call: Call, task: Task[Act], log: EventLog, progress: StepProgress
    ) -> Answer:
        action, spec, prompt = call
        try:
            tool = self.resources.offered_tools(spec, prompt, task.conversation_id)[
                action.tool_name
            ]
        except (CatalogError, KeyError) as error:
            message = f"{action.tool_name} was not called: this worker does not have it ({error})."
            return _error_event(action, "unknown_tool", message)
        try:
            await _await_store(
                partial(restore_files, self.resources, log, spec, task.step.files_seq)
            )
        except (Altered, StoreRefused, Unrestorable, SandboxUnusable, OSError) as error:
            message = f"{action.tool_name} was not called: its files are not here. {error}"
            return _error_event(action, "tool_raised", message)
        context = Context(
            conversation_id=task.conversation_id,
            action_id=action.id,
            seq=task.step.action_seq,
            workspace=self.resources.workspace(spec, task.conversation_id),
            log=LogReader(log.store, log.user_id, log.conversation_id, log.cache),
            progress=progress.report,
            keep=log.store_blob,
            secrets=self.resources.secrets.lend(spec.secrets),
            sandbox=self.resources.sandbox,
            network=spec.network,
        )
        try:
            async with asyncio.timeout(spec.tool_timeout) as limit:
                return _observation(action, await tool.run(action.action, context))
        except OutcomeUnknown as error:
            return _error_event(action, "outcome_unknown", str(error))
        except ToolFailed as error:
            return _error_event(action, "tool_raised", str(error))
        except Exception as error:
            logger.info("tool %s raised", tool.name, exc_info=error)
            message = f"{tool.name} failed: {str(error) or type(error).__name__}"
            if limit.expired():
                message = f"{tool.name} was stopped: it took over {spec.tool_timeout:g} s."
            return _error_event(action, "tool_raised", message)


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
        reason = "by the user or by a deadline"
    elif details is None or details.worker_shutdown:
        reason = "because its worker was shut down"
    sentence = f"{action.tool_name} was stopped {reason}, in the middle of what it did."
    if not progress.text.strip():
        return sentence
    return f"{sentence} Its output so far:\n{progress.text[-MAX_PARTIAL_CHARS:].strip()}"


async def _await_store(work: Callable[[], Awaitable[T]]) -> T:
    """Retry while the store is unavailable, as the step itself may not be retried."""
    while True:
        try:
            return await work()
        except StoreUnavailable as error:
            logger.warning("a call waits for the store: %s", error)
            await asyncio.sleep(STORE_RETRY_INTERVAL)


async def _load_call(log: EventLog, task: Task[Act]) -> tuple[Call, list[Entry] | None]:
    """Load the call, and its answer if there is one already."""
    action = await load_action(log, task.step.action_seq)
    spec = await load_spec(log, task.step.spec_seq)
    prompt = await load_prompt(log, task.step.prompt_seq)
    return Call(action, spec, prompt), await _find_answer(log, task, action)


async def _find_answer(log: EventLog, task: Task[Act], action: ActionEvent) -> list[Entry] | None:
    """Find the answer of a call that must not or need not be made again.

    Raises Fenced if another run holds the slot of the answer, as it may have made the call.
    """
    if task.step.repeatable and not is_retry():
        return None
    entry = await log.find(task.base)
    if entry is not None and entry.origin.run != origin().run:
        raise Fenced(f"slot {entry.seq}", entry.origin.run)
    return await log.find_answer(action.id, task.base)


async def _append_answer(
    log: EventLog, base: int, answer: Answer, files: Files | None = None
) -> list[Entry]:
    return await log.append([answer], base=base, origin=origin(), shared=True, files=files)


def _observation(action: ActionEvent, observation: AnyObservation) -> ObservationEvent:
    return ObservationEvent(
        timestamp=now(),
        action_id=action.id,
        tool_name=action.tool_name,
        tool_call_id=action.tool_call_id,
        observation=observation,
    )


def _error_event(action: ActionEvent, kind: ToolErrorKind, error: str) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp=now(),
        action_id=action.id,
        tool_name=action.tool_name,
        tool_call_id=action.tool_call_id,
        error=error,
        classification=kind,
    )

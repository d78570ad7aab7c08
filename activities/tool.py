"""The steps that run a tool, and that answer for one whose call was lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, TypeVar

from temporalio import activity

from activities.masking import masked
from activities.recall import on_path
from activities.step import (
    News,
    at_work,
    digests,
    is_retry,
    now,
    origin,
    to_its_end,
    was_stopped,
)
from activities.workspace import recorded, restored
from activities.world import World, action_at, prompt_at, read_only, spec_at, tools_of
from activities.writer import MOST
from agent.spec import Spec
from agent.state import HARMLESS
from agent.steps import Act, Settle, Task
from events.actions import FileEditorAction
from events.base import UNPLACED
from events.digest import Digest
from events.entry import Entry
from events.files import Files
from events.observations import Observation
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, ToolErrorKind
from sandbox.sandbox import Unusable
from storage.errors import Altered, Fenced, StoreRefused, StoreUnavailable, Unrestorable
from storage.log import EventLog
from tools.catalog import CatalogError
from tools.mcp.servers import OutcomeUnknown
from tools.tool import Context, ToolFailed

logger = logging.getLogger(__name__)

Answer: TypeAlias = ObservationEvent | AgentErrorEvent

T = TypeVar("T")

PARTIAL = 30_000
"""Characters that are kept of what a stopped tool had said."""

RELISTING = 10.0
"""Seconds that servers get to say what they offer after a call."""

AGAIN = 1.0
"""Seconds before a store that is away is asked again."""


class ToolActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="tool.call")
    async def call(self, task: Task[Act]) -> list[Digest]:
        """Run the tool that an action asks for, unless the action has its answer already."""
        async with at_work(self.world.secrets) as news:
            log = self.world.log(task)
            action, spec, settled = await _patiently(partial(_begun, log, task))
            kept = settled or await self._made(action, task, log, spec, news)
            if kept[-1].origin == origin() and not was_stopped():
                kept += await self._recall(log, kept[-1].seq + 1, action, task, spec)
                kept += await self._relist(log, kept[-1].seq + 1, action, task, spec)
            return digests(kept)

    @activity.defn(name="tool.settle")
    async def settle(self, task: Task[Settle]) -> list[Digest]:
        """Adopt the answer that a lost call still gave, or say that its outcome is unknown."""
        async with at_work():
            log = self.world.log(task)
            action = await action_at(log, task.step.action)
            unknown = (
                f"The outcome of this call of {action.tool_name} is unknown: {task.step.known} "
                f"It was called with {action.tool_call.arguments}. It may have taken effect, in "
                "whole or in part: check before repeating it."
            )
            answer = _error(action, "outcome_unknown", unknown)
            kept = await _append(log, task.base, answer)
            # What a call that was lost still wrote behind its answer is not to surprise the next.
            return digests(kept + await log.read(kept[-1].seq + 1, MOST))

    async def _made(
        self, action: ActionEvent, task: Task[Act], log: EventLog, spec: Spec, news: News
    ) -> list[Entry]:
        """Make the call, and put on record what came of it."""
        try:
            answer = await self._run(action, task, log, spec, news)
        except asyncio.CancelledError:
            # Another worker may do all over again what can be; anything else is told as it is.
            if task.step.repeatable and not was_stopped():
                raise
            answer = _error(action, "interrupted", _interrupted(action, news))
        answer = masked(answer, self.world.secrets.mask)
        return await to_its_end(self._keep(log, task, spec, answer))

    async def _keep(
        self, log: EventLog, task: Task[Act], spec: Spec, answer: Answer
    ) -> list[Entry]:
        """Append the answer, however long the store is away: what is done must be on record.

        Where the action was answered meanwhile, the late result is kept as a blob instead.
        """
        prompt = await _patiently(partial(prompt_at, log, task.step.prompt))
        changing = answer.tool_name not in (*HARMLESS, *read_only(prompt))

        async def append(files: Files | None) -> list[Entry]:
            return await _append(log, task.base, answer, files)

        while True:
            try:
                entries = await recorded(
                    self.world, log, spec, task.step.files, append, changed=changing
                )
                break
            except (StoreUnavailable, StoreRefused) as error:
                logger.warning("a result waits for the store: %s", error)
                await asyncio.sleep(AGAIN)
        if entries[-1].origin.activity != origin().activity:
            key = await log.keep(answer.model_dump_json(exclude_none=True).encode())
            logger.warning("a late result of %s is kept as %s", answer.action_id, key)
        return entries

    async def _recall(
        self, log: EventLog, base: int, action: ActionEvent, task: Task[Act], spec: Spec
    ) -> list[Entry]:
        """What the files that the action touched call up: skills, instructions beside them."""
        place = self.world.workspace(spec, task.conversation_id)
        recalled = await on_path(_touched(action), spec, place, task.step.skills or ())
        if recalled is None:
            return []
        return await log.append([recalled], base=base, origin=origin("recall"), shared=True)

    async def _relist(
        self, log: EventLog, base: int, action: ActionEvent, task: Task[Act], spec: Spec
    ) -> list[Entry]:
        """The prompt anew, where the call has changed what a server offers."""
        if not spec.mcp or action.tool_name in tools_of(spec.tools):
            return []
        prompt = await prompt_at(log, task.step.prompt)
        try:
            async with asyncio.timeout(RELISTING):
                tools = await self.world.relisted(spec, prompt, task.conversation_id)
        except (CatalogError, TimeoutError) as error:
            logger.info("what the servers offer now is not known: %s", error)
            return []
        if tools is None:
            return []
        changed = prompt.model_copy(update={"id": UNPLACED, "timestamp": now(), "tools": tools})
        return await log.append([changed], base=base, origin=origin("tools"), shared=True)

    async def _run(
        self, action: ActionEvent, task: Task[Act], log: EventLog, spec: Spec, news: News
    ) -> Answer:
        prompt = await _patiently(partial(prompt_at, log, task.step.prompt))
        try:
            tool = self.world.offered(spec, prompt, task.conversation_id)[action.tool_name]
        except (CatalogError, KeyError) as error:
            missing = f"{action.tool_name} was not called: this worker does not have it ({error})."
            return _error(action, "unknown_tool", missing)
        try:
            await _patiently(partial(restored, self.world, log, spec, task.step.files))
        except (Altered, StoreRefused, Unrestorable, Unusable, OSError) as error:
            missing = f"{action.tool_name} was not called: its files are not here. {error}"
            return _error(action, "tool_raised", missing)
        context = Context(
            conversation_id=task.conversation_id,
            action_id=action.id,
            seq=task.step.action,
            workspace=self.world.workspace(spec, task.conversation_id),
            log=log,
            progress=news.tell,
            keep=log.keep,
            secrets=self.world.secrets.lent(spec.secrets),
            sandbox=self.world.sandbox,
            network=spec.network,
        )
        try:
            async with asyncio.timeout(spec.tool_timeout) as limit:
                return _observed(action, await tool.run(action.action, context))
        except OutcomeUnknown as error:
            return _error(action, "outcome_unknown", str(error))
        except ToolFailed as error:
            return _error(action, "tool_raised", str(error))
        except Exception as error:
            logger.info("tool %s raised", tool.name, exc_info=error)
            raised = f"{tool.name} failed: {str(error) or type(error).__name__}"
            if limit.expired():
                raised = f"{tool.name} was stopped: it took over {spec.tool_timeout:g} s."
            return _error(action, "tool_raised", raised)


def _touched(action: ActionEvent) -> tuple[str, ...]:
    """What the action touched; an absolute path too, which its tool cannot tell from others."""
    if action.touches is None and isinstance(action.action, FileEditorAction):
        return (f"file:{action.action.path}",)
    return action.touches or ()


def _interrupted(action: ActionEvent, news: News) -> str:
    """What is known of a call that was stopped; its output so far is not lost."""
    details = activity.cancellation_details()
    why = "because nobody waits for it any more"
    if details is not None and details.cancel_requested:
        why = "by the user or by a deadline"
    elif details is None or details.worker_shutdown:
        why = "because its worker was shut down"
    told = f"{action.tool_name} was stopped {why}, in the middle of what it did."
    if not news.text.strip():
        return told
    return f"{told} Its output so far:\n{news.text[-PARTIAL:].strip()}"


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Do it however long the store is away: what is tried only once must not fail for it."""
    while True:
        try:
            return await work()
        except StoreUnavailable as error:
            logger.warning("a call waits for the store: %s", error)
            await asyncio.sleep(AGAIN)


async def _begun(log: EventLog, task: Task[Act]) -> tuple[ActionEvent, Spec, list[Entry] | None]:
    """The action, the spec in force, and the answer where there is one already."""
    action = await action_at(log, task.step.action)
    spec = await spec_at(log, task.step.spec)
    return action, spec, await _settled(log, task, action)


async def _settled(log: EventLog, task: Task[Act], action: ActionEvent) -> list[Entry] | None:
    """The answer that is there already, for a call that must not or need not be made again.

    Raises Fenced where another run holds the slot of the answer: then it may have made the call.
    """
    if task.step.repeatable and not is_retry():
        return None
    held = await log.find(task.base)
    if held is not None and held.origin.run != origin().run:
        raise Fenced(f"slot {held.seq}", held.origin.run)
    return await log.settled(action.id, task.base)


async def _append(
    log: EventLog, base: int, answer: Answer, files: Files | None = None
) -> list[Entry]:
    return await log.append([answer], base=base, origin=origin(), shared=True, files=files)


def _observed(action: ActionEvent, observation: Observation) -> ObservationEvent:
    return ObservationEvent(
        timestamp=now(),
        action_id=action.id,
        tool_name=action.tool_name,
        tool_call_id=action.tool_call_id,
        observation=observation,
    )


def _error(action: ActionEvent, kind: ToolErrorKind, error: str) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp=now(),
        action_id=action.id,
        tool_name=action.tool_name,
        tool_call_id=action.tool_call_id,
        error=error,
        classification=kind,
    )

"""Activities that record in the log what the workflow already knows."""

import contextlib
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from temporalio import activity

from perdure.activities.batch.sample_messages import build_sample_spec, write_turn
from perdure.activities.delegate import child_id
from perdure.activities.support.extensions import check_extensions
from perdure.activities.support.inbox_events import error_event, rejection, state_update, to_event
from perdure.activities.support.resources import Activities, load_batch, load_event, load_spec
from perdure.activities.support.save_state import save_closed, save_resting
from perdure.activities.support.step import final_failure, now, origin
from perdure.activities.support.writer import Writer, append_exclusive
from perdure.activities.workspace.file_changes import record_changes
from perdure.activities.workspace.recall import record_recall
from perdure.agent.knowledge.system_prompt import build_dynamic_context, build_static_prompt
from perdure.agent.loop.decide import refuse_pending
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import InboxItem, Rejection, SpecChange, StateNote, UserMessage
from perdure.agent.loop.state import DELEGATE_TOOL, State, is_recorded
from perdure.agent.loop.steps import Close, Open, Prepare, Record, Refusal, SaveState, Task
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.content import TextContent
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.event import Event
from perdure.events.messages import SystemPromptEvent
from perdure.events.summary import EventSummary
from perdure.events.tools import ActionEvent
from perdure.models.model import OnText
from perdure.sandbox.sandbox import describe
from perdure.secrets.masking import mask_value
from perdure.storage.conversations import conversation_exists
from perdure.storage.errors import Fenced
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.log.verify import CheckedLog, check_integrity
from perdure.storage.noted_values import save_shared_values
from perdure.tools.catalog import CatalogError

MAX_OPEN_TRIES = 5
"""Tries to open a log while the previous run still writes."""

PLACEHOLDER_SPEC = Agent(model=ModelSpec(name="none"))


class LogActivities(Activities):
    @activity.defn(name="log.open")
    async def open(self, task: Task[Open]) -> State:
        """Fold the log and take it over: older runs are fenced from here on."""
        async with self.begin(task) as (log, _):
            if await log.is_new(run := origin().run):
                with contextlib.suppress(Fenced):  # another run was faster
                    return await self._open(log, task.step, State())
            checked = await check_integrity(log)
            for _ in range(MAX_OPEN_TRIES - 1):
                try:
                    return await self._open(log, task.step, await _read_state(log, run, checked))
                except Fenced:
                    if await _was_taken_over(log):
                        raise
            return await self._open(log, task.step, await _read_state(log, run, checked))

    @activity.defn(name="log.append")
    async def append(self, task: Task[Record]) -> list[EventSummary]:
        """Record the items that waited in the inbox."""
        step = task.step
        async with self.begin(task) as (log, _):
            spec = await load_spec(log, step.spec_seq) if step.spec_seq else PLACEHOLDER_SPEC
            writer = Writer(log, task.base)
            if any(isinstance(item, UserMessage) for item in step.items):
                await self._reload_code(writer, spec)
            await self._write_items(writer, step.items, step.refusal, spec, step.shown_skills)
            return await writer.summaries()

    @activity.defn(name="agent.prepare")
    async def prepare(self, task: Task[Prepare]) -> list[EventSummary]:
        """Record the system prompt; a missing tool ends the turn with an error."""
        async with self.begin(task) as (log, progress):
            spec = await load_spec(log, task.step.spec_seq)
            event: Event
            try:
                event = await self._system_prompt(log, spec, progress.report)
            except CatalogError as error:
                event = error_event(now(), error.code, str(error))
            return await append_exclusive(log, [event], task.base)

    @activity.defn(name="conversation.save")
    async def save(self, task: Task[SaveState]) -> None:
        """Save the state beside the log, and the messages of a turn that is over."""
        step = task.step
        async with self.begin(task) as (log, _):
            await record_changes(self.resources, log, step.state.spec)
            await save_resting(self.resources, log, step.state, origin().run, step.ending)

    @activity.defn(name="conversation.close")
    async def close(self, task: Task[Close]) -> None:
        """Save the final state and the messages beside the log."""
        async with self.begin(task) as (log, _):
            await record_changes(self.resources, log, task.step.state.spec)
            await save_closed(self.resources, log, task.step.state, origin().run)
            self.resources.evict(log, task.step.state.next_seq)

    async def _open(self, log: EventLog, step: Open, state: State) -> State:
        """Write the opening events; a retry adopts those that an earlier attempt wrote."""
        new = state.spec is None
        sample = None
        if new and step.attempt is not None:
            folder = self.resources.batch(log.user_id, step.attempt.batch)
            sample = await self.resources.load_sample(log.user_id, step.attempt)
            spec = build_sample_spec(await load_batch(folder), sample)
            step = step.model_copy(update={"spec": spec})
        if new and step.spec is None:
            name = log.conversation_id
            sentence = f"There is no conversation {name}: start one with `perdure run`."
            raise final_failure("ConversationNotFound", sentence)
        writer = Writer(log, state.next_seq)
        await self._write_opening(writer, step, origin().run, state)
        items = [item for item in step.items if not is_recorded(state, item)]
        spec = (step.spec if new else state.spec) or PLACEHOLDER_SPEC
        self.resources.reload_code(spec, log)
        skills = None if state.first_user_seq is None else state.shown_skills
        await self._write_items(writer, items, refuse_pending(state, items), spec, skills)
        if sample is not None and step.attempt is not None and not step.attempt.needs_setup:
            await write_turn(self.resources, writer, sample, 0, spec, skills)
        return fold(state, await writer.summaries())

    async def _write_opening(self, writer: Writer, step: Open, run: str, before: State) -> None:
        value: dict[str, Any] = {"run_id": run, "sandbox": describe(self.resources.sandbox)}
        if step.parent:
            parent = step.parent.model_dump(exclude={"action_seq"}, exclude_none=True)
            value["parent"] = {**parent, "action": step.parent.action_seq}
        if step.attempt:
            value["trial"] = step.attempt.model_dump(include={"batch", "epoch", "number"})
        if resumed := await _find_delegations(writer.log, before):
            value["resumed"] = resumed
        await writer.write("opened", state_update(now(), "opened", value))
        if before.spec is not None or step.spec is None:
            return
        values = json.loads(step.spec.model_dump_json(exclude_none=True))
        await writer.write("spec", state_update(now(), "spec", values))
        if step.spec.mcp:  # servers are slow: `agent.prepare` lists their tools
            return
        with contextlib.suppress(CatalogError):  # `agent.prepare` records the error
            await writer.write("prompt", await self._system_prompt(writer.log, step.spec))

    async def _system_prompt(
        self, log: EventLog, spec: Agent, report: OnText = lambda _: None
    ) -> SystemPromptEvent:
        context = build_dynamic_context(spec)
        tools = await self.resources.tools(spec, log, report)
        check_extensions(spec)
        return SystemPromptEvent(
            timestamp=now(),
            system_prompt=TextContent(text=build_static_prompt(spec)),
            tools=tuple(tool.definition for tool in tools),
            dynamic_context=TextContent(text=context) if context else None,
        )

    async def _reload_code(self, writer: Writer, spec: Agent) -> None:
        """Begin a turn with the user's modules as they are now; record a prompt that changed."""
        if not self.resources.reload_code(spec, writer.log) or spec.mcp:
            return
        with contextlib.suppress(CatalogError):  # `llm.chat` records the error
            await writer.write("prompt", await self._system_prompt(writer.log, spec))

    async def _write_items(
        self,
        writer: Writer,
        items: Sequence[InboxItem],
        refused: Refusal | None,
        spec: Agent,
        skills: tuple[str, ...] | None,
    ) -> None:
        """Record items; a message is followed by what it recalls."""
        if refused is not None:
            await _reject(writer, refused)
        for nth, item in enumerate(items):
            if isinstance(item, Rejection):
                await _reject(writer, Refusal(action_seqs=item.actions, reason=item.reason))
                continue
            await writer.write(f"item {nth}", to_event(item, now(), spec))
            if isinstance(item, SpecChange) and "secrets" in item.changes:
                changed = spec.model_copy(update={"secrets": tuple(item.changes["secrets"])})
                with contextlib.suppress(CatalogError):  # then the old prompt stays in force
                    prompt = await self._system_prompt(writer.log, changed)
                    await writer.write(f"prompt {nth}", prompt)
            if isinstance(item, StateNote) and item.key == "state":
                # Shared values are no part of a log, which would mask them.
                value = mask_value(item.value, self.resources.secrets.mask)
                await save_shared_values(writer.log.store, writer.log.user_id, value)
            if isinstance(item, UserMessage):
                part = f"recall {nth}"
                skills = await record_recall(self.resources, writer, part, item.text, spec, skills)


async def _reject(writer: Writer, refused: Refusal) -> None:
    """Answer rejected actions; an action that was answered meanwhile stays as it is."""
    for seq in refused.action_seqs:
        action = await load_event(writer.log, seq, ActionEvent)
        await writer.write(f"rejection {seq}", rejection(action, refused.reason, now()))


async def _find_delegations(log: EventLog, state: State) -> list[int]:
    """Return the slots of the delegations whose conversation has a log, and is not lost.

    A fork has none of the conversations that were delegated before it.
    """
    exists = partial(conversation_exists, log.store, log.user_id)
    seqs = [call.seq for call in state.pending if call.tool_name == DELEGATE_TOOL]
    return [seq for seq in seqs if await exists(child_id(log.conversation_id, seq))]


async def _read_state(log: EventLog, run: str, checked: CheckedLog) -> State:
    return await read_state(log, run, checked.end, checked.cached)


async def _was_taken_over(log: EventLog) -> bool:
    """Tell whether another run has opened the conversation since this one tried."""
    [newest] = await log.read_newest(1)
    event = newest.event
    return isinstance(event, ConversationStateUpdateEvent) and event.key == "opened"

"""Activities that record in the log what the workflow already knows."""

import contextlib
import json
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import temporalio.client
from temporalio import activity

from perdure.activities.batch.sample_messages import build_sample_spec, write_turn
from perdure.activities.delegate import child_id
from perdure.activities.inbox.items import (
    ItemRecorder,
    change_secrets,
    changes_secrets,
    changes_shown_state,
)
from perdure.activities.inbox.repeated_messages import find_messages
from perdure.activities.support.inbox_events import error_event, state_update
from perdure.activities.support.load import load_batch, load_spec
from perdure.activities.support.notices import notify_webhooks
from perdure.activities.support.resources import Activities
from perdure.activities.support.save_state import save_closed, save_resting
from perdure.activities.support.start_log import log_start
from perdure.activities.support.step import final_failure, now, origin
from perdure.activities.support.system_prompt import build_prompt, renew_context
from perdure.activities.support.writer import Writer, append_exclusive
from perdure.activities.workspace.file_changes import record_changes
from perdure.agent.loop.decide import refuse_pending
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.state import DELEGATE_TOOL, State, find_unsure_ids, is_recorded
from perdure.agent.loop.steps import Close, Open, Prepare, Record, SaveState, Task
from perdure.agent.loop.wait_steps import with_wait_ends
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.event import Event
from perdure.events.status import Loading
from perdure.events.summary import EventSummary
from perdure.sandbox.sandbox import describe
from perdure.storage.conversations import conversation_exists
from perdure.storage.errors import Fenced
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.log.verify import CheckedLog, check_integrity
from perdure.tools.errors import CatalogError

MAX_OPEN_TRIES = 5
"""Tries to open a log while the previous run still writes."""

PLACEHOLDER_SPEC = Agent(model=ModelSpec(name="none"))


@dataclass
class LogActivities(Activities):
    temporal: temporalio.client.Client | None = None
    """The client that begins the deliveries of webhooks; without one there are none."""

    @activity.defn(name="log.open")
    async def open(self, task: Task[Open]) -> State:
        """Fold the log and take it over: older runs are fenced from here on."""
        with log_start() as start:
            async with self.begin(task) as (log, progress):
                if await log.is_new(run := origin().run):
                    with contextlib.suppress(Fenced):  # another run was faster
                        return await self._open(log, task.step, State())
                start.restored = True
                progress.load(Loading(what="restore"))
                return await self._restore(log, task.step, run)

    async def _restore(self, log: EventLog, step: Open, run: str) -> State:
        """Fold a log that is there, and write the opening events behind it."""
        checked = await check_integrity(log)
        for _ in range(MAX_OPEN_TRIES - 1):
            try:
                return await self._open(log, step, await _read_state(log, run, checked))
            except Fenced:
                if await _was_taken_over(log):
                    raise
        return await self._open(log, step, await _read_state(log, run, checked))

    @activity.defn(name="log.append")
    async def append(self, task: Task[Record]) -> list[EventSummary]:
        """Record the items that waited in the inbox."""
        step = task.step
        async with self.begin(task) as (log, _):
            spec = await load_spec(log, step.spec_seq) if step.spec_seq else PLACEHOLDER_SPEC
            writer = Writer(log, task.base)
            if any(isinstance(item, UserMessage) for item in step.items):
                await self._reload_code(writer, spec)
            repeated = await find_messages(log, step.unsure_ids, step.ids_before)
            recorder = ItemRecorder(self.resources, writer, spec, step.shown_skills, repeated)
            await recorder.record_all(step.items, step.refusal)
            if step.prompt_seq is not None and changes_shown_state(step.items):
                changed = reduce(change_secrets, filter(changes_secrets, step.items), spec)
                await renew_context(self.resources, writer, changed, step.prompt_seq)
            return await writer.summaries()

    @activity.defn(name="agent.prepare")
    async def prepare(self, task: Task[Prepare]) -> list[EventSummary]:
        """Record the system prompt; a missing tool ends the turn with an error."""
        async with self.begin(task) as (log, progress):
            spec = await load_spec(log, task.step.spec_seq)
            if spec.mcp:  # its servers run where tools do
                self.resources.queues.admit_tool()
            event: Event
            try:
                event = await build_prompt(self.resources, log, spec, progress.start_servers)
            except CatalogError as error:
                event = error_event(now(), error.code, str(error))
            return await append_exclusive(log, [event], task.base)

    @activity.defn(name="conversation.save")
    async def save(self, task: Task[SaveState]) -> None:
        """Save the state beside the log, and the messages of a turn that is over."""
        step = task.step
        async with self.begin(task) as (log, _):
            await record_changes(self.resources, log, step.state.spec)
            await self._notify_webhooks(log, step.state)
            await save_resting(self.resources, log, step.state, origin().run, step.ending)

    @activity.defn(name="conversation.close")
    async def close(self, task: Task[Close]) -> None:
        """Save the final state and the messages beside the log."""
        async with self.begin(task) as (log, _):
            await record_changes(self.resources, log, task.step.state.spec)
            await self._notify_webhooks(log, task.step.state)
            await save_closed(self.resources, log, task.step.state, origin().run)
            self.resources.evict(log, task.step.state.next_seq)

    async def _notify_webhooks(self, log: EventLog, state: State) -> None:
        if self.temporal is not None:
            await notify_webhooks(self.resources, self.temporal, log, state.next_seq)

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
        self.resources.code_versions.reload(spec, log)
        skills = None if state.first_user_seq is None else state.shown_skills
        unsure, forgotten = find_unsure_ids(state, items), state.forgotten_ids
        before = forgotten.through_seq + 1 if forgotten else 0
        repeated = await find_messages(log, unsure, before)
        refused = refuse_pending(state, items)
        items = [*with_wait_ends(state, items)]
        recorder = ItemRecorder(self.resources, writer, spec, skills, repeated)
        await recorder.record_all(items, refused)
        if state.prompt_seq is not None and spec.state and changes_shown_state(items):
            await renew_context(self.resources, writer, spec, state.prompt_seq)
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
            await writer.write("prompt", await build_prompt(self.resources, writer.log, step.spec))

    async def _reload_code(self, writer: Writer, spec: Agent) -> None:
        """Begin a turn with the user's modules as they are now; record a prompt that changed."""
        if not self.resources.code_versions.reload(spec, writer.log) or spec.mcp:
            return
        with contextlib.suppress(CatalogError):  # `llm.chat` records the error
            await writer.write("prompt", await build_prompt(self.resources, writer.log, spec))


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

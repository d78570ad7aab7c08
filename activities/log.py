"""Steps that write down what the workflow already knows."""

import contextlib
import json
from collections.abc import Sequence
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.batch_folders import told
from activities.delegate import child_id
from activities.items import event_of, rejection, updated
from activities.llm_messages import save_messages
from activities.masking import masked
from activities.recall import on_message
from activities.saying import say, spec_of
from activities.step import at_work, digests, now, origin
from activities.world import World, action_at, spec_at
from activities.writer import Writer, write_alone
from agent.decide import refusal
from agent.evolve import fold
from agent.inbox import Configured, Item, Noted, Rejected, Said
from agent.prompt import dynamic_context, static_prompt
from agent.spec import ModelSpec, Spec
from agent.state import DELEGATE, State, knows
from agent.steps import Open, Prepare, Record, Refusal, Save, Stop, Task
from events.content import TextContent
from events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from events.digest import Digest
from events.event import Event
from events.messages import SystemPromptEvent
from sandbox.sandbox import described
from storage.conversations import exists
from storage.errors import Fenced
from storage.log import EventLog
from storage.scopes import share
from storage.sealing import seal
from storage.state import state_of
from storage.verify import must_be_whole
from tools.catalog import CatalogError

OPENINGS = 5
"""How often an opening starts over because the run before was still writing."""

NO_SPEC = Spec(model=ModelSpec(name="none"))


class LogActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="log.open")
    async def open(self, task: Task[Open]) -> State:
        """Fold what the log holds, and take it over: older runs are fenced from here on."""
        async with at_work():
            log = self.world.log(task)
            await must_be_whole(log)
            for _ in range(OPENINGS - 1):
                try:
                    return await self._open(log, task.step)
                except Fenced:
                    if await _taken_over(log):
                        raise
            return await self._open(log, task.step)

    @activity.defn(name="log.append")
    async def append(self, task: Task[Record]) -> list[Digest]:
        """Record what was waiting in the inbox."""
        async with at_work():
            step, log = task.step, self.world.log(task)
            spec = await spec_at(log, step.spec) if step.spec else NO_SPEC
            writer = Writer(log, task.base)
            await self._write(writer, step.items, step.refusal, spec, step.skills)
            return digests(await writer.all())

    @activity.defn(name="agent.prepare")
    async def prepare(self, task: Task[Prepare]) -> list[Digest]:
        """Tell the agent who it is; a tool that is not there ends the turn with a sentence."""
        async with at_work():
            log = self.world.log(task)
            event: Event
            try:
                event = await self._prompt(log, await spec_at(log, task.step.spec), now())
            except CatalogError as error:
                event = ConversationErrorEvent(
                    timestamp=now(), code="tool_not_found", detail=str(error)
                )
            return digests(await write_alone(log, [event], task.base))

    @activity.defn(name="conversation.save")
    async def save(self, task: Task[Save]) -> None:
        """Keep the state beside the log."""
        async with at_work():
            await keep_state(self.world.log(task), task.step.state)

    @activity.defn(name="conversation.close")
    async def close(self, task: Task[Stop]) -> None:
        """Keep the final state beside the log, and what was said."""
        async with at_work():
            log = self.world.log(task)
            await keep_state(log, task.step.state, closing=True)
            if self.world.save_llm_messages:
                await save_messages(log, task.step.state)
            self.world.forget(log, task.step.state.next_seq)

    async def _open(self, log: EventLog, step: Open) -> State:
        """A retry finds what the attempt before it wrote, and adopts it from its first event on."""
        run = origin().run
        state = await state_of(log, before_run=run)
        new = state.spec is None
        sample = None
        if new and step.trial is not None:
            folder = self.world.batch(log.user_id, step.trial.batch)
            batch, sample = await told(folder, step.trial)
            step = step.model_copy(update={"spec": spec_of(batch, sample)})
        if new and step.spec is None:
            raise ApplicationError(
                f"There is no conversation {log.conversation_id}: start one with `perdure run`.",
                type="ConversationNotFound",
                non_retryable=True,
            )
        writer = Writer(log, state.next_seq)
        await self._begin(writer, step, run, new)
        items = [item for item in step.items if not knows(state, item)]
        spec = (step.spec if new else state.spec) or NO_SPEC
        skills = None if state.first is None else state.skills
        await self._write(writer, items, refusal(state, items), spec, skills)
        if sample is not None and step.trial is not None and not step.trial.setup:
            await say(self.world, writer, sample, 0, spec, skills)
        return await _delegating(log, fold(state, digests(await writer.all())))

    async def _begin(self, writer: Writer, step: Open, run: str, new: bool) -> None:
        value: dict[str, Any] = {"run_id": run, "sandbox": described(self.world.sandbox)}
        if step.parent:
            value["parent"] = step.parent.model_dump(exclude_none=True)
        if step.trial:
            value["trial"] = step.trial.model_dump(include={"batch", "epoch", "number"})
        await writer.write("opened", updated(now(), "opened", value))
        if not new or step.spec is None:
            return
        kept = json.loads(step.spec.model_dump_json(exclude_none=True))
        await writer.write("spec", updated(now(), "spec", kept))
        if step.spec.mcp:  # servers take their time: `agent.prepare` asks what they offer
            return
        with contextlib.suppress(CatalogError):  # `agent.prepare` says so, to the one who waits
            await writer.write("prompt", await self._prompt(writer.log, step.spec, now()))

    async def _prompt(self, log: EventLog, spec: Spec, at: str) -> SystemPromptEvent:
        context = dynamic_context(spec)
        tools = await self.world.tools(spec, log.conversation_id)
        return SystemPromptEvent(
            timestamp=at,
            system_prompt=TextContent(text=static_prompt(spec)),
            tools=tuple(tool.definition for tool in tools),
            dynamic_context=TextContent(text=context) if context else None,
        )

    async def _write(
        self,
        writer: Writer,
        items: Sequence[Item],
        refused: Refusal | None,
        spec: Spec,
        skills: tuple[str, ...] | None,
    ) -> None:
        """Write down what was asked for, with what messages of people call up behind each."""
        if refused is not None:
            await _reject(writer, refused)
        for nth, item in enumerate(items):
            if isinstance(item, Rejected):
                await _reject(writer, Refusal(actions=item.actions, reason=item.reason))
                continue
            await writer.write(f"item {nth}", event_of(item, now(), spec))
            if isinstance(item, Configured) and "secrets" in item.changes:
                then = spec.model_copy(update={"secrets": tuple(item.changes["secrets"])})
                with contextlib.suppress(CatalogError):  # then it goes by what it was told
                    prompt = await self._prompt(writer.log, then, now())
                    await writer.write(f"prompt {nth}", prompt)
            if isinstance(item, Noted) and item.key == "state":
                value = masked(item.value, self.world.secrets.mask)
                await share(writer.log.store, writer.log.user_id, value)
            if isinstance(item, Said):
                place = self.world.workspace(spec, writer.log.conversation_id)
                recalled = await on_message(skills is None, item.text, spec, place, skills or ())
                skills = (*(skills or ()), *(recalled.skills if recalled else ()))
                if recalled is not None:
                    await writer.write(f"recall {nth}", recalled)


async def keep_state(log: EventLog, state: State, closing: bool = False) -> None:
    """Keep the state, and what a damaged slot is told by."""
    await log.save_state(state.model_dump_json().encode())
    await seal(log, state.next_seq, closing)


async def _reject(writer: Writer, refused: Refusal) -> None:
    """Answer actions that will not happen; one that was answered meanwhile stays as it is."""
    for seq in refused.actions:
        action = await action_at(writer.log, seq)
        await writer.write(f"rejection {seq}", rejection(action, refused.reason, now()))


async def _delegating(log: EventLog, state: State) -> State:
    """The state in which no action is lost whose conversation has a log: that one is gone on with.

    A fork has none of the conversations that were delegated before it.
    """
    pending = []
    for one in state.pending:
        lost = one.tool_name == DELEGATE and one.lost is not None
        if lost and await exists(log.store, log.user_id, child_id(log.conversation_id, one.seq)):
            one = one.model_copy(update={"lost": None})
        pending.append(one)
    return state.model_copy(update={"pending": tuple(pending)})


async def _taken_over(log: EventLog) -> bool:
    """Whether another run has opened the conversation since this one tried."""
    [newest] = await log.newest(1)
    event = newest.event
    return isinstance(event, ConversationStateUpdateEvent) and event.key == "opened"

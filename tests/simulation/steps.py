"""The activities, as small as they can be: what they do to the log, and nothing else.

Each writes as the one of the same kind in `activities/` does, by the same code of `storage/` and
`activities/writer.py`; what it does in the world takes a while, and no more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from temporalio.exceptions import ApplicationError

from activities.items import event_of, rejection, updated
from activities.log import OPENINGS
from activities.step import final, is_retry, origin, to_its_end
from activities.world import action_at
from activities.writer import Writer, write_alone
from agent.completion import Completion
from agent.decide import refusal
from agent.evolve import fold
from agent.inbox import Item, Rejected
from agent.state import State, knows
from agent.steps import Act, Open, Prepare, Record, Refusal, Save, Settle, Stop, Task, Think
from events.actions import ThinkAction
from events.content import MessageToolCall, TextContent, ToolAnnotations, ToolDefinition
from events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from events.digest import Digest
from events.event import Event
from events.messages import MessageEvent, SystemPromptEvent
from events.observations import ThinkObservation
from events.projection import digest
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from models.model import ModelRefused, ModelUnavailable, Request
from storage.errors import (
    Damaged,
    Fenced,
    Missing,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    Superseded,
)
from storage.log import EventLog
from storage.state import state_of
from tests.simulation.world import NOW, SPEC, World

T = TypeVar("T")

PROMPT = SystemPromptEvent(
    timestamp=NOW,
    source="agent",
    system_prompt=TextContent(text="You are simulated."),
    tools=tuple(
        ToolDefinition(
            name=name,
            description=name,
            parameters={"type": "object"},
            annotations=ToolAnnotations(readOnlyHint=False, idempotentHint=name == "look"),
        )
        for name in ("look", "charge")
    ),
)
KEPT = SPEC.model_dump(mode="json", exclude_none=True)


def small(world: World) -> dict[str, Callable[[Any], Awaitable[Any]]]:
    """The activities by their names, each of which fails as a real one would."""
    steps = Steps(world)
    named: dict[str, Callable[[Any], Awaitable[Any]]] = {
        "log.open": steps.open,
        "log.append": steps.append,
        "agent.prepare": steps.prepare,
        "llm.chat": steps.chat,
        "tool.call": steps.call,
        "tool.settle": steps.settle,
        "conversation.save": steps.save,
        "conversation.close": steps.save,
    }
    return {name: _failing(step) for name, step in named.items()}


def _failing(step: Callable[[Any], Awaitable[T]]) -> Callable[[Any], Awaitable[T]]:
    async def attempt(task: Task[Any]) -> T:
        try:
            return await step(task)
        except (Fenced, Superseded, Damaged, Missing) as error:
            raise final(error) from error
        except (StoreError, ModelUnavailable) as error:
            raise ApplicationError(str(error), type=type(error).__name__) from error

    return attempt


class Steps:
    def __init__(self, world: World) -> None:
        self.world = world

    async def open(self, task: Task[Open]) -> State:
        log = self.world.log(task)
        for _ in range(OPENINGS - 1):
            try:
                return await self._open(log, task.step)
            except Fenced:
                [newest] = await log.newest(1)
                event = newest.event
                if isinstance(event, ConversationStateUpdateEvent) and event.key == "opened":
                    raise
        return await self._open(log, task.step)

    async def _open(self, log: EventLog, step: Open) -> State:
        run = origin().run
        state = await state_of(log, before_run=run)
        writer = Writer(log, state.next_seq)
        await writer.write("opened", updated(NOW, "opened", {"run_id": run}))
        if state.spec is None:
            await writer.write("spec", updated(NOW, "spec", KEPT))
            await writer.write("prompt", PROMPT)
        items = [item for item in step.items if not knows(state, item)]
        await _write(writer, items, refusal(state, items))
        return fold(state, [digest(entry) for entry in await writer.all()])

    async def append(self, task: Task[Record]) -> list[Digest]:
        writer = Writer(self.world.log(task), task.base)
        await _write(writer, task.step.items, task.step.refusal)
        return [digest(entry) for entry in await writer.all()]

    async def prepare(self, task: Task[Prepare]) -> list[Digest]:
        written = await write_alone(self.world.log(task), [PROMPT], task.base)
        return [digest(one) for one in written]

    async def chat(self, task: Task[Think]) -> list[Digest]:
        log = self.world.log(task)
        try:
            answer = await self._answer(log, task)
        except ModelRefused as error:
            failed = ConversationErrorEvent(timestamp=NOW, code=error.code, detail=str(error))
            return [digest(one) for one in await write_alone(log, [failed], task.base, "failure")]
        written = write_alone(log, events_of(answer), task.base, usage=answer.usage)
        return [digest(one) for one in await to_its_end(written)]

    async def _answer(self, log: EventLog, task: Task[Think]) -> Completion:
        known = is_retry() and self.world.on_record(log, task.base)
        recorded = await log.recorded(task.base) if is_retry() else None
        if recorded is not None:
            return recorded
        await log.read(max(0, task.base - 2), 2)
        request = Request(SPEC.model, [], number=task.step.number)
        if known:
            self.world.outside.needless.append(f"the answer of slot {task.base}")
        answer = await self.world.model.complete(request, lambda text: None)  # noqa: ARG005
        return await log.record(task.base, answer, origin())

    async def call(self, task: Task[Act]) -> list[Digest]:
        log = self.world.log(task)
        action = await action_at(log, task.step.action)
        if not task.step.repeatable or is_retry():
            held = await log.find(task.base)
            if held is not None and held.origin.run != origin().run:
                raise Fenced(f"slot {held.seq}", held.origin.run)
            settled = await log.settled(action.id, task.base)
            if settled is not None:
                return [digest(entry) for entry in settled]
            if not task.step.repeatable:
                self.world.outside.deeds[task.conversation_id, action.id] += 1
        await asyncio.sleep(self.world.loop.delay())
        done = ObservationEvent(
            timestamp=NOW,
            action_id=action.id,
            tool_name=action.tool_name,
            tool_call_id=action.tool_call_id,
            observation=ThinkObservation(),
        )
        return await to_its_end(_kept(log, task.base, done))

    async def settle(self, task: Task[Settle]) -> list[Digest]:
        log = self.world.log(task)
        action = await action_at(log, task.step.action)
        unknown = AgentErrorEvent(
            timestamp=NOW,
            action_id=action.id,
            tool_name=action.tool_name,
            tool_call_id=action.tool_call_id,
            error="Nobody knows what came of it.",
            classification="outcome_unknown",
        )
        return await _appended(log, task.base, unknown)

    async def save(self, task: Task[Save] | Task[Stop]) -> None:
        await self.world.log(task).save_state(task.step.state.model_dump_json().encode())


def events_of(answer: Completion) -> list[Event]:
    """The answer's calls, or its words; the same whenever it is asked."""
    calls = answer.message.tool_calls or ()
    if not calls:
        said = MessageEvent(timestamp=NOW, source="agent", llm_message=answer.message)
        return [said.model_copy(update={"llm_response_id": answer.id})]
    return [_action(answer, call) for call in calls]


def _action(answer: Completion, call: MessageToolCall) -> ActionEvent:
    return ActionEvent(
        timestamp=NOW,
        action=ThinkAction(thought=call.id),
        tool_name=call.name,
        tool_call_id=call.id,
        tool_call=call,
        llm_response_id=answer.id,
        touches=(call.id,),
    )


async def _write(writer: Writer, items: Sequence[Item], refused: Refusal | None) -> None:
    if refused is not None:
        await _reject(writer, refused)
    for nth, item in enumerate(items):
        if isinstance(item, Rejected):
            await _reject(writer, Refusal(actions=item.actions, reason=item.reason))
        else:
            await writer.write(f"item {nth}", event_of(item, NOW, SPEC))


async def _reject(writer: Writer, refused: Refusal) -> None:
    for seq in refused.actions:
        action = await action_at(writer.log, seq)
        await writer.write(f"rejection {seq}", rejection(action, refused.reason, NOW))


async def _kept(log: EventLog, base: int, answer: ObservationEvent) -> list[Digest]:
    """What was done is put on record however long the store is away."""
    while True:
        try:
            return await _appended(log, base, answer)
        except (StoreUnavailable, StoreRefused):
            await asyncio.sleep(1.0)


async def _appended(
    log: EventLog, base: int, answer: ObservationEvent | AgentErrorEvent
) -> list[Digest]:
    entries = await log.append([answer], base=base, origin=origin(), shared=True)
    if entries[-1].origin.activity != origin().activity:
        await log.keep(answer.model_dump_json(exclude_none=True).encode())
    return [digest(entry) for entry in entries]

"""The activities, as small as they can be: what they do to the log, and nothing else.

Each writes as the one of the same kind in `activities/` does, by the same code of `storage/` and
`activities/writer.py`; what it does in the world takes a while, and no more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from temporalio.exceptions import ApplicationError

from perdure.activities.inbox.wait_events import start_event
from perdure.activities.log import MAX_OPEN_TRIES
from perdure.activities.support.inbox_events import rejection, state_update, to_event
from perdure.activities.support.load import load_event
from perdure.activities.support.responses import (
    append_failure,
    find_record,
    record_and_append,
    record_events,
)
from perdure.activities.support.step import (
    ignore_cancellation,
    is_local,
    is_retry,
    non_retryable,
    origin,
)
from perdure.activities.support.writer import Writer, append_exclusive
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.decide import refuse_pending
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import Answer, InboxItem, Rejection, WaitEnd, WaitStart
from perdure.agent.loop.state import State, is_recorded
from perdure.agent.loop.steps import (
    Act,
    Close,
    Open,
    Prepare,
    Record,
    Refusal,
    ResolveLostCall,
    SaveState,
    Task,
    Think,
)
from perdure.agent.loop.wait_steps import with_wait_ends
from perdure.events.actions import MCPToolAction, ThinkAction
from perdure.events.content import MessageToolCall, TextContent, ToolAnnotations, ToolDefinition
from perdure.events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from perdure.events.event import Event
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.observations import ThinkObservation
from perdure.events.projection import summarize
from perdure.events.summary import EventSummary
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.models.model import ModelRefused, ModelUnavailable, Request
from perdure.storage.errors import (
    Damaged,
    Fenced,
    Missing,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    Superseded,
)
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from reliability.simulation.world import NOW, SPEC, WAITS, WorkerResources

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
            suspends=name in WAITS,
        )
        for name in ("look", "charge", *WAITS)
    ),
)
SAVED_STATES = SPEC.model_dump(mode="json", exclude_none=True)


def make_activities(world: WorkerResources) -> dict[str, Callable[[Any], Awaitable[Any]]]:
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
    return {name: convert_errors(step) for name, step in named.items()}


def convert_errors(step: Callable[[Any], Awaitable[T]]) -> Callable[[Any], Awaitable[T]]:
    async def attempt(task: Task[Any]) -> T:
        try:
            return await step(task)
        except (Fenced, Superseded, Damaged, Missing) as error:
            raise non_retryable(error) from error
        except (StoreError, ModelUnavailable) as error:
            raise ApplicationError(str(error), type=type(error).__name__) from error

    return attempt


class Steps:
    def __init__(self, world: WorkerResources) -> None:
        self.world = world

    async def open(self, task: Task[Open]) -> State:
        log = self.world.log(task)
        for _ in range(MAX_OPEN_TRIES - 1):
            try:
                return await self._open(log, task.step)
            except Fenced:
                [newest] = await log.read_newest(1)
                event = newest.event
                if isinstance(event, ConversationStateUpdateEvent) and event.key == "opened":
                    raise
        return await self._open(log, task.step)

    async def _open(self, log: EventLog, step: Open) -> State:
        run = origin().run
        state = await read_state(log, before_run=run)
        writer = Writer(log, state.next_seq)
        await writer.write("opened", state_update(NOW, "opened", {"run_id": run}))
        if state.spec is None:
            await writer.write("spec", state_update(NOW, "spec", SAVED_STATES))
            await writer.write("prompt", PROMPT)
        items = [item for item in step.items if not is_recorded(state, item)]
        refused = refuse_pending(state, items)
        await _write(writer, [*with_wait_ends(state, items)], refused)
        return fold(state, await writer.summaries())

    async def append(self, task: Task[Record]) -> list[EventSummary]:
        writer = Writer(self.world.log(task), task.base)
        await _write(writer, task.step.items, task.step.refusal)
        return await writer.summaries()

    async def prepare(self, task: Task[Prepare]) -> list[EventSummary]:
        return await append_exclusive(self.world.log(task), [PROMPT], task.base)

    async def chat(self, task: Task[Think]) -> list[EventSummary]:
        log = self.world.log(task)
        known = is_retry() and self.world.on_record(log, task.base)
        record = await find_record(log, task.base)
        if isinstance(record, list):
            return record
        if known and record is None:
            self.world.outside.needless.append(f"the answer of slot {task.base}")
        try:
            answer = record or await self._request(log, task)
        except ModelRefused as error:
            failed = ConversationErrorEvent(timestamp=NOW, code=error.code, detail=str(error))
            return await append_failure(log, task.base, failed, "failure", parse)
        write = record_events if record is None else record_and_append
        return await ignore_cancellation(write(log, task.base, answer, parse))

    async def _request(self, log: EventLog, task: Task[Think]) -> Completion:
        await log.read(max(0, task.base - 2), 2)
        request = Request(SPEC.model, [], number=task.step.response_index)
        return await self.world.model.complete(request, lambda text: None)  # noqa: ARG005

    async def call(self, task: Task[Act]) -> list[EventSummary]:
        log = self.world.log(task)
        action = await load_event(log, task.step.action_seq, ActionEvent)
        if not task.step.repeatable or is_retry():
            settled = await log.find_answer(action.id, task.base, origin().run)
            if settled is not None:
                return [summarize(entry) for entry in settled]
            if not task.step.repeatable:
                self.world.outside.actions[task.conversation_id, action.id] += 1
        await asyncio.sleep(self.world.loop.delay())
        done = ObservationEvent(
            timestamp=NOW,
            action_id=action.id,
            tool_name=action.tool_name,
            tool_call_id=action.tool_call_id,
            observation=ThinkObservation(),
        )
        return await ignore_cancellation(append_until_stored(log, task.base, done))

    async def settle(self, task: Task[ResolveLostCall]) -> list[EventSummary]:
        log = self.world.log(task)
        action = await load_event(log, task.step.action_seq, ActionEvent)
        unknown = AgentErrorEvent(
            timestamp=NOW,
            action_id=action.id,
            tool_name=action.tool_name,
            tool_call_id=action.tool_call_id,
            error="Nobody knows what came of it.",
            classification="outcome_unknown",
        )
        return await append_result(log, task.base, unknown)

    async def save(self, task: Task[SaveState] | Task[Close]) -> None:
        await self.world.log(task).save_state(encode_cached_state(task.step.state))


async def parse(answer: Completion) -> list[Event]:
    return events_of(answer)


def events_of(answer: Completion) -> list[Event]:
    """The answer's calls, or its words; the same whenever it is asked."""
    calls = answer.message.tool_calls or ()
    if not calls:
        message = MessageEvent(timestamp=NOW, source="agent", llm_message=answer.message)
        return [message.model_copy(update={"llm_response_id": answer.id})]
    first = _action(answer, calls[0]).model_copy(update={"thought": answer.message.content})
    return [first, *(_action(answer, call) for call in calls[1:])]


def _action(answer: Completion, call: MessageToolCall) -> ActionEvent:
    waits = WAITS.get(call.name)
    return ActionEvent(
        timestamp=NOW,
        action=MCPToolAction(data=waits) if waits else ThinkAction(thought=call.id),
        tool_name=call.name,
        tool_call_id=call.id,
        tool_call=call,
        llm_response_id=answer.id,
        touches=(call.id,),
    )


async def _write(writer: Writer, items: Sequence[InboxItem], refused: Refusal | None) -> None:
    if refused is not None:
        await _reject(writer, refused)
    for nth, item in enumerate(items):
        if isinstance(item, Rejection):
            await _reject(writer, Refusal(action_seqs=item.actions, reason=item.reason))
        elif isinstance(item, WaitStart | WaitEnd | Answer):
            action = await load_event(writer.log, item.action, ActionEvent)
            await writer.write(f"item {nth}", _wait_event(action, item))
        else:
            await writer.write(f"item {nth}", to_event(item, NOW, SPEC))


def _wait_event(action: ActionEvent, item: WaitStart | WaitEnd | Answer) -> Event:
    if isinstance(item, WaitStart):
        return start_event(action, NOW)
    return ObservationEvent(
        timestamp=NOW,
        action_id=action.id,
        tool_name=action.tool_name,
        tool_call_id=action.tool_call_id,
        observation=ThinkObservation(),
        ended_by="answer" if isinstance(item, Answer) else item.ended_by,
    )


async def _reject(writer: Writer, refused: Refusal) -> None:
    for seq in refused.action_seqs:
        action = await load_event(writer.log, seq, ActionEvent)
        await writer.write(f"rejection {seq}", rejection(action, refused.reason, NOW))


async def append_until_stored(
    log: EventLog, base: int, answer: ObservationEvent
) -> list[EventSummary]:
    """Append the events, however long the store is away."""
    while True:
        try:
            return await append_result(log, base, answer)
        except (StoreUnavailable, StoreRefused):
            if is_local():
                raise
            await asyncio.sleep(1.0)


async def append_result(
    log: EventLog, base: int, answer: ObservationEvent | AgentErrorEvent
) -> list[EventSummary]:
    entries = await log.append([answer], base=base, origin=origin(), shared=True)
    if entries[-1].origin.activity != origin().activity:
        await log.store_blob(answer.model_dump_json(exclude_none=True).encode())
    return [summarize(entry) for entry in entries]

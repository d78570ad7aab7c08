"""Steps that write down what the workflow already knows."""

import json

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.step import at_work, digests, now, origin
from activities.world import World, spec_at, tools_of
from agent.inbox import CloseAsked, Failed, Item, PauseAsked, Refused, ResumeAsked, Said
from agent.spec import DEFAULT_PROMPT, Spec
from agent.state import State, fold, knows
from agent.steps import Open, Prepare, Record, Save, Stop, Task
from events.content import Message, TextContent
from events.control import ConversationErrorEvent, ConversationStateUpdateEvent, PauseEvent
from events.digest import Digest
from events.event import Event
from events.messages import MessageEvent, SystemPromptEvent
from storage.errors import Fenced
from storage.log import EventLog
from storage.state import state_of
from tools.catalog import CatalogError

OPENINGS = 5
"""How often an opening starts over because the run before was still writing."""


class LogActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="log.open")
    async def open(self, task: Task[Open]) -> State:
        """Fold what the log holds, and take it over: older runs are fenced from here on."""
        async with at_work():
            log = self.world.log(task)
            for _ in range(OPENINGS - 1):
                try:
                    return await _open(log, task.step)
                except Fenced:
                    if await _taken_over(log):
                        raise
            return await _open(log, task.step)

    @activity.defn(name="log.append")
    async def append(self, task: Task[Record]) -> list[Digest]:
        """Record what was waiting in the inbox."""
        async with at_work():
            recorded = [_event(item, now()) for item in task.step.items]
            log = self.world.log(task)
            return digests(await log.append(recorded, base=task.base, origin=origin(), shared=True))

    @activity.defn(name="agent.prepare")
    async def prepare(self, task: Task[Prepare]) -> list[Digest]:
        """Tell the agent who it is; a tool that is not there ends the turn with a sentence."""
        async with at_work():
            log = self.world.log(task)
            event: Event
            try:
                event = _prompt(await spec_at(log, task.step.spec), now())
            except CatalogError as error:
                event = ConversationErrorEvent(
                    timestamp=now(), code="tool_not_found", detail=str(error)
                )
            return digests(await log.append([event], base=task.base, origin=origin()))

    @activity.defn(name="conversation.save")
    async def save(self, task: Task[Save]) -> None:
        """Keep the state beside the log."""
        async with at_work():
            await self.world.log(task).save_state(task.step.state.encode())

    @activity.defn(name="conversation.close")
    async def close(self, task: Task[Stop]) -> None:
        """Keep the final state beside the log."""
        async with at_work():
            await self.world.log(task).save_state(task.step.state.encode())


async def _open(log: EventLog, step: Open) -> State:
    """A retry finds what the attempt before it wrote, and adopts it from its first event on."""
    mine = origin()
    state = await state_of(log, before_run=mine.run)
    new = state.next_seq == 0
    if new and step.spec is None:
        raise ApplicationError(
            f"There is no conversation {log.conversation_id}: start one with `perdure run`.",
            type="ConversationNotFound",
            non_retryable=True,
        )
    opening = _opening(mine.run, step.spec if new else None)
    opening += [_event(item, now()) for item in step.items if not knows(state, item)]
    return fold(state, digests(await log.append(opening, base=state.next_seq, origin=mine)))


async def _taken_over(log: EventLog) -> bool:
    """Whether another run has opened the conversation since this one tried."""
    [newest] = await log.newest(1)
    event = newest.event
    return isinstance(event, ConversationStateUpdateEvent) and event.key == "opened"


def _opening(run: str, spec: Spec | None) -> list[Event]:
    at = now()
    opened = ConversationStateUpdateEvent(timestamp=at, key="opened", value={"run_id": run})
    if spec is None:
        return [opened]
    kept = json.loads(spec.model_dump_json(exclude_none=True))
    put_in_force = ConversationStateUpdateEvent(timestamp=at, key="spec", value=kept)
    try:
        return [opened, put_in_force, _prompt(spec, at)]
    except CatalogError:  # `agent.prepare` says so, once there is a turn that it ends
        return [opened, put_in_force]


def _prompt(spec: Spec, at: str) -> SystemPromptEvent:
    return SystemPromptEvent(
        timestamp=at,
        system_prompt=TextContent(text=spec.system_prompt or DEFAULT_PROMPT),
        tools=tuple(tool.definition for tool in tools_of(spec.tools).values()),
    )


def _event(item: Item, at: str) -> Event:
    match item:
        case Said():
            said = Message(role="user", content=(TextContent(text=item.text),))
            return MessageEvent(
                timestamp=at,
                source="user",
                llm_message=said,
                message_id=item.message_id,
                sender=item.sender,
            )
        case PauseAsked():
            return PauseEvent(timestamp=at)
        case ResumeAsked():
            return _status(at, "resumed")
        case CloseAsked():
            return _status(at, "closed")
        case Failed():
            return ConversationErrorEvent(timestamp=at, code=item.code, detail=item.detail)
        case Refused():
            return _refused(at, item.detail)


def _status(at: str, value: str) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=at, source="user", key="status", value=value)


def _refused(at: str, detail: str) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=at, key="refused", value=detail)

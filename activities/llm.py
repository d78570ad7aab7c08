"""The step that asks the model."""

import asyncio
from collections.abc import Mapping
from uuid import UUID, uuid5

from temporalio import activity

from activities.step import (
    News,
    at_work,
    digests,
    is_retry,
    later,
    must_be_awaited,
    now,
    origin,
    to_its_end,
    was_stopped,
)
from activities.world import World, prompt_at, spec_at
from activities.writer import write_alone
from agent.annotations import asking
from agent.answer import Offered, events_of
from agent.assessment import Assessment
from agent.completion import Completion
from agent.spec import Spec
from agent.steps import Task, Think
from agent.transcript import function_of
from events.condensation import CondensationRequest
from events.content import Message, TextContent
from events.control import ConversationErrorEvent
from events.digest import Digest
from events.entry import Entry
from events.event import Event
from events.messages import MessageEvent
from models.model import ContextOverflow, ModelRefused, ModelUnavailable, Request
from storage.log import EventLog
from tools.catalog import CatalogError
from tools.risk.analyzers import analyzers

Tools = Mapping[str, Offered]


class ModelActivities:
    def __init__(self, world: World) -> None:
        self.world = world

    @activity.defn(name="llm.chat")
    async def chat(self, task: Task[Think]) -> list[Digest]:
        """Show the model the conversation so far; record its answer, then what follows from it."""
        async with at_work(self.world.secrets) as news:
            log = self.world.log(task)
            try:
                spec = await spec_at(log, task.step.spec)
                self.world.lanes.admit(task.step, spec)
                prompt = await prompt_at(log, task.step.prompt)
                tools = self.world.offered(spec, prompt, task.conversation_id)
                completion = await self._answer(log, task, spec, tools, news)
            except (ModelRefused, ContextOverflow, CatalogError) as error:
                return digests(await write_alone(log, [_failure(error)], task.base, "failure"))
            except asyncio.CancelledError:
                if not (was_stopped() and news.text.strip()):
                    raise
                partial = [_partial(news.text)]
                return digests(await write_alone(log, partial, task.base, "partial"))
            return digests(await to_its_end(self._written(log, task, spec, tools, completion)))

    async def _written(
        self, log: EventLog, task: Task[Think], spec: Spec, tools: Tools, answer: Completion
    ) -> list[Entry]:
        assessment = self._assessment(task, spec, tools)
        # A hostile command can take a second to judge: not on the loop that heartbeats.
        events = await asyncio.to_thread(events_of, answer, tools, assessment)
        return await write_alone(log, events, task.base, usage=answer.usage)

    async def _answer(
        self, log: EventLog, task: Task[Think], spec: Spec, tools: Tools, news: News
    ) -> Completion:
        """The answer to the events before `base`: asked for once, however often this is tried."""
        step = task.step
        recorded = await log.recorded(task.base) if is_retry() else None
        if recorded is not None:
            return recorded
        transcript = await self.world.transcripts.of(
            log, task.base, step.forgotten or (), spec.condenser
        )
        told = (tool.definition for tool in tools.values())
        request = Request(
            spec.model,
            transcript.messages(),
            [function_of(asking(one) if _asks_for_risks(spec) else one) for one in told],
            fallbacks=spec.fallbacks,
            number=step.number,
            key=f"{log.conversation_id}/{task.base}",
        )
        must_be_awaited(news)
        try:
            answer = await self.world.model.complete(request, news.tell)
        except ModelUnavailable as error:
            raise later(error) from error
        return await log.record(task.base, answer, origin())

    def _assessment(self, task: Task[Think], spec: Spec, tools: Tools) -> Assessment | None:
        """Who tells how risky the answer's actions are, where a policy asks."""
        if spec.confirmation.policy == "never":
            return None
        workspace = self.world.workspace(spec, task.conversation_id)
        readers = [name for name, tool in tools.items() if tool.definition.annotations.readOnlyHint]
        return Assessment(
            spec.confirmation.policy,
            analyzers(spec.analyzers, workspace, readers),
            lambda nth: str(uuid5(UUID(task.conversation_id), str(task.base + nth))),
        )


def _asks_for_risks(spec: Spec) -> bool:
    return spec.confirmation.policy != "never" and "model" in spec.analyzers


def _partial(text: str) -> MessageEvent:
    """What the model had said when it was stopped."""
    said = Message(role="assistant", content=(TextContent(text=text),))
    return MessageEvent(timestamp=now(), source="agent", llm_message=said, sender="interrupted")


def _failure(error: ModelRefused | ContextOverflow | CatalogError) -> Event:
    """What stands in the log for an answer that did not come."""
    if isinstance(error, ContextOverflow):
        return CondensationRequest(timestamp=now())
    code = error.code if isinstance(error, ModelRefused) else "tool_not_found"
    return ConversationErrorEvent(timestamp=now(), code=code, detail=str(error))

"""The activity that asks the model."""

import asyncio
from collections.abc import Mapping
from uuid import UUID, uuid5

from temporalio import activity

from perdure.activities.support.resources import Resources, load_prompt, load_spec
from perdure.activities.support.step import (
    StepProgress,
    ensure_not_given_up,
    heartbeating,
    ignore_cancellation,
    is_retry,
    now,
    origin,
    retry_later,
    summarize_all,
    was_cancel_requested,
)
from perdure.activities.support.writer import append_exclusive
from perdure.agent.calls.answer import OfferedTool, parse_response
from perdure.agent.calls.completion import Completion
from perdure.agent.calls.risk import RiskAssessor, add_annotation_parameters
from perdure.agent.loop.steps import Task, Think
from perdure.agent.spec import Agent
from perdure.agent.view.transcript import render_tool
from perdure.events.condensation import CondensationRequest
from perdure.events.content import Message, TextContent
from perdure.events.control import ConversationErrorEvent
from perdure.events.entry import Entry
from perdure.events.event import Event
from perdure.events.messages import MessageEvent
from perdure.events.summary import EventSummary
from perdure.models.model import ContextOverflow, ModelRefused, ModelUnavailable, Request
from perdure.storage.log.event_log import EventLog
from perdure.tools.catalog import CatalogError
from perdure.tools.risk.analyzers import load_analyzers

Tools = Mapping[str, OfferedTool]


class ModelActivities:
    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    @activity.defn(name="llm.chat")
    async def chat(self, task: Task[Think]) -> list[EventSummary]:
        """Send the model the conversation, and record its answer and the events of it."""
        async with heartbeating(self.resources.secrets) as progress:
            log = self.resources.log(task)
            try:
                spec = await load_spec(log, task.step.spec_seq)
                self.resources.model_queues.admit(task.step, spec)
                prompt = await load_prompt(log, task.step.prompt_seq)
                tools = self.resources.offered_tools(spec, prompt, task.conversation_id)
                completion = await self._complete(log, task, spec, tools, progress)
            except (ModelRefused, ContextOverflow, CatalogError) as error:
                return summarize_all(
                    await append_exclusive(log, [_failure_event(error)], task.base, "failure")
                )
            except asyncio.CancelledError:
                if not (was_cancel_requested() and progress.text.strip()):
                    raise
                partial = [_partial_message(progress.text)]
                return summarize_all(await append_exclusive(log, partial, task.base, "partial"))
            return summarize_all(
                await ignore_cancellation(self._record_events(log, task, spec, tools, completion))
            )

    async def _record_events(
        self, log: EventLog, task: Task[Think], spec: Agent, tools: Tools, answer: Completion
    ) -> list[Entry]:
        assessment = self._assessment(task, spec, tools)
        # A hostile command can take a second to assess: not on the loop that heartbeats.
        events = await asyncio.to_thread(parse_response, answer, tools, assessment)
        return await append_exclusive(log, events, task.base, usage=answer.usage)

    async def _complete(
        self, log: EventLog, task: Task[Think], spec: Agent, tools: Tools, progress: StepProgress
    ) -> Completion:
        """Return the answer to the events before `base`, requested once despite retries."""
        step = task.step
        recorded = await log.read_response(task.base) if is_retry() else None
        if recorded is not None:
            return recorded
        transcript = await self.resources.transcripts.load(
            log, task.base, step.forgotten_seqs or (), spec.condenser
        )
        definitions = (tool.definition for tool in tools.values())
        request = Request(
            spec.model,
            transcript.messages(),
            [
                render_tool(
                    add_annotation_parameters(definition) if _asks_for_risks(spec) else definition
                )
                for definition in definitions
            ],
            fallbacks=spec.fallbacks,
            number=step.response_index,
            key=f"{log.conversation_id}/{task.base}",
        )
        ensure_not_given_up(progress)
        try:
            answer = await self.resources.model.complete(request, progress.report)
        except ModelUnavailable as error:
            raise retry_later(error) from error
        return await log.record_response(task.base, answer, origin())

    def _assessment(self, task: Task[Think], spec: Agent, tools: Tools) -> RiskAssessor | None:
        """Return how to assess the risk of the actions, None if the policy never asks."""
        if spec.confirmation.policy == "never":
            return None
        workspace = self.resources.workspace(spec, task.conversation_id)
        read_only = [
            name for name, tool in tools.items() if tool.definition.annotations.readOnlyHint
        ]
        return RiskAssessor(
            spec.confirmation.policy,
            load_analyzers(spec.analyzers, workspace, read_only),
            lambda nth: str(uuid5(UUID(task.conversation_id), str(task.base + nth))),
        )


def _asks_for_risks(spec: Agent) -> bool:
    return spec.confirmation.policy != "never" and "model" in spec.analyzers


def _partial_message(text: str) -> MessageEvent:
    """Build the message of a model that was interrupted."""
    message = Message(role="assistant", content=(TextContent(text=text),))
    return MessageEvent(timestamp=now(), source="agent", llm_message=message, sender="interrupted")


def _failure_event(error: ModelRefused | ContextOverflow | CatalogError) -> Event:
    """Build the event that records a failed request."""
    if isinstance(error, ContextOverflow):
        return CondensationRequest(timestamp=now())
    code = error.code if isinstance(error, ModelRefused) else "tool_not_found"
    return ConversationErrorEvent(timestamp=now(), code=code, detail=str(error))

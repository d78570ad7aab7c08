"""The activity that asks the model."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from functools import partial
from uuid import UUID, uuid5

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.activities.support.faults import report_fault
from perdure.activities.support.inbox_events import error_event
from perdure.activities.support.late_signals import search_late_signals
from perdure.activities.support.load import load_event, load_spec
from perdure.activities.support.prompt_images import load_prompt
from perdure.activities.support.recording import replay_answer
from perdure.activities.support.resources import Activities
from perdure.activities.support.responses import (
    Parse,
    append_failure,
    find_record,
    record_and_append,
    record_events,
)
from perdure.activities.support.step import (
    StepProgress,
    ensure_not_given_up,
    ignore_cancellation,
    now,
    was_cancel_requested,
)
from perdure.activities.workspace.file_changes import begin_scan
from perdure.agent.calls.answer import OfferedTool, parse_response
from perdure.agent.calls.completion import Completion
from perdure.agent.calls.risk import RiskAssessor, add_annotation_parameters
from perdure.agent.loop.phase import INTERNAL_ERROR, describe_fault
from perdure.agent.loop.steps import Task, Think
from perdure.agent.spec import Agent
from perdure.agent.view.transcript import render_tool
from perdure.events.condensation import CondensationRequest
from perdure.events.content import Message, TextContent, ToolDefinition
from perdure.events.event import Event
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.summary import EventSummary
from perdure.models.model import ContextOverflow, ModelRefused, Request
from perdure.storage.log.event_log import EventLog
from perdure.tools.errors import CatalogError
from perdure.tools.risk.analyzers import load_analyzers

Tools = Mapping[str, OfferedTool]

MAX_QUICK_CHARS = 20_000
"""Length of arguments that are parsed within a millisecond."""


class ModelActivities(Activities):
    @activity.defn(name="llm.chat")
    async def chat(self, task: Task[Think]) -> list[EventSummary]:
        """Send the model the conversation, and record its answer and the events of it."""
        async with self.begin(task) as (log, progress):
            record = await find_record(log, task.base)
            if isinstance(record, list):
                return record
            with search_late_signals(None if record else task.step.seen_events) as is_late:
                return await self._chat(log, task, progress, record, is_late)

    async def _chat(
        self,
        log: EventLog,
        task: Task[Think],
        progress: StepProgress,
        record: Completion | None,
        is_late: Awaitable[bool],
    ) -> list[EventSummary]:
        """Have the model answer, unless `record` has its answer; append the events of it.

        Returns none if the step is late: the workflow decides again, with what it knows then.
        """
        base = task.base
        parse: Parse = _refuse_to_parse
        try:
            spec = await load_spec(log, task.step.spec_seq)
            begin_scan(self.resources, spec, log)
            self.resources.queues.admit(task.step, spec)
            prompt = await load_event(log, task.step.prompt_seq, SystemPromptEvent)
            tools = self.resources.offered_tools(spec, prompt, log)
            assessor = self._assessment(log, base, spec, tools)
            parse = partial(_parse, tools=tools, assessor=assessor)
            answer = record or await self._complete(log, task, spec, tools, progress, is_late)
        except (ModelRefused, ContextOverflow, CatalogError) as error:
            if await is_late:
                return []
            return await append_failure(log, base, _failure_event(error), "failure", parse)
        except asyncio.CancelledError:
            if not (was_cancel_requested() and progress.text.strip()):
                raise
            interrupted = _interrupted_message(progress.text)
            return await append_failure(log, base, interrupted, "partial", parse)
        if answer is None:
            return []
        # A worker may die of what takes long: such an answer is recorded before it is judged.
        is_quick = record is None and _is_quick(answer, assessor)
        write = record_events if is_quick else record_and_append
        return await ignore_cancellation(write(log, base, answer, parse))

    async def _complete(
        self,
        log: EventLog,
        task: Task[Think],
        spec: Agent,
        tools: Tools,
        progress: StepProgress,
        is_late: Awaitable[bool],
    ) -> Completion | None:
        """Request the answer to the events before `base`; return None if the step is late."""
        transcript = await self.resources.transcripts.load(
            log,
            task.base,
            task.step.forgotten_seqs or (),
            spec.condenser,
            spec.model.max_message_chars,
        )
        prompt = Request(
            spec.model,
            await load_prompt(log, transcript),
            [render_tool(definition) for definition in _definitions(spec, tools)],
            fallbacks=spec.fallbacks,
            number=task.step.response_index,
            key=f"{log.conversation_id}/{task.base}",
            metadata=spec.metadata,
        )
        if await is_late:
            return None
        ensure_not_given_up(progress)
        if spec.replay is not None:
            replayed = await replay_answer(log, spec.replay, prompt, progress.report)
            if replayed is not None:
                return replayed
        return await self.resources.model.complete(prompt, progress.report)

    def _assessment(
        self, log: EventLog, base: int, spec: Agent, tools: Tools
    ) -> RiskAssessor | None:
        """Return how to assess the risk of the actions, None if the policy never asks."""
        if spec.confirmation.policy == "never":
            return None
        workspace = self.resources.workspace(spec, log)
        read_only = [
            name for name, tool in tools.items() if tool.definition.annotations.readOnlyHint
        ]
        return RiskAssessor(
            spec.confirmation.policy,
            load_analyzers(spec.analyzers, workspace, read_only),
            lambda nth: str(uuid5(UUID(log.conversation_id), str(base + nth))),
        )


async def _parse(answer: Completion, tools: Tools, assessor: RiskAssessor | None) -> list[Event]:
    """Parse an answer; one that may take a while in a thread, as the loop has to heartbeat."""
    if _is_quick(answer, assessor):
        return parse_response(answer, tools)
    return await asyncio.to_thread(parse_response, answer, tools, assessor)


async def _refuse_to_parse(answer: Completion) -> list[Event]:
    """Have Temporal repeat an attempt that lacks the tools for a response which is on record."""
    raise ApplicationError(f"The tools that response {answer.id} may call cannot be loaded.")


def _is_quick(answer: Completion, assessor: RiskAssessor | None) -> bool:
    """Tell whether an answer has nothing to judge, and little to parse."""
    calls = answer.message.tool_calls or ()
    size = sum(len(call.arguments) for call in calls)
    return not calls or (assessor is None and size <= MAX_QUICK_CHARS)


def _definitions(spec: Agent, tools: Tools) -> Iterator[ToolDefinition]:
    """Yield the tools as the model is offered them: with a parameter for its own rating."""
    asks_for_risks = spec.confirmation.policy != "never" and "model" in spec.analyzers
    for tool in tools.values():
        yield add_annotation_parameters(tool.definition) if asks_for_risks else tool.definition


def _interrupted_message(text: str) -> MessageEvent:
    """Build the message of a model that was interrupted."""
    message = Message(role="assistant", content=(TextContent(text=text),))
    return MessageEvent(timestamp=now(), source="agent", llm_message=message, sender="interrupted")


def _failure_event(error: ModelRefused | ContextOverflow | CatalogError) -> Event:
    """Build the event that records a failed request."""
    if isinstance(error, ContextOverflow):
        return CondensationRequest(timestamp=now())
    if error.code == INTERNAL_ERROR:
        kind = type(error.__cause__ or error).__name__
        return error_event(now(), error.code, describe_fault(kind, report_fault(error)))
    return error_event(now(), error.code, str(error))

"""Making spans and metrics of steps as they end."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import Delegation
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Task
from perdure.errors import PerdureError
from perdure.events.entry import Entry
from perdure.events.summary import EventSummary
from perdure.storage.keys import event_id
from perdure.storage.log.reader import LogReader
from perdure.telemetry import names, spans
from perdure.telemetry.content import Mask, add_content
from perdure.telemetry.identity import SpanPlace, turn_place
from perdure.telemetry.metrics import Metrics
from perdure.telemetry.record import StepRecord, recording
from perdure.telemetry.sender import Sender
from perdure.telemetry.spans import Span, StepContext
from perdure.telemetry.turns import EndedTurn, TurnPosition, read_position
from perdure.tools.mcp.call_trace import CallTrace

logger = logging.getLogger("perdure.worker.telemetry")

OpenLog = Callable[[str, str], LogReader]
"""Opens the log of a conversation of a user, as the step that runs may read it."""

FindMask = Callable[[str], Mask]
"""Finds what masks the secrets of a user; without it spans have no content."""

CHAT, TITLE, CONDENSE, CALL = "llm.chat", "llm.title", "llm.condense", "tool.call"
CALLS = (CALL, "tool.settle", "agent.report")
ELSEWHERE = ("tool.settle", "agent.report")
"""Steps that answer a call which was made in another step, or another conversation."""


class StepObserver(Interceptor):
    """Makes the spans of each step that has ended, and of the turn that was over before it.

    A step that fails makes those of its requests alone: the attempt that succeeds, here or on
    another worker, makes the others, with the ids that this one would have given them.
    """

    def __init__(
        self,
        open_log: OpenLog,
        sender: Sender | None,
        metrics: Metrics,
        find_mask: FindMask | None = None,
    ) -> None:
        self.open_log, self.sender, self.metrics = open_log, sender, metrics
        self.find_mask = find_mask

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next, self)

    def trace_call(self, task: object, position: TurnPosition | None) -> CallTrace | None:
        """Return what a call at an MCP server is to be noted in, with the span that it gets."""
        if not isinstance(task, Task) or activity.info().activity_type != CALL:
            return None
        if self.sender is None or position is None or position.turn is None:
            return None
        place = _call_place(task, position.turn)
        return CallTrace(
            replace(place, is_sampled=self.sender.is_sampled(place.trace_id)).traceparent
        )

    def begin(self) -> None:
        """Count a step that an earlier attempt has begun."""
        if activity.info().attempt > 1:
            self.metrics.count(names.STEP_RETRIES, _label())

    async def observe(
        self, task: Task[Any], position: TurnPosition | None, record: StepRecord, result: Any
    ) -> None:
        """Make the spans of a step that has succeeded, as far as the log can be read.

        The work must not suffer from it, nor from a fault of ours.
        """
        try:
            await self._observe(task, position, record, result)
        except PerdureError as error:
            logger.info("a step has no spans: %s", type(error).__name__)
        except Exception:
            logger.exception("telemetry failed: a step has no spans")

    def observe_failure(
        self, task: Task[Any], position: TurnPosition | None, record: StepRecord
    ) -> None:
        """Make the spans of the requests that no model has answered."""
        if self.sender is None or position is None or position.turn is None or not record.calls:
            return
        context = self._context(task, position.turn, record, "")
        for span in spans.failed_chat_spans(context, task.base):
            self.sender.send(span)

    async def _observe(
        self, task: Task[Any], position: TurnPosition | None, record: StepRecord, result: Any
    ) -> None:
        if position is None:
            return
        log = self.open_log(task.user_id, task.conversation_id)
        if position.ended is not None:
            await self._observe_end(log, position.ended)
        turn = result.turn if isinstance(result, State) else position.turn
        if turn is None:
            return
        context = self._context(task, turn, record, log.prefix)
        entries = await _read_entries(log, result)
        call_moment = await _find_call_moment(log, task)
        restored = False
        for span in _spans_of(context, task.base, entries, call_moment):
            restored = restored or bool(span.attributes.get(names.RESTORED))
            if span.attributes.get(names.OPERATION) == names.EXECUTE_TOOL:
                tool, seconds = span.attributes[names.TOOL_NAME], span.end - span.begin
                self.metrics.record_tool(tool, seconds / 1e9, span.error)
            if self.sender is None:
                continue
            if self.find_mask is not None:
                span = await add_content(span, entries, task, log, self.find_mask(task.user_id))
            self.sender.send(span)
        if restored:
            self.metrics.count(names.STEPS_RECOVERED, _label())

    async def _observe_end(self, log: LogReader, ended: EndedTurn) -> None:
        first, last = await log.get(ended.first_seq), await log.get(ended.last_seq)
        span = spans.turn_span(log.user_id, log.conversation_id, ended, first, last)
        self.metrics.record_turn(ended, (span.end - span.begin) / 1e9)
        if self.sender is not None:
            self.sender.send(span)

    def _context(self, task: Task[Any], turn: int, record: StepRecord, prefix: str) -> StepContext:
        return StepContext(
            turn_place(task.conversation_id, turn),
            task.user_id,
            task.conversation_id,
            turn,
            prefix,
            activity.info().attempt,
            record,
            time.time_ns(),
        )


class _Inbound(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, observer: StepObserver) -> None:
        super().__init__(following)
        self._observer = observer

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        task = input.args[0] if input.args else None
        position = read_position(input.headers)
        call = self._observer.trace_call(task, position)
        with recording(time.time_ns(), _trace_id(task, position), call) as record:
            if not isinstance(task, Task):
                return await super().execute_activity(input)
            self._observer.begin()
            try:
                result = await super().execute_activity(input)
            except BaseException:
                self._observer.observe_failure(task, position, record)
                raise
        await _finish(self._observer.observe(task, position, record, result))
        if isinstance(result, Delegation):
            return link_child(task, position, result)
        return result


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Finish the work for a step that has succeeded, although it may be cancelled now."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task


def _trace_id(task: object, position: TurnPosition | None) -> str | None:
    if not isinstance(task, Task) or position is None or position.turn is None:
        return None
    return f"{turn_place(task.conversation_id, position.turn).trace_id:032x}"


def link_child(
    task: Task[Any], position: TurnPosition | None, delegation: Delegation
) -> Delegation:
    """Return the start of a delegated conversation, whose message is sent by the call's span."""
    start = delegation.start
    if start is None or position is None or position.turn is None:
        return delegation
    sender = _call_place(task, position.turn).traceparent
    inbox = tuple(
        item.model_copy(update={"traceparent": sender}) if isinstance(item, UserMessage) else item
        for item in start.inbox
    )
    return delegation.model_copy(update={"start": start.model_copy(update={"inbox": inbox})})


def _call_place(task: Task[Any], turn: int) -> SpanPlace:
    """Return the place of the span of the call that a step makes."""
    action = event_id(task.conversation_id, task.step.action_seq)
    return spans.call_place(turn_place(task.conversation_id, turn), action)


def _spans_of(
    context: StepContext, base: int, entries: Sequence[Entry], call_moment: int | None
) -> Iterator[Span]:
    kind = activity.info().activity_type
    yield from spans.failed_chat_spans(context, base)
    if kind == CHAT:
        yield from spans.chat_spans(context, entries)
    elif kind == TITLE:
        yield from spans.purposeful_chat_spans(context, base)
    elif kind in CALLS:
        yield from spans.tool_spans(context, entries, call_moment)
    elif kind == CONDENSE and (span := spans.condense_span(context, entries)) is not None:
        yield span
    for append in context.record.appends:
        yield spans.append_span(context, append)


def _label() -> dict[str, str]:
    return {"activity": activity.info().activity_type}


async def _read_entries(log: LogReader, result: Any) -> list[Entry]:
    """Read the entries whose summaries a step returns, which it has just written or read."""
    summaries = result if isinstance(result, list) else ()
    seqs = [summary.seq for summary in summaries if isinstance(summary, EventSummary)]
    return [await log.get(seq) for seq in seqs]


async def _find_call_moment(log: LogReader, task: Task[Any]) -> int | None:
    """Find the moment of a call that was made elsewhere, in nanoseconds."""
    if activity.info().activity_type not in ELSEWHERE:
        return None
    return spans.moment_of((await log.get(task.step.action_seq)).event.timestamp)

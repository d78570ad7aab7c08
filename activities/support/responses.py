"""The record of a model's response: its only event, or an object of its own before several events.

Attempts at a step may ask the model twice, when one was lost or given up: only one response becomes
events. Slot `base` decides between responses, and `responses/N` between those of several events.
"""

from collections.abc import Awaitable, Callable

from perdure.activities.support.step import is_retry, origin, summarize_all
from perdure.activities.support.writer import (
    MAX_ADOPTED_ENTRIES,
    append_or_adopt,
    ensure_own_run,
)
from perdure.agent.calls.answer import holds_response, is_recorded_by
from perdure.agent.calls.completion import Completion
from perdure.events.event import Event
from perdure.events.summary import EventSummary
from perdure.storage.log.event_log import EventLog

Parse = Callable[[Completion], Awaitable[list[Event]]]
"""Turns a response into its events, always into the same."""


async def find_record(log: EventLog, base: int) -> Completion | list[EventSummary] | None:
    """Find what an earlier attempt recorded: a response, or the events that stand for it.

    A retry without a record may find the only event of a response in slot `base`, or events of a
    late step of this run: the workflow folds them, and decides again. Raises Fenced.
    """
    if not is_retry():
        return None
    if (completion := await log.read_response(base)) is not None:
        return completion
    if await log.find(base) is None:
        return None
    # The event may be the first of several, of a response that was recorded after the look above.
    if (completion := await log.read_response(base)) is not None:
        return completion
    return summarize_all(ensure_own_run(await log.read(base, MAX_ADOPTED_ENTRIES)))


async def record_events(
    log: EventLog, base: int, completion: Completion, parse: Parse
) -> list[EventSummary]:
    """Append the events of a response, which one event records by itself if it holds all of it."""
    events = await parse(completion)
    if not is_recorded_by(completion, events):
        return await record_and_append(log, base, completion, parse)
    entries = await append_or_adopt(log, events, base, completion.usage_with_names())
    if holds_response(entries[0].event, completion):
        return summarize_all(entries)
    other = await log.read_response(base)
    if other is None or not holds_response(entries[0].event, other):
        return summarize_all(entries)
    return await record_and_append(log, base, other, parse)


async def record_and_append(
    log: EventLog, base: int, completion: Completion, parse: Parse
) -> list[EventSummary]:
    """Record a response unless another one is on record, and append the events of that which is."""
    recorded = await log.record_response(base, completion, origin())
    events = await parse(recorded)
    return summarize_all(await append_or_adopt(log, events, base, recorded.usage_with_names()))

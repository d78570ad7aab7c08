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
from perdure.events.entry import Entry
from perdure.events.event import Event, response_of
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
    return await _append_rest(log, base, entries, parse)


async def append_failure(
    log: EventLog, base: int, event: Event, part: str, parse: Parse
) -> list[EventSummary]:
    """Append an event in place of a response, unless an earlier attempt's response came first."""
    entries = await append_or_adopt(log, [event], base, part=part)
    if response_of(entries[0].event) is None:
        return summarize_all(entries)
    return await _append_rest(log, base, entries, parse)


async def _append_rest(
    log: EventLog, base: int, entries: list[Entry], parse: Parse
) -> list[EventSummary]:
    """Append what an earlier attempt has not yet written of the response that holds `base`.

    The workflow would otherwise go on behind the first of its events, in the slots of the others.
    """
    recorded = await log.read_response(base)
    if recorded is None or not holds_response(entries[0].event, recorded):
        return summarize_all(entries)
    return await record_and_append(log, base, recorded, parse)


async def record_and_append(
    log: EventLog, base: int, completion: Completion, parse: Parse
) -> list[EventSummary]:
    """Record a response unless another one is on record, and append the events of that which is."""
    recorded = await log.record_response(base, completion, origin())
    events, usage = await parse(recorded), recorded.usage_with_names()
    entries = await append_or_adopt(log, events, base, usage)
    if len(entries) < len(events) and holds_response(entries[0].event, recorded):
        # A step that was given up began to write them: the rest gets the origin of that step.
        entries = await append_or_adopt(log, events, base, usage, own=entries[0].origin)
    return summarize_all(entries)

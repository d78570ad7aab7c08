"""The audit of debates: their logs by keys and bytes, and against an undisturbed debate."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from examples.bfcl.objects import Objects, parse_fields
from perdure.agent.discussion.state import DiscussionStatus
from reliability.chaos.audit.log import Violation, ViolationKind, find_repeated
from reliability.chaos.load.debates import TALLY
from reliability.crashes.debate import Debate, find_violations

EVENT = re.compile(r"/events/(\d{6,})\.json$")


def check_debate(
    objects: Objects, result: DiscussionStatus | None, seen: Debate, undisturbed: Debate
) -> Iterator[Violation]:
    """List the violations of one debate that is over."""
    yield from check_sequence(objects)
    counts = result.tally.counts if result and result.tally else {}
    if counts != TALLY:
        yield Violation(ViolationKind.LOST, f"the tally is {counts}, and not {TALLY}")
    for description in find_violations(undisturbed, seen):
        yield Violation(ViolationKind.DAMAGED, description)


def check_sequence(objects: Objects) -> Iterator[Violation]:
    """Check that the events have the sequences from 1 on, by their keys and by their content."""
    events = read_events(objects)
    for number in sorted(set(range(1, max(events, default=1) + 1)) - set(events)):
        yield Violation(ViolationKind.LOST, f"event {number} of the discussion is not there")
    for number, fields in events.items():
        if fields.get("sequence") != number:
            what = f"event {number} says that it is {fields.get('sequence')}"
            yield Violation(ViolationKind.REORDERED, what)
    for event_id, count in find_repeated(fields.get("eventId") for fields in events.values()):
        yield Violation(ViolationKind.DUPLICATED, f"{count} events are called {event_id}")


def read_events(objects: Objects) -> dict[int, Mapping[str, Any]]:
    """Return the fields of the events of a discussion by the numbers in their keys."""
    found = ((EVENT.search(key), body) for key, body in objects.items())
    return {int(match[1]): parse_fields(body) for match, body in found if match}

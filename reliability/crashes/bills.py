"""The answers that a conversation's model was paid for, and why some were paid for again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import temporalio.client
from temporalio.api.failure.v1 import Failure


@dataclass(frozen=True)
class Bill:
    """An answer of the model, such as `chat 3`, and the activity whose attempt asked for it."""

    answer: str
    activity_id: str


def write_bill(file: Path, bill: Bill) -> None:
    with file.open("a") as bills:
        bills.write(f"{bill.activity_id}\t{bill.answer}\n")


def read_bills(file: Path) -> list[Bill]:
    lines = (line.split("\t", 1) for line in file.read_text().splitlines())
    return [Bill(answer, activity_id) for activity_id, answer in lines]


class Activity(NamedTuple):
    """An activity of a workflow, by its id and its type, such as `tool.call`."""

    id: str
    type: str


Timeouts: TypeAlias = Counter[Activity]
"""How many attempts of each activity Temporal gave up as their worker was silent.

So it is of a worker that was lost, and of one that lives and has too little of a busy machine.
"""


async def count_timeouts(handle: temporalio.client.WorkflowHandle[object, object]) -> Timeouts:
    """Count the attempts of a workflow's activities that timed out, from its history.

    Of several failed attempts Temporal tells how the last one failed, which stands for all.
    """
    activities: dict[int, Activity] = {}
    timeouts: Timeouts = Counter()
    async for event in handle.fetch_history_events():
        scheduled, started = (
            event.activity_task_scheduled_event_attributes,
            event.activity_task_started_event_attributes,
        )
        if scheduled.activity_id:
            activity = Activity(scheduled.activity_id, scheduled.activity_type.name)
            activities[event.event_id] = activity
        elif _is_timeout(started.last_failure):
            timeouts[activities[started.scheduled_event_id]] += started.attempt - 1
        elif _is_timeout(event.activity_task_timed_out_event_attributes.failure):
            timed_out = event.activity_task_timed_out_event_attributes
            timeouts[activities[timed_out.scheduled_event_id]] += 1
    return timeouts


def _is_timeout(failure: Failure) -> bool:
    return failure.HasField("timeout_failure_info")


def find_unexplained(due: Sequence[Bill], paid: Sequence[Bill], timeouts: Timeouts) -> Counter[str]:
    """Find the answers that were paid for again, though no attempt to get them timed out.

    Counts for each answer how many times more it was paid for than it had to be.
    """
    more = count_repaid(due, paid)
    for answer in more:
        ids = {bill.activity_id for bill in paid if bill.answer == answer}
        more[answer] -= sum(times for activity, times in timeouts.items() if activity.id in ids)
    return +more


def count_repaid(due: Sequence[Bill], paid: Sequence[Bill]) -> Counter[str]:
    """Count for each answer how many times more it was paid for than in another conversation."""
    return Counter(bill.answer for bill in paid) - Counter(bill.answer for bill in due)

"""Why a conversation does not go on, in a sentence that says what to do."""

from datetime import UTC, datetime
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo

from client.errors import Unreachable
from client.failed import Failure, Spell

ENDED, FAILED = "ended", "failed"
"""The causes of workflows that are gone; the first is none for a conversation at rest."""

STORE = "store"
"""The cause where the store cannot be used, by a step or by whoever asks."""

STORE_ERRORS = frozenset({"StoreUnavailable", "StoreRefused", "UnsafeStore", "StoreError"})

LOST = frozenset({"Damaged", "Missing", "Altered"})
"""Failures of a workflow that no other one mends: they say themselves what does."""

WAITS = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED


class Trouble(NamedTuple):
    """`cause` stays the same for as long as the trouble does, while what is told may change.

    What is `slow` goes on, and may come to its end by itself.
    """

    cause: str
    sentence: str
    slow: bool = False

    @property
    def is_over(self) -> bool:
        """Whether its workflow is gone, and nothing goes on before somebody asks for it."""
        return self.cause in (ENDED, FAILED)


def unreachable(error: Unreachable) -> Trouble:
    return Trouble("temporal", f"{_sentence(str(error))} It goes on by itself when that does.")


def store_away(why: str, since: str = "") -> Trouble:
    waits = f" It has been waiting for the store since {since}." if since else ""
    return Trouble(STORE, f"{_sentence(why)}{waits} It goes on by itself when the store does.")


def paused(workflow_id: str) -> Trouble:
    unpause = f"`temporal workflow unpause -w {workflow_id}` lets it go on"
    return Trouble("paused", f"An operator has paused its workflow in Temporal: {unpause}.")


def step_paused(name: str) -> Trouble:
    told = f"An operator has paused its step {name} in Temporal: it goes on when they unpause it."
    return Trouble(f"{name} paused", told)


def untaken(queue: str, seconds: float) -> Trouble:
    return Trouble(
        "untaken",
        f"No worker has taken it up for {seconds:.0f} s: none runs on the queue {queue!r}, or all "
        "are busy. `perdure worker` starts one.",
    )


def task_lost(times: int) -> Trouble:
    return Trouble(
        "workflow task lost",
        f"Its workflow task was begun {_times(times)} and never ended: a worker dies of it, or is "
        "too slow. It goes on when a worker can do it within 5 s.",
    )


def task_failed(failed: Failure, times: int) -> Trouble:
    """A task of the workflow failed: its code, not its conversation, has to be mended."""
    why, tried = _sentence(failed.told), f"(tried {_times(times)})"
    match failed.spell:
        case Spell.MISFIT:
            told = (
                f"The code of its workers does not fit its history {tried}: {why} It goes on when "
                "a worker runs the version that it began with, or one that can replay it; where no "
                "other was deployed, terminate the workflow in Temporal: `perdure resume` then "
                "opens the conversation from its log."
            )
        case Spell.TOO_LARGE:
            told = (
                f"What its workflow hands to Temporal is too large {tried}: {why} Terminate the "
                "workflow in Temporal; `perdure resume` then opens the conversation from its log."
            )
        case Spell.BROKEN:
            told = (
                f"Its workflow task failed {_times(times)}: {why} It goes on when a worker with a "
                "mended version runs."
            )
    return Trouble(f"{failed.spell.name}: {failed.told}", told)


def step_failed(step: PendingActivityInfo, failed: Failure) -> Trouble:
    """A step came to nothing again and again, and is tried again."""
    name, why, times = step.activity_type.name, _sentence(failed.told), _times(step.attempt - 1)
    if failed.type in STORE_ERRORS:
        return store_away(failed.told, failed.since)
    if failed.type == "NotFoundError" and "not registered" in failed.told:
        return Trouble(
            f"{name} unknown",
            f"The worker {failed.worker} does not know its step {name}: it runs another version of "
            "perdure. It goes on when a worker with the right version takes it; end those with a "
            "wrong one.",
        )
    if name.startswith("llm."):
        told = f"The model does not answer (asked {times}): {why} {_next(step)}"
        return Trouble(f"model: {failed.type}", told)
    told = f"Its step {name} failed {times}, since {failed.since}: {why} {_next(step)}"
    return Trouble(f"{name}: {failed.told}", told)


def silent(step: PendingActivityInfo, seconds: float, calls: str = "") -> Trouble:
    """A step says nothing, as it does when it hangs; `calls` names the tools that are at work."""
    name, time = step.activity_type.name, f"{seconds:.0f} s"
    told = f"Its step {name} has been at work for {time}: the store may be slow."
    if name.startswith("llm."):
        told = f"The model has said nothing for {time}; it may take its time. {_STOP}"
    elif name == "tool.call":
        told = f"A tool has said nothing for {time}{f' ({calls})' if calls else ''}. {_STOP}"
    elif name == "agent.prepare":
        told = f"The MCP servers of its agent have not started for {time}."
    return Trouble(f"{name} {step.activity_id} silent", told, slow=True)


def of_delegate(conversation_id: str, trouble: Trouble) -> Trouble:
    told = f"Its delegate {conversation_id}: {trouble.sentence}"
    return Trouble(f"{conversation_id}: {trouble.cause}", told, trouble.slow)


def ended() -> Trouble:
    return Trouble(ENDED, f"Its workflow has ended in the middle of a turn. {_AGAIN}")


def workflow_failed(failed: Failure) -> Trouble:
    again = "" if failed.type in LOST else f" {_AGAIN}"
    return Trouble(FAILED, f"Its workflow failed: {_sentence(failed.told)}{again}")


def _next(step: PendingActivityInfo) -> str:
    again = "It is being tried again"
    if step.state == WAITS:
        again = f"It is tried again at {_clock(step.next_attempt_schedule_time)}"
    if step.HasField("expiration_time"):
        return f"{again}; the turn ends with an error at {_clock(step.expiration_time)}."
    return f"{again}."


def age(moment: Timestamp) -> float:
    """Seconds since then; less than none where it is still to come."""
    return datetime.now(UTC).timestamp() - moment.ToMicroseconds() / 1e6


def _sentence(text: str) -> str:
    return f"{text.rstrip().rstrip('.')}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _clock(moment: Timestamp) -> str:
    return f"{moment.ToDatetime():%H:%M:%S} UTC"


_AGAIN = "A message or `perdure resume` goes on."

_STOP = "`perdure interrupt` stops it."

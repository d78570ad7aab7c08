"""Troubles: reasons why a conversation does not progress, with what to do about each."""

from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo

from perdure.client.diagnosis.failures import FailureReason, TaskFailureKind, format_time
from perdure.client.trouble import ENDED_CAUSE, FAILED_CAUSE, Trouble, as_sentence

STORE_CAUSE = "store"
"""The cause for a store that steps or clients cannot use."""

STORE_ERRORS = frozenset({"StoreUnavailable", "StoreRefused", "UnsafeStore", "StoreError"})

UNRECOVERABLE_ERRORS = frozenset({"Damaged", "Missing", "Altered"})
"""Errors that a new workflow would meet again; their messages say what to do."""

MIN_REPORTED_START = 10.0
"""Seconds from which the time that servers take is told."""

STEP_SCHEDULED = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED


def store_unavailable(reason: str, since: str = "") -> Trouble:
    waiting = f" It has been waiting for the store since {since}." if since else ""
    again = "It goes on by itself when the store does."
    return Trouble(STORE_CAUSE, f"{as_sentence(reason)}{waiting} {again}")


def workflow_paused(workflow_id: str) -> Trouble:
    unpause = f"`temporal workflow unpause -w {workflow_id}` lets it go on"
    return Trouble("paused", f"An operator has paused its workflow in Temporal: {unpause}.")


def step_paused(name: str) -> Trouble:
    sentence = f"An operator has paused its step {name} in Temporal"
    return Trouble(f"{name} paused", f"{sentence}: it goes on when they unpause it.")


def no_worker(queue: str, seconds: float, options: str = "") -> Trouble:
    """Describe a step that nobody takes up; `options` are those of a worker that would."""
    return Trouble(
        "untaken",
        f"No worker has taken it up for {seconds:.0f} s: none runs on the queue {queue!r}, one is "
        f"still starting, or all are busy. `perdure worker{options}` starts one.",
    )


def workflow_task_lost(times: int, limit: timedelta) -> Trouble:
    return Trouble(
        "workflow task lost",
        f"Its workflow task was begun {_format_times(times)} and never ended: a worker dies of it, "
        f"or is too slow. It goes on when a worker can do it within {limit.total_seconds():g} s.",
    )


def workflow_task_failed(failed: FailureReason, times: int) -> Trouble:
    """Describe a failed workflow task: the workers' code has to be fixed, not the conversation."""
    reason = as_sentence(failed.message)
    sentence = failed.kind.value.format(times=_format_times(times), reason=reason)
    return Trouble(f"{failed.kind.name}: {failed.message}", sentence)


def is_replay_trouble(trouble: Trouble) -> bool:
    """Tell whether the workers' code does not fit the history of a workflow."""
    return trouble.cause.startswith(f"{TaskFailureKind.NONDETERMINISTIC.name}:")


def step_failed(step: PendingActivityInfo, failed: FailureReason) -> Trouble:
    """Describe a step that keeps failing and is retried."""
    name, times = step.activity_type.name, _format_times(step.attempt - 1)
    details = f"{as_sentence(failed.message)} {_next_attempt(step)}"
    if failed.type in STORE_ERRORS:
        return store_unavailable(failed.message, failed.since)
    if failed.type == "NotFoundError" and "not registered" in failed.message:
        return Trouble(
            f"{name} unknown",
            f"The worker {failed.worker} does not know its step {name}: it runs another version of "
            "perdure. It goes on when a worker with the right version takes it; end those with a "
            "wrong one.",
        )
    if name.startswith("llm."):
        sentence = f"The model does not answer (asked {times}): {details}"
        return Trouble(f"model: {failed.type}", sentence)
    sentence = f"Its step {name} failed {times}, since {failed.since}: {details}"
    return Trouble(f"{name}: {failed.message}", sentence)


def step_silent(step: PendingActivityInfo, seconds: float, calls: str = "") -> Trouble:
    """Describe a step without output; `calls` names the running tools."""
    name, time = step.activity_type.name, f"{seconds:.0f} s"
    which = f" ({calls})" if calls else ""
    sentences = {
        "tool.call": f"A tool has said nothing for {time}{which}. {_INTERRUPT_HINT}",
    }
    slow_store = f"Its step {name} has been at work for {time}: the store may be slow."
    sentence = sentences.get(name, slow_store)
    if name.startswith("llm."):
        sentence = f"The model has said nothing for {time}; it may take its time. {_INTERRUPT_HINT}"
    return Trouble(f"{name} {step.activity_id} silent", sentence, slow=True)


def servers_starting(sentence: str, seconds: float) -> Trouble:
    """Pass on which MCP servers are starting; their own time limits end it."""
    since = f" ({seconds:.0f} s so far)" if seconds >= MIN_REPORTED_START else ""
    return Trouble("mcp", f"{sentence.removesuffix(' ...')}{since} ...", slow=True)


def delegate_trouble(conversation_id: str, trouble: Trouble) -> Trouble:
    sentence = f"Its delegate {conversation_id}: {trouble.sentence}"
    return Trouble(f"{conversation_id}: {trouble.cause}", sentence, trouble.slow)


def sample_trouble(conversation_id: str, trouble: Trouble) -> Trouble:
    return trouble._replace(sentence=f"The conversation {conversation_id}: {trouble.sentence}")


def workflow_closed(failed: FailureReason | None) -> Trouble:
    if failed is None:
        sentence = f"Its workflow has ended in the middle of a turn. {_RESUME_HINT}"
        return Trouble(ENDED_CAUSE, sentence)
    again = "" if failed.type in UNRECOVERABLE_ERRORS else f" {_RESUME_HINT}"
    return Trouble(FAILED_CAUSE, f"Its workflow failed: {as_sentence(failed.message)}{again}")


def _next_attempt(step: PendingActivityInfo) -> str:
    again = "It is being tried again"
    if step.state == STEP_SCHEDULED and step.HasField("next_attempt_schedule_time"):
        again = f"It is tried again at {format_time(step.next_attempt_schedule_time)}"
    if step.HasField("expiration_time"):
        return f"{again}; the turn ends with an error at {format_time(step.expiration_time)}."
    return f"{again}."


def seconds_since(moment: Timestamp) -> float:
    """Count the seconds since a moment; negative if it lies in the future."""
    return datetime.now(UTC).timestamp() - moment.ToMicroseconds() / 1e6


def _format_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_RESUME_HINT = "A message or `perdure resume` goes on."

_INTERRUPT_HINT = "`perdure interrupt` stops it."

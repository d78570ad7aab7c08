"""Consequences of a failed step for its conversation."""

import asyncio

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from perdure.agent.loop.inbox import TurnFailure
from perdure.agent.loop.model_queues import GRADED, WRONG_QUEUE
from perdure.agent.loop.phase import FAULT_MARK, INTERNAL_ERROR, describe_fault
from perdure.agent.loop.steps import (
    Close,
    FinishAttempt,
    Open,
    Record,
    ResolveLostCall,
    SaveState,
    Step,
)

MAX_REASON_CHARS = 2000
"""Length limit of a reason, which travels through Temporal and into the log."""

FATAL_ERROR_TYPES = frozenset({"Altered", "Damaged", "Fenced", "Missing"})
"""Error types after which this run must not write to the log again."""

REQUIRED_STEPS = (Open, Record, ResolveLostCall, SaveState, Close, FinishAttempt)
"""Steps whose failure ends the workflow, as it cannot be recorded in the log."""

StepError = ActivityError | asyncio.CancelledError
"""Errors of a step that failed, or was cancelled in the moment in which it ended."""


def workflow_failure(step: Step | Open, error: ActivityError) -> ApplicationError | None:
    """Return the failure that ends the workflow, or None if the conversation goes on."""
    cause = error.cause
    kind = cause.type if isinstance(cause, ApplicationError) else None
    if kind not in FATAL_ERROR_TYPES and not isinstance(step, REQUIRED_STEPS):
        return None
    text = (
        cause.message[:MAX_REASON_CHARS]
        if isinstance(cause, ApplicationError)
        else reason_of(error)
    )
    return ApplicationError(text, type=kind or "StepFailed", non_retryable=True)


def was_cancelled(error: StepError) -> bool:
    """Tell whether the step ended because it was cancelled."""
    return isinstance(error, asyncio.CancelledError) or isinstance(error.cause, CancelledError)


def is_unprovoked(error: ActivityError) -> bool:
    """Tell whether the step failed without a request to cancel it, delivered or not."""
    return not was_cancelled(error) and error.retry_state is not RetryState.CANCEL_REQUESTED


def was_never_started(error: ActivityError) -> bool:
    """Tell whether no worker took the step, so that it had no effect."""
    cause = error.cause
    return isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_START


def is_on_wrong_queue(error: ActivityError) -> bool:
    """Tell whether the step belongs on the queue of a rate-limited model."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == WRONG_QUEUE


def is_graded(error: ActivityError) -> bool:
    """Tell whether an attempt has its grades, and has to be scored where its workspace is."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == GRADED


def failure_item(step: Step, error: ActivityError) -> TurnFailure:
    """Return the inbox item that records the failure of a step; of a fault of ours, its kind."""
    if (fault := _find_fault(error)) is not None:
        return TurnFailure(code=INTERNAL_ERROR, detail=describe_fault(*fault))
    if step.kind == "llm.chat":
        detail = (
            f"The model did not answer: {reason_of(error)} Send a message or resume to try again."
        )
        return TurnFailure(code=_model_error_code(error), detail=detail)
    return TurnFailure(
        code=INTERNAL_ERROR, detail=f"The step {step.kind} failed: {reason_of(error)}"
    )


def _find_fault(error: BaseException | None) -> tuple[str, str] | None:
    """Return the kind and the id of the fault of ours behind a failure, if it is one."""
    while error is not None:
        if isinstance(error, ApplicationError) and error.details[:1] == (FAULT_MARK,):
            return error.type or "Exception", str(error.details[1])
        error = error.__cause__
    return None


def _model_error_code(error: ActivityError) -> str:
    """Return the code of the model error behind a failed step."""
    cause = _innermost(error)
    details = cause.details if isinstance(cause, ApplicationError) else ()
    return str(details[0]) if details else "model_unavailable"


def reason_of(error: BaseException) -> str:
    """Return the innermost cause as a sentence of bounded length."""
    return str(_innermost(error))[:MAX_REASON_CHARS].rstrip(".") + "."


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def describe_lost_call(error: StepError) -> str:
    """Say what is known of a tool call whose worker was lost."""
    if isinstance(error, asyncio.CancelledError) or was_cancelled(error):
        return "it was stopped."
    cause = error.cause
    if not isinstance(cause, TimeoutError):
        return f"its step failed ({reason_of(error)})"
    details = cause.last_heartbeat_details
    heartbeat = details[0] if details else {}
    known = "the worker that ran it was lost."
    if started := heartbeat.get("started"):
        known += f" It started at {started} UTC."
    if text := heartbeat.get("text"):
        known += f" Its output so far: {text}"
    return known

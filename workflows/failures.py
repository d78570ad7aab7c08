"""What a step that failed for good means for the conversation."""

import asyncio

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from agent.inbox import Failed
from agent.steps import Finish, Open, Record, Save, Settle, Step, Stop

TOLD = 2000
"""Characters of a reason that are passed on: it travels through Temporal and into the log."""

FINAL = frozenset({"Altered", "Damaged", "Fenced", "Missing"})
"""Failures after which this run must not touch the log again."""

VITAL = (Open, Record, Settle, Save, Stop, Finish)
"""Steps without which a conversation cannot go on: there is no telling the log that one failed."""

Ended = ActivityError | asyncio.CancelledError
"""A step came to nothing; or it was stopped in the very moment in which it ended."""


def ending(step: Step | Open, error: ActivityError) -> ApplicationError | None:
    """The failure that ends the workflow; none: the conversation goes on."""
    cause = error.cause
    kind = cause.type if isinstance(cause, ApplicationError) else None
    if kind not in FINAL and not isinstance(step, VITAL):
        return None
    told = cause.message[:TOLD] if isinstance(cause, ApplicationError) else why(error)
    return ApplicationError(told, type=kind or "StepFailed", non_retryable=True)


def was_cancelled(error: Ended) -> bool:
    """Whether the step ended because somebody stopped it."""
    return isinstance(error, asyncio.CancelledError) or isinstance(error.cause, CancelledError)


def was_wanted(error: ActivityError) -> bool:
    """Whether nobody had stopped the step, also where its worker was lost before it heard of it."""
    return not was_cancelled(error) and error.retry_state is not RetryState.CANCEL_REQUESTED


def nobody_there(error: ActivityError) -> bool:
    """Whether no worker took the step, which so had no effect."""
    cause = error.cause
    return isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_START


def after_failure(step: Step, error: ActivityError) -> Failed:
    """The note that a step failed for good, for the log."""
    if step.kind == "llm.chat":
        detail = f"The model did not answer: {why(error)} Send a message or resume to try again."
        return Failed(code=_code(error), detail=detail)
    return Failed(code="internal", detail=f"The step {step.kind} failed: {why(error)}")


def _code(error: ActivityError) -> str:
    """What kept the model from answering, in the words of the model room."""
    cause = _innermost(error)
    told = cause.details if isinstance(cause, ApplicationError) else ()
    return str(told[0]) if told else "model_unavailable"


def why(error: BaseException) -> str:
    """The innermost reason, as a sentence of bounded length."""
    return str(_innermost(error))[:TOLD].rstrip(".") + "."


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def known_of(error: Ended) -> str:
    """What is known of a tool call whose worker was lost."""
    if isinstance(error, asyncio.CancelledError) or was_cancelled(error):
        return "it was stopped."
    cause = error.cause
    if not isinstance(cause, TimeoutError):
        return f"its step failed ({why(error)})"
    details = cause.last_heartbeat_details
    news = details[0] if details else {}
    known = "the worker that ran it was lost."
    if started := news.get("started"):
        known += f" It started at {started} UTC."
    if text := news.get("text"):
        known += f" Its output so far: {text}"
    return known

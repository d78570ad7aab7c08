"""What a step that failed for good means for the conversation."""

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutError

from agent.inbox import Failed
from agent.steps import Step

TOLD = 2000
"""Characters of a reason that are passed on: it travels through Temporal and into the log."""

FINAL = frozenset({"Fenced", "Superseded", "Damaged", "Missing", "ConversationNotFound"})
"""Failures after which this run must not touch the log again."""


def ending(error: ActivityError) -> ApplicationError | None:
    """The failure that ends the workflow; none: the conversation goes on."""
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type in FINAL:
        return ApplicationError(cause.message, type=cause.type, non_retryable=True)
    return None


def was_cancelled(error: ActivityError) -> bool:
    """Whether the step was given up because somebody stopped it."""
    return isinstance(error.cause, CancelledError)


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


def why(error: ActivityError) -> str:
    """The innermost reason, as a sentence of bounded length."""
    return str(_innermost(error))[:TOLD].rstrip(".") + "."


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def known_of(error: ActivityError) -> str:
    """What is known of a tool call whose worker was lost."""
    cause = error.cause
    if was_cancelled(error):
        return "it was stopped."
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

"""What a step that failed for good means for the conversation."""

from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError

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


def after_failure(step: Step, error: ActivityError) -> Failed:
    """The note that a step failed for good, for the log."""
    if step.kind == "llm.chat":
        detail = f"The model did not answer: {why(error)} Send a message or resume to try again."
        return Failed(code="model_unavailable", detail=detail)
    return Failed(code="internal", detail=f"The step {step.kind} failed: {why(error)}")


def why(error: ActivityError) -> str:
    """The innermost reason, as a sentence of bounded length."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return str(cause)[:TOLD].rstrip(".") + "."


def known_of(error: ActivityError) -> str:
    """What is known of a tool call whose worker was lost."""
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

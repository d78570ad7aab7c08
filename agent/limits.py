"""Where a turn ends because something has run out, and the warning before it."""

from collections.abc import Iterator

from agent.inbox import Failed, Nudged
from agent.state import State

LAST_SECONDS = 60.0
"""How long before a deadline the agent is told of it."""

LAST_EVENTS = 10
"""How many events before the last one the agent is told of it."""


def reached(state: State, seconds_left: float | None = None) -> Failed | None:
    """The limit that ends the turn, if one does; raising it and resuming goes on."""
    return next(_reached(state, seconds_left), None)


def warning(state: State, seconds_left: float | None = None) -> Nudged | None:
    """What the agent is told, once, when its next answer may be its last."""
    if "limits" in state.told:
        return None
    what = next(_near(state, seconds_left), None)
    if what is None:
        return None
    text = (
        f"You are about to run out of {what}. This may be your last answer, so start nothing new: "
        "say what is done, what is left and what somebody should know who goes on with it."
    )
    return Nudged(topic="limits", text=text)


def _reached(state: State, seconds_left: float | None) -> Iterator[Failed]:
    assert state.spec is not None, "a conversation that runs has been opened with a spec"
    limits, spent = state.spec.limits, state.spent
    tokens = spent.prompt_tokens + spent.completion_tokens
    if state.iterations >= limits.max_iterations:
        yield Failed(
            code="max_iterations",
            detail=f"The agent used its {limits.max_iterations} answers for this turn: "
            "send a message to give it another turn, or raise max_iterations.",
        )
    if limits.max_budget is not None and spent.cost >= limits.max_budget:
        yield Failed(
            code="max_budget",
            detail=f"The conversation has cost ${spent.cost:.4f} of its ${limits.max_budget:.4f}: "
            "start another one, or raise max_budget.",
        )
    if limits.max_tokens is not None and tokens >= limits.max_tokens:
        yield Failed(
            code="max_tokens",
            detail=f"The conversation has used {tokens:,} of its {limits.max_tokens:,} tokens: "
            "start another one, or raise max_tokens.",
        )
    if limits.max_events is not None and state.next_seq >= limits.max_events:
        yield Failed(
            code="max_events",
            detail=f"The conversation has {state.next_seq:,} of its {limits.max_events:,} events: "
            "start another one, or raise max_events.",
        )
    if seconds_left is not None and seconds_left <= 0:
        yield Failed(
            code="deadline",
            detail=f"The deadline of {limits.deadline} UTC has passed: set a later one.",
        )


def _near(state: State, seconds_left: float | None) -> Iterator[str]:
    """What one more answer like the last one would use up."""
    assert state.spec is not None, "a conversation that runs has been opened with a spec"
    limits, spent, last = state.spec.limits, state.spent, state.last
    if 0 < state.iterations == limits.max_iterations - 1:
        yield "answers for this turn"
    soon = max(spent.cost / 0.9, spent.cost + 2 * last.cost)
    if limits.max_budget is not None and spent.cost > 0 and soon >= limits.max_budget:
        yield "the money for this conversation"
    if limits.max_tokens is not None and state.iterations:
        used = spent.prompt_tokens + spent.completion_tokens
        if used + 2 * (last.prompt_tokens + last.completion_tokens) >= limits.max_tokens:
            yield "the tokens for this conversation"
    if limits.max_events is not None and state.next_seq >= limits.max_events - LAST_EVENTS:
        yield "the events for this conversation"
    if seconds_left is not None and seconds_left <= max(LAST_SECONDS, 2 * last.latency):
        yield "time"

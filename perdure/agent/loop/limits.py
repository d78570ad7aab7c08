"""The limits that end a turn, and the warning before them."""

from collections.abc import Iterator

from perdure.agent.loop.inbox import AgentWarning, TurnFailure
from perdure.agent.loop.state import State

WARNING_SECONDS = 60.0
"""Seconds before the deadline at which the agent is warned."""

WARNING_EVENTS = 10
"""Events before the last one at which the agent is warned."""


def find_reached_limit(state: State, seconds_left: float | None = None) -> TurnFailure | None:
    """Return the failure for a limit that ends the turn; the turn resumes once it is raised."""
    return next(_reached_limits(state, seconds_left), None)


def warn_of_limit(state: State, seconds_left: float | None = None) -> AgentWarning | None:
    """Return the warning, given once a turn, that the next response may be the last."""
    if "limits" in state.warned_about:
        return None
    resource = next(_nearly_used_up(state, seconds_left), None)
    if resource is None:
        return None
    text = (
        f"You are about to run out of {resource}. This may be your last answer, so start nothing "
        "new: say what is done, what is left and what somebody should know who goes on with it."
    )
    return AgentWarning(topic="limits", text=text)


def _reached_limits(state: State, seconds_left: float | None) -> Iterator[TurnFailure]:
    assert state.spec is not None, "a conversation that runs has been opened with a spec"
    limits, spent = state.spec.limits, state.usage
    tokens = spent.prompt_tokens + spent.completion_tokens
    if state.iterations >= limits.max_iterations:
        yield TurnFailure(
            code="max_iterations",
            detail=f"The agent used its {limits.max_iterations} answers for this turn: "
            "send a message to give it another turn, or raise max_iterations.",
        )
    if limits.max_budget is not None and spent.cost >= limits.max_budget:
        yield TurnFailure(
            code="max_budget",
            detail=f"The conversation has cost ${spent.cost:.4f} of its ${limits.max_budget:.4f}: "
            "start another one, or raise max_budget.",
        )
    if limits.max_tokens is not None and tokens >= limits.max_tokens:
        yield TurnFailure(
            code="max_tokens",
            detail=f"The conversation has used {tokens:,} of its {limits.max_tokens:,} tokens: "
            "start another one, or raise max_tokens.",
        )
    if limits.max_events is not None and state.next_seq >= limits.max_events:
        yield TurnFailure(
            code="max_events",
            detail=f"The conversation has {state.next_seq:,} of its {limits.max_events:,} events: "
            "start another one, or raise max_events.",
        )
    if seconds_left is not None and seconds_left <= 0:
        yield TurnFailure(
            code="deadline",
            detail=f"The deadline of {limits.deadline} UTC has passed: set a later one.",
        )


def _nearly_used_up(state: State, seconds_left: float | None) -> Iterator[str]:
    """Yield the resources that another response like the last one would use up."""
    assert state.spec is not None, "a conversation that runs has been opened with a spec"
    limits, spent, last = state.spec.limits, state.usage, state.last_usage
    if 0 < state.iterations == limits.max_iterations - 1:
        yield "answers for this turn"
    soon = max(spent.cost / 0.9, spent.cost + 2 * last.cost)
    if limits.max_budget is not None and spent.cost > 0 and soon >= limits.max_budget:
        yield "the money for this conversation"
    if limits.max_tokens is not None and state.iterations:
        used = spent.prompt_tokens + spent.completion_tokens
        if used + 2 * (last.prompt_tokens + last.completion_tokens) >= limits.max_tokens:
            yield "the tokens for this conversation"
    if limits.max_events is not None and state.next_seq >= limits.max_events - WARNING_EVENTS:
        yield "the events for this conversation"
    if seconds_left is not None and seconds_left <= max(WARNING_SECONDS, 2 * last.latency):
        yield "time"

"""The limits that end a turn, and the warning before them."""

from collections.abc import Iterator

from perdure.agent.loop.inbox import AgentWarning, TurnFailure
from perdure.agent.loop.state import State

WARNING_SECONDS = 60.0
"""Seconds before the deadline at which the agent is warned."""

WARNING_EVENTS = 10
"""Events before the last one at which the agent is warned."""


REACHED = {
    "max_iterations": "The agent used its {limit} answers for this turn: send a message to give it "
    "another turn, or raise max_iterations.",
    "max_budget": "The conversation has cost ${used:.4f} of its ${limit:.4f}: start another one, "
    "or raise max_budget.",
    "max_tokens": "The conversation has used {used:,} of its {limit:,} tokens: start another one, "
    "or raise max_tokens.",
    "max_events": "The conversation has {used:,} of its {limit:,} events: start another one, or "
    "raise max_events.",
}
"""The sentence on each limit that is reached."""

LIMITS = (*REACHED, "deadline")
"""The codes of all limits that end a turn."""


NO_PRICE = (
    "The price of a model of this conversation is not known, so its budget cannot be kept: set "
    "input_price and output_price of the model (US dollars for a million tokens), or limit "
    "max_tokens in place of max_budget."
)


def find_reached_limit(state: State, seconds_left: float | None = None) -> TurnFailure | None:
    """Return the failure for a limit that ends the turn; the turn resumes once it is raised."""
    assert state.spec is not None, "a conversation that runs has been opened with a spec"
    limits, spent = state.spec.limits, state.usage
    used = {
        "max_iterations": state.iterations,
        "max_budget": spent.cost,
        "max_tokens": spent.prompt_tokens + spent.completion_tokens,
        "max_events": state.next_seq,
    }
    if limits.max_budget is not None and spent.unpriced_tokens:
        return TurnFailure(code="max_budget", detail=NO_PRICE)
    for code, sentence in REACHED.items():
        limit = getattr(limits, code)
        if limit is not None and used[code] >= limit:
            return TurnFailure(code=code, detail=sentence.format(used=used[code], limit=limit))
    if seconds_left is not None and seconds_left <= 0:
        detail = f"The deadline of {limits.deadline} UTC has passed: set a later one."
        return TurnFailure(code="deadline", detail=detail)
    return None


def warn_of_limit(state: State, seconds_left: float | None = None) -> AgentWarning | None:
    """Return the warning, given once a turn, that the next response may be the last."""
    resource = next(_nearly_used_up(state, seconds_left), None)
    if resource is None or "limits" in state.warned_about:
        return None
    text = (
        f"You are about to run out of {resource}. This may be your last answer, so start nothing "
        "new: say what is done, what is left and what somebody should know who goes on with it."
    )
    return AgentWarning(topic="limits", text=text)


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

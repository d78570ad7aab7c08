"""A limit ends the turn with a sentence, and the agent is warned once before it."""

from typing import Any

import pytest

from perdure.agent.loop.decide import decide
from perdure.agent.loop.inbox import (
    AgentWarning,
    ResumeRequest,
    SpecChange,
    TurnFailure,
    UserMessage,
)
from perdure.agent.loop.limits import WARNING_EVENTS, find_reached_limit, warn_of_limit
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Record, Step, Think
from perdure.agent.policies import Limits
from perdure.events.usage import Usage
from tests.agent.recording import apply_requests, events_of_step
from tests.builders import (
    SPEC,
    action,
    agent,
    apply_events,
    id_of,
    observation,
    opened_state,
    spec_event,
    user,
)

DEADLINE = "2026-03-01T10:00:00.000000"


def opening_with(**limits: Any) -> State:
    """Open a conversation with a message, under these limits."""
    spec = SPEC.model_copy(update={"limits": Limits(**limits)})
    return apply_events(opened_state(spec), user())


def respond(state: State, times: int = 1, **bill: Any) -> State:
    """Return the state after so many responses with a call, each with this usage."""
    for _ in range(times):
        response, asked_in = f"response-{state.next_seq}", state.next_seq
        state = apply_events(state, action("look", response=response), usage=Usage(**bill))
        state = apply_events(state, observation(id_of(asked_in), words=f"seen {asked_in}"))
    return state


def only_step(state: State, seconds_left: float | None = None) -> Step:
    [step] = decide(state, (), seconds_left)
    return step


def failure_code(state: State, seconds_left: float | None = None) -> TurnFailure:
    """Return the limit that the next step reports as reached."""
    step = only_step(state, seconds_left)
    assert isinstance(step, Record)
    [item] = step.items
    assert isinstance(item, TurnFailure)
    assert item == find_reached_limit(state, seconds_left)
    return item


def warning_text(state: State, seconds_left: float | None = None) -> str | None:
    """Return the warning of the next step, if there is one."""
    step = only_step(state, seconds_left)
    if not isinstance(step, Record):
        return None
    [item] = step.items
    assert isinstance(item, AgentWarning)
    assert item.topic == "limits"
    return item.text.split(".")[0].removeprefix("You are about to run out of ")


def record_next(state: State, seconds_left: float | None = None) -> State:
    step = only_step(state, seconds_left)
    assert isinstance(step, Record)
    return apply_events(state, *events_of_step(state, step))


REACHED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (
        "max_iterations",
        {"max_iterations": 2},
        {"max_iterations": 3},
        "The agent used its 2 answers for this turn: send a message to give it another turn, or "
        "raise max_iterations.",
    ),
    (
        "max_budget",
        {"max_budget": 1.0},
        {"max_budget": 3.0},
        "The conversation has cost $1.2500 of its $1.0000: start another one, or raise max_budget.",
    ),
    (
        "max_tokens",
        {"max_tokens": 2_000},
        {"max_tokens": 9_000},
        "The conversation has used 2,400 of its 2,000 tokens: start another one, or raise "
        "max_tokens.",
    ),
    (
        "max_events",
        {"max_events": 8},
        {"max_events": 99},
        "The conversation has 8 of its 8 events: start another one, or raise max_events.",
    ),
]
"""A limit, one that is higher, and what is said after two answers."""

BILL: dict[str, Any] = {"cost": 0.625, "prompt_tokens": 1_000, "completion_tokens": 200}


@pytest.mark.parametrize(("code", "limits", "more", "detail"), REACHED)
def test_a_limit_ends_the_turn_and_raising_it_goes_on(
    code: str, limits: dict[str, Any], more: dict[str, Any], detail: str
) -> None:
    state = respond(opening_with(**limits), 2, **BILL)
    assert failure_code(state) == TurnFailure(code=code, detail=detail)
    stopped = record_next(state)
    assert (stopped.status, stopped.reason) == ("error", f"{code}: {detail}")
    assert decide(stopped, ()) == ()
    assert failure_code(apply_requests(stopped, ResumeRequest())).code == code
    raised = apply_requests(stopped, SpecChange(changes={"limits": more}), ResumeRequest())
    assert warning_text(raised) in (None, "answers for this turn")
    assert find_reached_limit(raised) is None


def test_a_limit_that_is_not_set_ends_nothing() -> None:
    state = respond(opening_with(max_iterations=9), 2, cost=1e6, prompt_tokens=10**9)
    assert find_reached_limit(state) is None
    assert warn_of_limit(state) is None
    assert isinstance(only_step(state), Think)


def test_another_turn_has_all_its_answers_again() -> None:
    stopped = record_next(respond(opening_with(max_iterations=2), 2))
    state = apply_requests(stopped, UserMessage(text="Once more."))
    assert (state.turn, state.iterations) == (2, 0)
    assert isinstance(only_step(state), Think)


def test_cost_is_counted_over_all_turns() -> None:
    state = respond(opening_with(max_budget=1.0), cost=0.25)
    state = apply_events(state, agent(), user())
    assert isinstance(only_step(state), Think)
    assert failure_code(respond(state, cost=0.75)).code == "max_budget"


def test_actions_of_the_last_answer_are_still_done() -> None:
    state = apply_events(opening_with(max_iterations=1), action("look"))
    assert isinstance(only_step(state), Act)


def test_no_step_begins_after_the_deadline() -> None:
    state = opening_with(deadline=DEADLINE)
    assert isinstance(only_step(state, 61.0), Think)
    failed = failure_code(state, 0.0)
    assert failed.code == "deadline"
    assert failed.detail == f"The deadline of {DEADLINE} UTC has passed: set a later one."
    late = apply_events(state, action("write", "call_1"), action("write", "call_2"))
    assert isinstance(only_step(late, 0.5), Act)
    assert failure_code(late, -5.0) == failed


def test_a_later_deadline_lets_pending_actions_run() -> None:
    late = apply_events(opening_with(deadline=DEADLINE), action("write"))
    state = apply_requests(record_next(late, -1.0), ResumeRequest())
    assert only_step(state, 60.0) == Act(action_seq=4, spec_seq=1, prompt_seq=2, repeatable=False)


WARNED: list[tuple[str, dict[str, Any], int]] = [
    ("answers for this turn", {"max_iterations": 3}, 2),
    ("the money for this conversation", {"max_budget": 10.0}, 14),
    ("the tokens for this conversation", {"max_tokens": 10_000}, 7),
    ("the events for this conversation", {"max_events": 30}, 8),
]
"""What runs out, and after which answer the agent is told: two answers more would be too many."""


@pytest.mark.parametrize(("what", "limits", "answers"), WARNED)
def test_an_agent_is_warned_once_before_a_limit(
    what: str, limits: dict[str, Any], answers: int
) -> None:
    state = opening_with(**{"max_iterations": 99, **limits})
    for _ in range(answers):
        assert isinstance(only_step(state), Think)
        state = respond(state, **BILL)
    assert warning_text(state) == what
    state = record_next(state)
    assert state.status == "running"
    assert isinstance(only_step(state), Think)
    assert warn_of_limit(state) is None


def test_each_turn_has_its_own_warning() -> None:
    earlier_state = record_next(respond(opening_with(max_iterations=2)))
    again = respond(apply_events(earlier_state, agent(), user()))
    assert warning_text(again) == "answers for this turn"


def test_another_limit_has_a_warning_of_its_own() -> None:
    earlier_state = record_next(respond(opening_with(max_iterations=2)))
    state = apply_events(
        earlier_state, spec_event(SPEC.model_copy(update={"limits": Limits(max_iterations=3)}))
    )
    assert isinstance(only_step(state), Think)
    assert warning_text(respond(state)) == "answers for this turn"


def test_a_turn_of_a_single_answer_begins_without_a_warning() -> None:
    assert isinstance(only_step(opening_with(max_iterations=1)), Think)


def test_expensive_responses_are_warned_of_earlier() -> None:
    assert warn_of_limit(respond(opening_with(max_budget=10.0), cost=3.0)) is None
    assert warning_text(respond(opening_with(max_budget=10.0), cost=3.5)) is not None


def test_the_cost_of_delegations_counts_and_warns_too() -> None:
    summed = Usage(cost=9.5, purpose="condense")
    state = apply_events(opening_with(max_budget=10.0), agent(), usage=summed)
    assert warning_text(apply_events(state, user())) == "the money for this conversation"


def test_time_is_short_when_two_more_answers_would_take_all_of_it() -> None:
    state = opening_with(deadline=DEADLINE)
    assert warning_text(state, 60.0) == "time"
    slow = respond(state, latency=100.0)
    assert warning_text(slow, 201.0) is None
    assert warning_text(slow, 200.0) == "time"
    assert isinstance(only_step(record_next(slow, 200.0), 150.0), Think)


def test_the_agent_is_warned_before_the_last_events() -> None:
    state = opening_with(max_events=4 + WARNING_EVENTS)
    assert warning_text(state) == "the events for this conversation"
    assert isinstance(only_step(opening_with(max_events=5 + WARNING_EVENTS)), Think)


def test_a_budget_that_cannot_be_kept_for_want_of_a_price_ends_the_turn() -> None:
    limits = SPEC.limits.model_copy(update={"max_budget": 5.0})
    spec = SPEC.model_copy(update={"limits": limits})
    state = opened_state().model_copy(update={"spec": spec, "usage": Usage(unpriced_tokens=12)})
    failure = find_reached_limit(state)
    assert failure is not None
    assert (failure.code, "input_price" in failure.detail) == ("max_budget", True)
    assert find_reached_limit(state.model_copy(update={"usage": Usage(prompt_tokens=12)})) is None

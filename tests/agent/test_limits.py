"""What has run out ends the turn with a sentence, and the agent is warned once before it does."""

from typing import Any

import pytest

from agent.decide import decide
from agent.inbox import Configured, Failed, Nudged, ResumeAsked, Said
from agent.limits import LAST_EVENTS, reached, warning
from agent.spec import Limits
from agent.state import State
from agent.steps import Act, Record, Step, Think
from events.usage import Usage
from tests.agent.recording import asked, recorded
from tests.builders import SPEC, action, after, agent, configured, id_of, observation, opening, user

DEADLINE = "2026-03-01T10:00:00.000000"


def limited(**limits: Any) -> State:
    """A conversation that has been asked for something, under these limits."""
    spec = SPEC.model_copy(update={"limits": Limits(**limits)})
    return after(opening(spec), user())


def answering(state: State, times: int = 1, **bill: Any) -> State:
    """The state once the model has answered so often by a call, each for this much."""
    for _ in range(times):
        response, asked_in = f"response-{state.next_seq}", state.next_seq
        state = after(state, action("look", response=response), usage=Usage(**bill))
        state = after(state, observation(id_of(asked_in), words=f"seen {asked_in}"))
    return state


def only(state: State, seconds_left: float | None = None) -> Step:
    [step] = decide(state, (), seconds_left)
    return step


def stopped_by(state: State, seconds_left: float | None = None) -> Failed:
    """The limit that the next step says has been reached."""
    step = only(state, seconds_left)
    assert isinstance(step, Record)
    [item] = step.items
    assert isinstance(item, Failed)
    assert item == reached(state, seconds_left)
    return item


def warned_of(state: State, seconds_left: float | None = None) -> str | None:
    """What the next step warns the agent of, if of anything."""
    step = only(state, seconds_left)
    if not isinstance(step, Record):
        return None
    [item] = step.items
    assert isinstance(item, Nudged)
    assert item.topic == "limits"
    return item.text.split(".")[0].removeprefix("You are about to run out of ")


def next_noted(state: State, seconds_left: float | None = None) -> State:
    step = only(state, seconds_left)
    assert isinstance(step, Record)
    return after(state, *recorded(state, step))


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
    state = answering(limited(**limits), 2, **BILL)
    assert stopped_by(state) == Failed(code=code, detail=detail)
    stopped = next_noted(state)
    assert (stopped.status, stopped.reason) == ("error", f"{code}: {detail}")
    assert decide(stopped, ()) == ()
    assert stopped_by(asked(stopped, ResumeAsked())).code == code
    raised = asked(stopped, Configured(changes={"limits": more}), ResumeAsked())
    assert warned_of(raised) in (None, "answers for this turn")
    assert reached(raised) is None


def test_a_limit_that_is_not_set_ends_nothing() -> None:
    state = answering(limited(max_iterations=9), 2, cost=1e6, prompt_tokens=10**9)
    assert reached(state) is None
    assert warning(state) is None
    assert isinstance(only(state), Think)


def test_another_turn_has_all_its_answers_again() -> None:
    stopped = next_noted(answering(limited(max_iterations=2), 2))
    state = asked(stopped, Said(text="Once more."))
    assert (state.turn, state.iterations) == (2, 0)
    assert isinstance(only(state), Think)


def test_money_is_counted_over_all_turns() -> None:
    state = answering(limited(max_budget=1.0), cost=0.25)
    state = after(state, agent(), user())
    assert isinstance(only(state), Think)
    assert stopped_by(answering(state, cost=0.75)).code == "max_budget"


def test_actions_of_the_last_answer_are_still_done() -> None:
    state = after(limited(max_iterations=1), action("look"))
    assert isinstance(only(state), Act)


def test_after_a_deadline_nothing_is_begun_any_more() -> None:
    state = limited(deadline=DEADLINE)
    assert isinstance(only(state, 61.0), Think)
    failed = stopped_by(state, 0.0)
    assert failed.code == "deadline"
    assert failed.detail == f"The deadline of {DEADLINE} UTC has passed: set a later one."
    late = after(state, action("write", "call_1"), action("write", "call_2"))
    assert isinstance(only(late, 0.5), Act)
    assert stopped_by(late, -5.0) == failed


def test_what_the_deadline_left_undone_is_done_when_there_is_time_again() -> None:
    late = after(limited(deadline=DEADLINE), action("write"))
    state = asked(next_noted(late, -1.0), ResumeAsked())
    assert only(state, 60.0) == Act(action=4, spec=1, prompt=2, repeatable=False)


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
    state = limited(**{"max_iterations": 99, **limits})
    for _ in range(answers):
        assert isinstance(only(state), Think)
        state = answering(state, **BILL)
    assert warned_of(state) == what
    state = next_noted(state)
    assert state.status == "running"
    assert isinstance(only(state), Think)
    assert warning(state) is None


def test_each_turn_has_its_own_warning() -> None:
    told = next_noted(answering(limited(max_iterations=2)))
    again = answering(after(told, agent(), user()))
    assert warned_of(again) == "answers for this turn"


def test_another_limit_has_a_warning_of_its_own() -> None:
    told = next_noted(answering(limited(max_iterations=2)))
    state = after(told, configured(SPEC.model_copy(update={"limits": Limits(max_iterations=3)})))
    assert isinstance(only(state), Think)
    assert warned_of(answering(state)) == "answers for this turn"


def test_a_turn_of_a_single_answer_begins_without_a_warning() -> None:
    assert isinstance(only(limited(max_iterations=1)), Think)


def test_dear_answers_warn_earlier() -> None:
    assert warning(answering(limited(max_budget=10.0), cost=3.0)) is None
    assert warned_of(answering(limited(max_budget=10.0), cost=3.5)) is not None


def test_money_that_others_spent_counts_and_warns_too() -> None:
    summed = Usage(cost=9.5, purpose="condense")
    state = after(limited(max_budget=10.0), agent(), usage=summed)
    assert warned_of(after(state, user())) == "the money for this conversation"


def test_time_is_short_when_two_more_answers_would_take_all_of_it() -> None:
    state = limited(deadline=DEADLINE)
    assert warned_of(state, 60.0) == "time"
    slow = answering(state, latency=100.0)
    assert warned_of(slow, 201.0) is None
    assert warned_of(slow, 200.0) == "time"
    assert isinstance(only(next_noted(slow, 200.0), 150.0), Think)


def test_the_last_events_are_for_the_last_words() -> None:
    state = limited(max_events=4 + LAST_EVENTS)
    assert warned_of(state) == "the events for this conversation"
    assert isinstance(only(limited(max_events=5 + LAST_EVENTS)), Think)

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from agent.decide import MANY, ROOM, decide
from agent.inbox import (
    MAX_MESSAGE,
    CloseAsked,
    Failed,
    Item,
    PauseAsked,
    Refused,
    ResumeAsked,
    Said,
    fault,
    weight,
)
from agent.spec import Limits
from agent.state import State, lost
from agent.steps import Act, Prepare, Record, Settle, Think
from events.control import PauseEvent
from events.event import AnyEvent
from events.usage import Usage
from tests.builders import (
    SPEC,
    WHEN,
    action,
    after,
    agent,
    configured,
    digests,
    failed,
    id_of,
    observation,
    opened,
    opening,
    prompt,
    status,
    user,
)

PAUSE = PauseEvent(timestamp=WHEN)


def limited(**limits: Any) -> State:
    return opening(SPEC.model_copy(update={"limits": Limits(**limits)}))


def calls(*names: str) -> list[AnyEvent]:
    return [action(name, f"call_{nth}") for nth, name in enumerate(names)]


# What goes before what.


def test_a_conversation_waits_for_its_first_message() -> None:
    assert decide(opening(), ()) is None


def test_what_people_asked_for_is_recorded_before_anything_else() -> None:
    waiting = (Said(text="hi"), PauseAsked())
    busy = after(opening(), user(), *calls("write"))
    for state in (State(), opening(), busy, lost(busy, 4, "gone"), after(busy, PAUSE)):
        assert decide(state, waiting) == Record(items=waiting)


@pytest.mark.parametrize("then", [[], [PAUSE], [failed()], [status("closed")], [user()]])
def test_a_lost_call_is_settled_whatever_the_status(then: list[AnyEvent]) -> None:
    state = lost(after(opening(), user(), *calls("look", "write")), 5, "gone")
    assert decide(after(state, *then), ()) == Settle(action=5, known="gone")


@pytest.mark.parametrize("then", [PAUSE, failed(), status("closed"), agent()])
def test_nothing_happens_at_rest(then: AnyEvent) -> None:
    assert decide(after(opening(), user(), *calls("look"), then), ()) is None


def test_actions_are_taken_in_the_order_of_the_calls() -> None:
    state = after(opening(), user(), *calls("look", "write"))
    assert decide(state, ()) == Act(action=4, spec=1, repeatable=True)
    state = after(state, observation(id_of(4)))
    assert decide(state, ()) == Act(action=5, spec=1, repeatable=False)


def test_actions_that_wait_go_before_the_next_thought() -> None:
    state = after(limited(max_iterations=1), user(), *calls("look"))
    assert isinstance(decide(state, ()), Act)


def test_an_agent_is_told_who_it_is_before_it_thinks() -> None:
    state = after(State(), opened(), configured(), user())
    assert decide(state, ()) == Prepare(spec=1)
    assert decide(after(state, prompt()), ()) == Think(spec=1)


def test_it_thinks_by_the_spec_in_force() -> None:
    assert decide(after(opening(), configured(), user()), ()) == Think(spec=3)


def test_it_thinks_again_once_every_call_has_its_answer() -> None:
    state = after(opening(), user(), *calls("look"), observation(id_of(4)))
    assert decide(state, ()) == Think(spec=1)


# Limits.


def test_a_turn_has_so_many_answers() -> None:
    state = after(limited(max_iterations=2), user())
    for nth, response in enumerate(("r-1", "r-2")):
        assert isinstance(decide(state, ()), Think)
        state = after(state, action("look", response=response), observation(id_of(4 + 2 * nth)))
    assert decide(state, ()) == Record(
        items=(
            Failed(
                code="max_iterations",
                detail="The agent used its 2 answers for this turn: send a message to give it "
                "another turn, or raise max_iterations.",
            ),
        )
    )
    stopped = after(state, failed("max_iterations"))
    assert decide(stopped, ()) is None
    assert isinstance(decide(after(stopped, user()), ()), Think)


def test_a_conversation_has_so_much_money() -> None:
    state = after(limited(max_budget=1.0), user())
    state = after(state, agent(), usage=Usage(cost=0.75))
    state = after(state, user())
    assert isinstance(decide(state, ()), Think)
    state = after(after(state, agent(response="r-2"), usage=Usage(cost=0.5)), user())
    step = decide(state, ())
    assert isinstance(step, Record)
    [reached] = step.items
    assert isinstance(reached, Failed)
    assert reached.code == "max_budget"
    assert "has cost $1.2500 of its $1.0000" in reached.detail


# How much is recorded at a time.

items = st.one_of(
    st.builds(Said, text=st.sampled_from(["hi", "失" * 900, "x" * 30_000, "🙈" * 20_000])),
    st.sampled_from([PauseAsked(), ResumeAsked(), CloseAsked(), Refused(detail="no")]),
)


@given(st.lists(items, min_size=1, max_size=12))
@settings(max_examples=30)
def test_a_load_has_a_size_and_every_load_is_a_step_forward(inbox: list[Item]) -> None:
    waiting: list[Item] = list(inbox)
    recorded: list[Item] = []
    while waiting:
        step = decide(opening(), waiting)
        assert isinstance(step, Record)
        assert step.items
        assert step.items == tuple(waiting[: len(step.items)])
        assert len(step.items) == 1 or sum(map(weight, step.items)) <= ROOM
        recorded += step.items
        del waiting[: len(step.items)]
    assert recorded == inbox


def test_a_message_of_the_largest_kind_fits_into_a_load() -> None:
    largest = Said(text="x" * (MAX_MESSAGE - weight(Said(text=""))))
    assert fault(largest) is None
    assert decide(opening(), [largest, PauseAsked()]) == Record(items=(largest,))
    assert weight(largest) <= ROOM


def test_the_digests_of_a_load_can_travel_back() -> None:
    crowd = [Said(text="x", message_id=f"{nth:0128d}") for nth in range(2 * MANY)]
    step = decide(opening(), crowd)
    assert isinstance(step, Record)
    assert step.items == tuple(crowd[:MANY])
    messages = [user(item.text, item.message_id) for item in crowd[:MANY]]
    facts = digests(*messages, start=900_000)
    assert len(to_json(facts, exclude_none=True)) < 128 * 1024

"""What is done next, and what goes before what."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from agent.decide import MANY, ROOM, STOPPED, decide, load
from agent.inbox import (
    MAX_MESSAGE,
    CloseAsked,
    FoundStuck,
    Item,
    Nudged,
    PauseAsked,
    Refused,
    Rejected,
    ResumeAsked,
    Said,
    fault,
    weight,
)
from agent.spec import ModelSpec, StuckThresholds, SummaryCondenser
from agent.state import State, lost, uncondensed, untitled
from agent.steps import (
    Act,
    Condense,
    Delegate,
    Entitle,
    Prepare,
    Record,
    Refusal,
    Settle,
    Step,
    Think,
)
from events.control import InterruptEvent, PauseEvent
from events.event import AnyEvent
from events.usage import Usage
from tests.agent.recording import asked, noted
from tests.builders import (
    SPEC,
    WHEN,
    action,
    after,
    agent,
    condensation,
    configured,
    digests,
    error,
    failed,
    id_of,
    observation,
    opened,
    opening,
    overflow,
    prompt,
    status,
    updated,
    user,
)
from tests.logs import recall

PAUSE = PauseEvent(timestamp=WHEN)
USER_ASKS = overflow().model_copy(update={"source": "user"})


def by(**fields: Any) -> State:
    """A conversation that has been asked for something, under a spec with these fields."""
    return after(opening(SPEC.model_copy(update=fields)), user())


def calls(*names: str) -> list[AnyEvent]:
    return [action(name, f"call_{nth}") for nth, name in enumerate(names)]


def only(state: State) -> Step:
    [step] = decide(state, ())
    return step


# What goes before what.


def test_a_conversation_waits_for_its_first_message() -> None:
    assert decide(opening(), ()) == ()


def test_what_people_asked_for_is_recorded_before_all_but_the_answer_to_a_lost_call() -> None:
    waiting = (Said(text="hi"), PauseAsked())
    first = Record(items=waiting, taken=2, spec=1, skills=None)
    assert decide(State(), waiting) == (first.model_copy(update={"spec": 0}),)
    assert decide(opening(), waiting) == (first,)
    busy = after(opening(), user(), *calls("write"))
    for state in (busy, after(busy, PAUSE), after(busy, USER_ASKS)):
        assert decide(state, waiting) == (first.model_copy(update={"skills": ()}),)
    assert decide(lost(busy, 4, "gone"), waiting) == (Settle(action=4, known="gone"),)


def test_what_was_recalled_before_is_not_recalled_with_the_next_message() -> None:
    state = after(opening(), user(), recall("Be brief.", "brevity"))
    [step] = decide(state, [Said(text="hi")])
    assert isinstance(step, Record)
    assert step.skills == ("brevity",)


@pytest.mark.parametrize("then", [[], [PAUSE], [failed()], [status("closed")], [user()]])
def test_a_lost_call_is_settled_whatever_the_status(then: list[AnyEvent]) -> None:
    state = lost(after(opening(), user(), *calls("look", "write")), 5, "gone")
    assert only(after(state, *then)) == Settle(action=5, known="gone")


@pytest.mark.parametrize("then", [PAUSE, failed(), status("closed"), agent()])
def test_nothing_happens_at_rest(then: AnyEvent) -> None:
    assert decide(after(opening(), user(), *calls("look"), then), ()) == ()


def test_actions_that_an_interrupt_did_not_know_of_yet_are_rejected_too() -> None:
    """The answer that asked for them came between the interrupt and its record."""
    state = after(opening(), user(), *calls("look", "write"), InterruptEvent(timestamp=WHEN))
    assert only(state) == Record(items=(), refusal=Refusal(actions=(4, 5), reason=STOPPED))


def test_two_people_who_say_no_to_one_call_answer_it_once() -> None:
    state = after(opening(), user(), *calls("look", "write"))
    both = (Rejected(actions=(4, 5), reason="no"), Rejected(actions=(5, 9), reason="never"))
    [step] = decide(state, both)
    assert isinstance(step, Record)
    assert step.taken == 2
    assert [item.actions for item in step.items if isinstance(item, Rejected)] == [(4, 5), ()]


def test_actions_are_taken_in_the_order_of_the_calls() -> None:
    state = after(opening(), user(), *calls("look", "write"))
    assert only(state) == Act(action=4, spec=1, prompt=2, repeatable=True)
    state = after(state, observation(id_of(4)))
    assert only(state) == Act(action=5, spec=1, prompt=2, repeatable=False)


def test_a_delegated_action_is_given_what_is_left_of_the_money() -> None:
    assert only(after(by(), *calls("delegate"))) == Delegate(action=4, spec=1)
    limits = SPEC.limits.model_copy(update={"max_budget": 2.0})
    state = after(by(limits=limits), *calls("delegate"), usage=Usage(cost=0.5))
    assert only(state) == Delegate(action=4, spec=1, budget=1.5)
    broke = after(by(limits=limits), *calls("delegate"), usage=Usage(cost=2.5))
    assert only(broke) == Delegate(action=4, spec=1, budget=0.0)


def test_an_action_is_told_what_was_recalled_before_it() -> None:
    step = only(after(opening(), user(), recall("Be brief.", "brevity"), *calls("look")))
    assert isinstance(step, Act)
    assert step.skills == ("brevity",)


def test_an_agent_is_told_who_it_is_before_it_thinks() -> None:
    state = after(State(), opened(), configured(), user())
    assert only(state) == Prepare(spec=1)
    assert only(after(state, prompt())) == Think(spec=1, prompt=3)


def test_it_thinks_by_the_spec_in_force() -> None:
    assert only(after(opening(), configured(), user())) == Think(spec=3, prompt=2)


def test_it_thinks_again_once_every_call_has_its_answer() -> None:
    state = after(opening(), user(), *calls("look"), observation(id_of(4)))
    assert only(state) == Think(spec=1, prompt=2, number=1)


def test_it_does_not_read_what_it_has_forgotten() -> None:
    state = after(opening(), user(), agent(), condensation(3, 4), user())
    assert only(state) == Think(spec=1, prompt=2, forgotten=((3, 4),), number=1)


# Going in circles.


def test_who_goes_in_circles_is_stopped_until_somebody_says_more() -> None:
    state = by(stuck=StuckThresholds(action_observation=2))
    for seq in (4, 6):
        state = after(state, action("look"), observation(id_of(seq)))
    found = FoundStuck(pattern="action_observation", first_seq=4, last_seq=7, count=2)
    assert only(state) == Record(items=(found,))
    stuck = noted(state)
    assert (stuck.status, stuck.reason) == ("stuck", "action_observation: events 4 to 7")
    assert decide(stuck, ()) == ()
    for item in (Said(text="Try the other door."), ResumeAsked()):
        assert isinstance(only(asked(stuck, item)), Think)


def test_who_fails_again_and_again_is_told_once_before_it_is_stuck() -> None:
    state = by(stuck=StuckThresholds(action_error=2))
    for seq in (4, 6):
        state = after(state, action("look"), error(id_of(seq), words="no such file"))
    step = only(state)
    assert isinstance(step, Record)
    [nudge] = step.items
    assert isinstance(nudge, Nudged)
    assert nudge.topic == "stuck"
    state = noted(state)
    assert isinstance(only(state), Think)
    state = after(state, action("look"), error(id_of(9), words="no such file"))
    assert noted(state).status == "stuck"


# Condensing.

SHORT = SummaryCondenser(max_size=3, max_tokens=1_000)


def test_a_view_that_is_too_long_is_condensed() -> None:
    state = after(by(condenser=SHORT), agent(), user())
    assert only(state) == Condense(spec=1, forgotten=(), asked="size")
    less = after(state, condensation(3, 4))
    assert only(less) == Think(spec=1, prompt=2, forgotten=((3, 4),), number=1)


def test_a_view_of_too_many_tokens_is_condensed() -> None:
    state = after(opening(SPEC.model_copy(update={"condenser": SHORT})), user("x" * 8_000))
    assert isinstance(only(state), Condense)


def test_what_could_not_be_condensed_is_tried_again_when_there_is_more() -> None:
    state = uncondensed(after(by(condenser=SHORT), agent(), user()))
    while state.shown < 14:
        assert isinstance(only(state), Think)
        state = after(state, user("More."))
    assert isinstance(only(state), Condense)


def test_a_prompt_that_did_not_fit_is_condensed_and_each_time_harder() -> None:
    state = by()
    for tries in (1, 2):
        state = after(state, overflow())
        assert only(state) == Condense(
            spec=1, forgotten=state.forgotten, asked="overflow", tries=tries
        )
        state = after(state, condensation(tries, tries))
        assert isinstance(only(state), Think)
    state = after(state, action("look"), observation(id_of(state.next_seq)), overflow())
    step = only(state)
    assert isinstance(step, Condense)
    assert step.tries == 1


@pytest.mark.parametrize("then", [[], [agent()], [PAUSE], [failed()]])
def test_a_person_may_ask_for_less_at_any_time(then: list[AnyEvent]) -> None:
    state = after(by(), *then, USER_ASKS)
    assert only(state) == Condense(spec=1, forgotten=(), asked="user")
    for answer in (
        condensation(3, 3),
        updated("not_condensed", "There is nothing to condense yet."),
    ):
        assert not any(isinstance(step, Condense) for step in decide(after(state, answer), ()))


def test_what_a_person_asks_to_condense_waits_for_the_actions() -> None:
    state = after(by(), *calls("look"), USER_ASKS)
    assert isinstance(only(state), Act)
    assert isinstance(only(after(state, observation(id_of(4)))), Condense)


def test_who_interrupts_wants_nothing_condensed_any_more() -> None:
    state = after(by(), USER_ASKS, InterruptEvent(timestamp=WHEN))
    assert decide(state, ()) == ()


def test_a_closed_conversation_is_not_condensed() -> None:
    assert decide(after(by(), USER_ASKS, status("closed")), ()) == ()


# A title.

ENTITLED = {"title_model": ModelSpec(name="small")}


def test_a_conversation_that_rests_is_given_a_title_once() -> None:
    state = by(**ENTITLED)
    assert isinstance(only(state), Think)
    state = after(state, agent())
    assert only(state) == Entitle(spec=1, message=3)
    assert decide(after(state, updated("title", "Doors")), ()) == ()
    assert decide(untitled(state), ()) == ()
    assert decide(after(state, status("closed")), ()) == ()


def test_a_title_is_of_what_somebody_said_and_by_a_model_that_gives_titles() -> None:
    assert decide(opening(SPEC.model_copy(update=ENTITLED)), ()) == ()
    assert decide(after(by(), agent()), ()) == ()


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
        [step] = decide(opening(), waiting)
        assert isinstance(step, Record)
        assert step.items == load(waiting) == tuple(waiting[: step.taken])
        assert step.taken == 1 or sum(map(weight, step.items)) <= ROOM
        recorded += step.items
        del waiting[: step.taken]
    assert recorded == inbox


def test_a_message_of_the_largest_kind_fits_into_a_load() -> None:
    largest = Said(text="x" * (MAX_MESSAGE - weight(Said(text=""))))
    assert fault(largest) is None
    assert load([largest, PauseAsked()]) == (largest,)
    assert weight(largest) <= ROOM


def test_the_digests_of_a_load_can_travel_back() -> None:
    crowd = [Said(text="x", message_id=f"{nth:0128d}") for nth in range(2 * MANY)]
    assert load(crowd) == tuple(crowd[:MANY])
    messages = [user(item.text, item.message_id) for item in crowd[:MANY]]
    facts = digests(*messages, start=900_000)
    assert len(to_json(facts, exclude_none=True)) < 128 * 1024

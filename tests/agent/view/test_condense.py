"""Condensation plans leave fewer events or tokens, or do nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.spec import (
    Agent,
    AmortizedCondenser,
    BrowserMaskingCondenser,
    CondenserSpec,
    MaskingCondenser,
    NoCondenser,
    PipelineCondenser,
    RecentCondenser,
    SummaryCondenser,
)
from perdure.agent.view.condense.condensation import CondensationInput
from perdure.agent.view.condense.plan import (
    CondensationPlan,
    plan_condensation,
    plan_remainder,
)
from perdure.agent.view.condense.prompt import plan_first_part
from perdure.agent.view.condense.thresholds import CondenseReason, exceeds_threshold
from perdure.agent.view.view import View
from perdure.events.condensation import Condensation
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.projection import estimate_tokens
from tests import builders
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    entries,
    id_of,
    observation,
    opened_event,
    status_event,
    user,
)
from tests.logs import CONDENSERS, condensed_logs, in_ranges

SUMMARY = SummaryCondenser()


def talk(count: int, *more: AnyEvent) -> CondensationInput:
    """Make this many events for the model, the first of them the system prompt."""
    return CondensationInput(
        entries([builders.prompt(), *[user(f"{n}") for n in range(count - 1)], *more])
    )


def test_a_result_without_a_call_is_forgotten_with_the_events_around_it_only() -> None:
    log = [builders.prompt(), user("0"), user("1"), *lost_result(), user("2"), user("3")]
    material = CondensationInput(entries([*log, *lost_result()]))
    forgotten = material.select_forgotten(CondensationPlan(1, 4, SUMMARY))
    assert [event.id for event in forgotten] == [id_of(seq) for seq in (1, 2, 3, 4)]


def lost_result() -> list[AnyEvent]:
    return [observation(id_of(99))]


def planned(
    material: CondensationInput,
    condenser: CondenserSpec,
    reason: CondenseReason = "size",
    tries: int = 0,
) -> tuple[int, int] | None:
    plan = plan_condensation(material.view, condenser, material.tokens, reason, tries)
    return None if plan is None else (plan.start, plan.end)


def condensed(
    material: CondensationInput, condenser: CondenserSpec, reason: CondenseReason = "size"
) -> CondensationInput:
    """Return the view after the plan is carried out."""
    plan = plan_condensation(material.view, condenser, material.tokens, reason)
    assert plan is not None
    summary = "S" if isinstance(plan.condenser, SummaryCondenser) else None
    made = material.make_condensation(plan, TIMESTAMP, summary)
    return CondensationInput([*material.entries, *entries([made], material.entries[-1].seq + 1)])


def newest(material: CondensationInput) -> Condensation:
    event = material.entries[-1].event
    assert isinstance(event, Condensation)
    return event


# How much.


def test_two_hundred_and_forty_one_events_become_a_hundred_and_twenty() -> None:
    assert planned(talk(240), SUMMARY) is None
    material = condensed(talk(241), SUMMARY)
    assert len(material.view.events) == 120
    assert [event.kind for event in material.view.events[:3]] == [
        "SystemPromptEvent",
        "MessageEvent",
        "CondensationSummaryEvent",
    ]
    assert newest(material).forgotten_seqs == ((2, 123),)


def test_amortized_forgetting_leaves_half_and_no_summary() -> None:
    material = condensed(talk(241), AmortizedCondenser())
    assert len(material.view.events) == 120
    assert newest(material).summary is None
    assert newest(material).summary_offset is None


def test_tokens_count_too() -> None:
    material = talk(50)
    total = sum(material.tokens.values())
    assert planned(material, SummaryCondenser(max_tokens=total)) is None
    plan = plan_condensation(material.view, SummaryCondenser(max_tokens=total - 1), material.tokens)
    assert plan is not None
    left = total - sum(material.tokens[item.id] for item in material.select_forgotten(plan))
    last = material.tokens[material.view.events[plan.end - 1].id]
    assert left <= (total - 1) // 2 < left + last


def test_too_little_is_left_alone_where_only_the_size_asks() -> None:
    material = talk(30)
    condenser = SummaryCondenser(max_size=29, keep_first=12, minimum_progress=0.6)
    assert planned(material, condenser) is None
    assert planned(material, condenser, "user") == (1, 30)


def test_a_loop_that_fills_the_view_goes_only_where_somebody_asks() -> None:
    steps = [
        event
        for nth in range(10)
        for event in (thinking(nth), observation(id_of(2 + 2 * nth), call_id=f"c{nth}"))
    ]
    material = CondensationInput(entries([builders.prompt(), user(), *steps]))
    condenser = SummaryCondenser(max_size=20, keep_first=3)
    assert planned(material, condenser) is None
    assert planned(material, condenser, "overflow", 1) == (1, 22)


def thinking(nth: int) -> AnyEvent:
    """A call of one long loop."""
    made = action("look", f"c{nth}", f"r-{nth}")
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}] if nth == 0 else []
    return type(made).model_validate({**made.model_dump(), "thinking_blocks": blocks})


# Who asks.


def test_a_user_gets_half_of_the_view_and_then_all_of_it() -> None:
    assert planned(talk(20), SUMMARY, "user") == (2, 13)
    assert planned(talk(5), SUMMARY, "user") == (1, 5)


def test_an_overflow_that_comes_again_is_met_harder() -> None:
    material = talk(20)
    assert planned(material, SUMMARY, "overflow", 1) == (2, 13)
    assert planned(material, SUMMARY, "overflow", 2) == (1, 20)


@pytest.mark.parametrize("reason", ["user", "overflow"])
def test_where_nothing_but_a_summary_is_left_nothing_can_go(reason: CondenseReason) -> None:
    assert planned(talk(1), SUMMARY, reason) is None
    assert planned(talk(2), SUMMARY, reason) is None
    reset = CondensationPlan(1, 5, SUMMARY)
    material = talk(5)
    made = material.make_condensation(reset, TIMESTAMP, "S")
    left = CondensationInput([*material.entries, *entries([made], 5)])
    assert [event.kind for event in left.view.events][1:] == ["CondensationSummaryEvent"]
    assert planned(left, SUMMARY, reason, 2) is None


def test_one_event_is_worth_a_summary_where_it_is_long() -> None:
    material = CondensationInput(entries([builders.prompt(), user("x" * 10_000)]))
    assert planned(material, SUMMARY, "overflow", 1) == (1, 2)


@pytest.mark.parametrize(
    "condenser",
    [
        AmortizedCondenser(),
        MaskingCondenser(),
        BrowserMaskingCondenser(),
        PipelineCondenser(condensers=(MaskingCondenser(), AmortizedCondenser())),
    ],
    ids=lambda condenser: condenser.kind,
)
def test_who_makes_no_summaries_forgets_half_of_the_view(condenser: CondenserSpec) -> None:
    assert planned(talk(21), condenser, "overflow", 1) == (2, 13)
    assert planned(talk(21), condenser, "user") == (2, 13)
    assert planned(talk(4), condenser, "overflow", 3) == (2, 4)
    assert planned(talk(2), condenser, "overflow", 3) is None


def test_the_default_drops_half_of_a_prompt_that_is_too_long_and_summarises_all_else() -> None:
    log, condenser = talk(21), Agent(model="m").condenser
    dropped = plan_condensation(log.view, condenser, log.tokens, "overflow", 1)
    assert dropped == CondensationPlan(4, 15, AmortizedCondenser(keep_first=4))
    summary = SummaryCondenser(max_size=120, keep_first=4)
    for reason, overflows in (("overflow", 2), ("user", 0)):
        plan = plan_condensation(log.view, condenser, log.tokens, reason, overflows)  # type: ignore[arg-type]
        assert plan is not None
        assert plan.condenser == summary
    assert planned(talk(120), condenser) is None
    large = plan_condensation(talk(121).view, condenser, talk(121).tokens)
    assert large == CondensationPlan(4, 66, summary)


def test_half_of_a_window_is_half_of_what_is_shown() -> None:
    assert planned(talk(200), RecentCondenser(max_events=20), "overflow", 1) == (2, 192)


@pytest.mark.parametrize("reason", ["size", "user", "overflow"])
def test_without_a_condenser_nothing_goes(reason: CondenseReason) -> None:
    assert planned(talk(500), NoCondenser(), reason) is None


def test_a_pipeline_stops_at_the_first_that_condenses() -> None:
    pipeline = PipelineCondenser(
        condensers=(RecentCondenser(), AmortizedCondenser(max_size=50), SummaryCondenser())
    )
    plan = plan_condensation(talk(60).view, pipeline, talk(60).tokens)
    assert plan is not None
    assert plan.condenser == AmortizedCondenser(max_size=50)
    summed = plan_condensation(talk(60).view, pipeline, talk(60).tokens, "user")
    assert summed is not None
    assert summed.condenser == SummaryCondenser()


@pytest.mark.parametrize(
    ("condenser", "event_count", "tokens", "wants"),
    [
        (SummaryCondenser(), 240, 10**9, False),
        (SummaryCondenser(), 241, 0, True),
        (SummaryCondenser(max_tokens=9), 1, 10, True),
        (AmortizedCondenser(), 241, 0, True),
        (RecentCondenser(), 10**6, 10**9, False),
        (NoCondenser(), 10**6, 10**9, False),
        (PipelineCondenser(condensers=(NoCondenser(), AmortizedCondenser())), 241, 0, True),
    ],
)
def test_who_wants_condensing(
    condenser: CondenserSpec, event_count: int, tokens: int, wants: bool
) -> None:
    assert exceeds_threshold(condenser, event_count, tokens) is wants


# What the event says.


def test_sizes_are_those_of_the_digests() -> None:
    material = condensed(talk(241), SUMMARY)
    made = newest(material)
    gone = [entry for entry in material.entries if entry.event.id in made.forgotten_event_ids]
    assert made.forgotten_size == sum(map(estimate_tokens, gone))
    assert made.summary_size == 1
    assert material.tokens[material.view.events[2].id] == 1


def test_ranges_bridge_what_no_model_is_shown() -> None:
    messages: list[AnyEvent] = [user(f"{n}") for n in range(10)]
    beginning: list[AnyEvent] = [opened_event(), builders.prompt(), user()]
    log = [*beginning, status_event("resumed"), *messages[:5], opened_event(), *messages[5:]]
    material = condensed(CondensationInput(entries(log)), SUMMARY, "user")
    assert newest(material).forgotten_seqs == ((3, 11),)


def test_ranges_of_one_condensation_join_those_of_the_one_before() -> None:
    first = condensed(talk(20), SUMMARY, "user")
    grown = CondensationInput([*first.entries, *entries([user() for _ in range(20)], 21)])
    second = condensed(grown, SUMMARY, "user")
    assert newest(first).forgotten_seqs == ((2, 12),)
    assert newest(second).forgotten_seqs == ((2, 28),)


def test_a_call_that_waits_for_its_result_is_read_again() -> None:
    log: list[AnyEvent] = [builders.prompt(), user(), agent(), action(), agent(), agent()]
    material = condensed(CondensationInput(entries(log)), SUMMARY, "user")
    assert newest(material).forgotten_seqs == ((1, 2), (4, 5))
    assert [entry.seq for entry in material.entries if entry.event.id == id_of(3)] == [3]


def test_the_prompt_in_force_is_never_forgotten() -> None:
    messages: list[AnyEvent] = [user(f"{n}") for n in range(10)]
    material = CondensationInput(
        entries([builders.prompt(), *messages, builders.prompt(), *messages])
    )
    made = newest(condensed(material, SUMMARY, "user"))
    assert id_of(11) not in made.forgotten_event_ids
    assert made.forgotten_seqs == ((2, 10), (12, 13))


# Whatever the log holds.


@pytest.mark.long
@given(
    condensed_logs,
    st.sampled_from(CONDENSERS),
    st.sampled_from(["size", "user", "overflow"]),
    st.integers(1, 3),
)
def test_condensing_makes_progress_or_says_that_it_cannot(
    log: list[Entry], condenser: CondenserSpec, reason: CondenseReason, tries: int
) -> None:
    material = CondensationInput(log)
    for _ in range(40):
        plan = plan_condensation(material.view, condenser, material.tokens, reason, tries)
        if plan is None:
            return
        material = carried_out(material, plan)
    raise AssertionError("it never ends")


@given(condensed_logs, st.integers(0, 400))
def test_parts_come_to_an_end(log: list[Entry], room: int) -> None:
    material = CondensationInput(log)
    rest = plan_condensation(material.view, SUMMARY, material.tokens, "user", 2)
    if rest is None:
        return
    plan, behind = rest, len(material.view.events) - rest.end
    while rest is not None:
        material = carried_out(material, plan_first_part(material.view, rest, room))
        rest = plan_remainder(material.view, plan, behind)
    assert len(material.view.events) <= plan.start + 2 + behind


def carried_out(material: CondensationInput, plan: CondensationPlan) -> CondensationInput:
    """Return the view after the plan; only the planned events make room for the summary."""
    events = material.view.events
    gone = material.select_forgotten(plan)
    summary = "S" if isinstance(plan.condenser, SummaryCondenser) else None
    made = material.make_condensation(plan, TIMESTAMP, summary)
    after = CondensationInput([*material.entries, *entries([made], material.entries[-1].seq + 1)])
    ids = [event.id for event in after.view.events]
    expected_ids = [event.id for event in events if event not in gone]
    assert [
        identifier for identifier in ids if not identifier.startswith(after.entries[-1].event.id)
    ] == expected_ids
    assert len(ids) < len(events) or summed(after) < summed(material)
    check_readable(after)
    return after


def summed(material: CondensationInput) -> int:
    return sum(material.tokens[event.id] for event in material.view.events)


def check_readable(material: CondensationInput) -> None:
    """The log without the slots that need not be read gives the same view."""
    ranges = newest(material).forgotten_seqs or ()
    part = View()
    part.add_entries(entry for entry in material.entries if not in_ranges(entry.seq, ranges))
    assert part.events == material.view.events

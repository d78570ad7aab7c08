"""The view of a log has whole groups only, and is cut between groups."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.view.cut_points import ViewEvent
from perdure.agent.view.view import View, make_summary
from perdure.events.condensation import Condensation, CondensationRequest
from perdure.events.content import ThinkingBlock
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.tools import ActionEvent
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    error,
    id_of,
    observation,
    opened_event,
    prompt,
    status_event,
    unknown_event,
    user,
    with_ids,
)
from tests.logs import (
    ANSWERS,
    LogWriter,
    build_view,
    condensed_logs,
    condensing_writers,
    logs,
    recall_event,
)


def condensation(*forgotten: int, summary: str | None = "S", offset: int = 1) -> Condensation:
    """Forgets what stands in these slots."""
    return Condensation(
        timestamp=TIMESTAMP,
        forgotten_event_ids=tuple(map(id_of, forgotten)),
        summary=summary,
        summary_offset=offset,
    )


def thinking(call_id: str = "call_1", response: str = "response-1") -> ActionEvent:
    block = ThinkingBlock(thinking="Hm.", signature="s")
    return action("look", call_id, response).model_copy(update={"thinking_blocks": (block,)})


def viewed(*events: AnyEvent) -> View:
    return build_view(with_ids(events))


def slots(view: View) -> list[int | str]:
    """Return the view by slot; a summary by its text."""
    number = {id_of(seq): seq for seq in range(50)}
    return [number.get(event.id, getattr(event, "summary", "?")) for event in view.events]


# Folding.


def test_bookkeeping_events_are_not_in_the_view() -> None:
    assert slots(
        viewed(opened_event(), prompt(), user(), unknown_event(), status_event("resumed"))
    ) == [1, 2]


def test_forgotten_events_leave_and_the_summary_stands_at_its_offset() -> None:
    view = viewed(prompt(), user(), agent(), user(), condensation(1, 2), agent())
    assert slots(view) == [0, "S", 3, 5]
    assert view.events[1].id == f"{id_of(4)}-summary"


def test_a_condensation_without_summary_leaves_no_event() -> None:
    view = viewed(prompt(), user(), agent(), condensation(1, 2, summary=None))
    assert slots(view) == [0]


def test_a_summary_can_be_forgotten_like_anything_else() -> None:
    first = condensation(1)
    second = Condensation(
        timestamp=TIMESTAMP,
        forgotten_event_ids=(f"{id_of(2)}-summary", id_of(3)),
        summary="T",
        summary_offset=1,
    )
    assert slots(viewed(prompt(), user(), first, agent(), second)) == [0, "T"]


def test_an_offset_beyond_the_end_is_the_end() -> None:
    assert slots(viewed(user(), agent(), condensation(0, offset=99))) == [1, "S"]
    assert slots(viewed(user(), agent(), condensation(0, offset=-1))) == ["S", 1]


def test_a_request_for_condensation_stands_until_one_is_made() -> None:
    request = CondensationRequest(timestamp=TIMESTAMP)
    assert not viewed(user()).condensation_requested
    assert viewed(user(), request).condensation_requested
    assert not viewed(user(), request, condensation(0)).condensation_requested
    assert viewed(user(), condensation(0), request).condensation_requested


def test_a_duplicate_event_is_ignored() -> None:
    events = with_ids([user(), action(), observation(id_of(1))])
    assert slots(build_view([*events, *events])) == [0, 1, 2]


# What belongs together.


def test_a_call_is_shown_once_its_result_is_there() -> None:
    assert slots(viewed(user(), action())) == [0]
    assert slots(viewed(user(), action(), agent(), observation(id_of(1)))) == [0, 1, 2, 3]


def test_a_batch_is_shown_whole_or_not_at_all() -> None:
    batch: list[AnyEvent] = [action("look", "a"), action("look", "b")]
    assert slots(viewed(*batch, observation(id_of(0)))) == []
    results: list[AnyEvent] = [observation(id_of(1)), observation(id_of(0))]
    assert slots(viewed(*batch, *results)) == [0, 1, 2, 3]
    assert slots(viewed(*batch, *results, condensation(3, summary=None))) == []


def test_the_first_result_of_a_call_counts() -> None:
    results: list[AnyEvent] = [observation(id_of(0), words=words) for words in ("one", "two")]
    assert slots(viewed(action(), *results)) == [0, 1]


def test_a_result_before_its_call_is_ignored() -> None:
    assert slots(viewed(user(), observation(id_of(2)), action())) == [0]


def test_two_answers_under_one_id_are_two_batches() -> None:
    turns: list[AnyEvent] = [
        action(),
        observation(id_of(0)),
        action(),
        observation(id_of(2)),
        action(),
    ]
    assert slots(viewed(*turns)) == [0, 1, 2, 3]


def test_an_error_without_an_action_belongs_to_the_newest_call_that_could_not_be_read() -> None:
    turns: list[AnyEvent] = [
        action("fly", "a", "r-1", valid=False),
        error(None, "fly", "a"),
        action("fly", "a", "r-2", valid=False),
        action("fly", "a", "r-2", valid=False),
        error(None, "fly", "a"),
    ]
    assert slots(viewed(*turns)) == [0, 1]
    assert slots(viewed(*turns, error(None, "fly", "a"))) == [0, 1, 2, 3, 4, 5]


LOOP: list[AnyEvent] = [
    thinking(),
    observation(id_of(0)),
    action("look", "b", "r-2"),
    observation(id_of(2)),
]


def test_a_thinking_loop_is_shown_whole_or_not_at_all() -> None:
    assert slots(viewed(*LOOP, user())) == [0, 1, 2, 3, 4]
    assert slots(viewed(*LOOP, user(), condensation(2, 3, summary=None))) == [4]


@pytest.mark.parametrize("between", [user(), agent(), status_event("resumed"), unknown_event()])
def test_anything_but_calls_and_results_ends_a_thinking_loop(between: AnyEvent) -> None:
    other: list[AnyEvent] = [action("look", "b", "r-2"), observation(id_of(3))]
    view = viewed(*LOOP[:2], between, *other, condensation(3, 4, summary=None))
    assert slots(view)[:2] == [0, 1]


def test_thinking_blocks_begin_another_loop() -> None:
    other: list[AnyEvent] = [thinking("b", "r-2"), observation(id_of(2))]
    assert slots(viewed(*LOOP[:2], *other, condensation(2, 3, summary=None))) == [0, 1]


# Cuts.


def test_nothing_is_cut_between_a_call_and_its_result() -> None:
    batch: list[AnyEvent] = [action("look", "a"), action("look", "b")]
    view = viewed(user(), *batch, observation(id_of(1)), observation(id_of(2)), agent())
    assert tuple(view.cut_points) == (0, 1, 5, 6)


def test_nothing_is_cut_within_a_thinking_loop() -> None:
    view = viewed(*LOOP, thinking("c", "r-3"), observation(id_of(4)), user())
    assert tuple(view.cut_points) == (0, 4, 6, 7)


def test_recalled_context_stays_with_its_message() -> None:
    view = viewed(prompt(), user(), recall_event(), recall_event(), agent(), recall_event())
    assert tuple(view.cut_points) == (0, 1, 4, 5, 6)


def test_the_next_cut_and_the_last() -> None:
    cuts = viewed(user(), action(), observation(id_of(1)), agent()).cut_points
    assert tuple(cuts) == (0, 1, 3, 4)
    assert [cuts.at_or_after(index) for index in (-3, 0, 1, 2, 4, 5)] == [0, 0, 1, 3, 4, None]
    assert [cuts.at_or_before(index) for index in (-1, 0, 2, 3, 9)] == [0, 0, 1, 3, 4]


# Whatever the log holds.


def check_whole(view: View, entries: list[Entry]) -> None:
    events: list[ViewEvent] = view.events
    ids = Counter(event.id for event in events)
    assert set(ids.values()) <= {1}
    actions = [event.id for event in events if isinstance(event, ActionEvent)]
    answered = [view.groups.action_of[event.id] for event in events if isinstance(event, ANSWERS)]
    assert sorted(actions) == sorted(answered)
    for batch in batches(entries):
        assert batch <= ids.keys() or batch.isdisjoint(ids)
    for loop in loops(entries):
        assert loop <= ids.keys() or loop.isdisjoint(ids)


def batches(entries: list[Entry]) -> list[set[str]]:
    id_sets: list[set[str]] = []
    before: AnyEvent | None = None
    for event in (entry.event for entry in entries):
        if isinstance(event, ActionEvent):
            same = (
                isinstance(before, ActionEvent) and before.llm_response_id == event.llm_response_id
            )
            if not same:
                id_sets.append(set())
            id_sets[-1].add(event.id)
        before = event
    return id_sets


def loops(entries: list[Entry]) -> list[set[str]]:
    id_sets: list[set[str]] = []
    inside = False
    for event in (entry.event for entry in entries):
        if isinstance(event, ActionEvent) and event.thinking_blocks:
            id_sets.append(set())
            inside = True
        elif not isinstance(event, (ActionEvent, *ANSWERS)):
            inside = False
        if inside:
            id_sets[-1].add(event.id)
    return id_sets


@given(condensed_logs)
def test_a_view_is_whole_at_every_moment(log: list[Entry]) -> None:
    view = View()
    for nth, entry in enumerate(log):
        view.add_entries([entry])
        check_whole(view, log[: nth + 1])


@given(logs, st.data())
def test_a_view_cut_at_cut_points_keeps_whole_groups(log: list[Entry], data: st.DataObject) -> None:
    view = build_view(entry.event for entry in log)
    places = st.sampled_from(view.cut_points.indices)
    start, end = sorted((data.draw(places), data.draw(places)))
    before, gone, after = view.events[:start], view.events[start:end], view.events[end:]
    if not gone:
        return
    made = Condensation(
        id="c",
        timestamp=TIMESTAMP,
        forgotten_event_ids=tuple(event.id for event in gone),
        summary="S",
        summary_offset=view.summary_offset(start),
    )
    view.add(made)
    assert view.events == [*before, make_summary(made), *after]


@given(condensing_writers)
def test_a_log_without_forgotten_slots_gives_the_same_view(scribe: LogWriter) -> None:
    whole, part = View(), View()
    whole.add_entries(scribe.entries)
    part.add_entries(scribe.read_entries())
    assert part.events == whole.events
    assert part.cut_points == whole.cut_points
    assert part.prompt == whole.prompt

"""Discussions whose workflow was lost anywhere, and that are started again over their log."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.discussion.log_state import is_over
from perdure.agent.discussion.state import Contribution
from perdure.events.discussion import DiscussionEvent
from tests.agent.discussion.test_course import CONTRIBUTIONS, MODERATORS, PHASES, Course, spec_of


def recount(events: Sequence[DiscussionEvent]) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Return the counts of each tally, and those of the ballots that stand before it."""
    ballots: dict[str | None, dict[str, str]] = {}
    counted = []
    for event in events:
        if event.type != "VOTE":
            continue
        content: Any = event.content
        phase = event.meta.phase if event.meta else None
        if event.speaker == "system":
            counts = Counter(ballots.pop(phase, {}).values())
            counted.append((content["counts"], {it: counts[it] for it in content["counts"]}))
        else:
            ballots.setdefault(phase, {})[event.speaker] = content["ballot"]
    return counted


@pytest.mark.long
@given(PHASES, MODERATORS, CONTRIBUTIONS, st.binary(max_size=300), st.floats(0, 1))
def test_a_discussion_that_is_started_again_counts_what_people_said_before(
    phases: list[dict[str, Any]],
    moderator: dict[str, str],
    people: list[Contribution],
    choices: bytes,
    cut: float,
) -> None:
    left = iter(choices)
    named = [{"name": f"p{nth}", **phase} for nth, phase in enumerate(phases)]
    spec = spec_of(phases=named, moderator=moderator)
    lost = Course(spec, lambda most: next(left, 1) % most)
    lost.run(people)
    kept = lost.events[: 1 + round(cut * (len(lost.events) - 1))]
    again = Course(spec, lambda most: next(left, 1) % most, kept, lost.answers)
    again.run(people)
    assert again.events[: len(kept)] == kept
    assert is_over(again.events[-1])
    ids = [event.event_id for event in again.events]
    assert len(set(ids)) == len(ids)
    for events in (lost.events, again.events):
        assert all(counts == wanted for counts, wanted in recount(events))
    spoken = Counter(event.speaker for event in again.events if event.type == "SPEECH")
    assert {name: count for name, count in again.state.speeches.items() if count} == spoken
    if len(kept) == len(lost.events):
        assert again.events == lost.events
        assert (again.state.tally, again.state.people) == (lost.state.tally, lost.state.people)

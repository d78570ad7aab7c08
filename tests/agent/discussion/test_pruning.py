"""What the policies take out of sight."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.discussion.pruning import (
    BeforeSequence,
    ByCount,
    ByType,
    parse_policy,
    plan_automatic,
    plan_pruning,
)
from perdure.errors import Invalid
from perdure.events.discussion import DiscussionEventType

TYPES: list[DiscussionEventType] = ["SYSTEM", "INTENT", "SPEECH", "SUMMARY", "VOTE"]
VISIBLE: list[tuple[int, DiscussionEventType]] = list(enumerate(TYPES, 1))


def test_by_count_keeps_the_newest() -> None:
    assert plan_pruning(VISIBLE, ByCount(keep=2)) == [1, 2, 3]
    assert plan_pruning(VISIBLE, ByCount(keep=9)) == []


def test_by_type_keeps_the_types() -> None:
    assert plan_pruning(VISIBLE, ByType(keep_types=("SUMMARY", "SYSTEM"))) == [2, 3, 5]


def test_before_sequence_keeps_from_there_on() -> None:
    assert plan_pruning(VISIBLE, BeforeSequence(sequence=3)) == [1, 2]


@pytest.mark.parametrize(
    "policy",
    [
        {"type": "byType", "keepTypes": ["SUMMARY"]},
        {"type": "by_type", "keep_types": ["SUMMARY"]},
    ],
)
def test_a_policy_may_be_a_table_in_both_spellings(policy: dict[str, Any]) -> None:
    assert parse_policy(policy) == ByType(keep_types=("SUMMARY",))


@pytest.mark.parametrize("policy", [{}, {"type": "byLuck"}, {"type": "byCount", "keep": -1}])
def test_what_is_no_policy_is_refused(policy: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="no policy of pruning"):
        parse_policy(policy)


def test_up_to_500_events_nothing_is_taken_out() -> None:
    assert plan_automatic([(n, "SPEECH") for n in range(1, 501)]) == []
    assert plan_automatic([(n, "SPEECH") for n in range(1, 502)]) == list(range(1, 102))


@given(st.lists(st.sampled_from(TYPES), max_size=1500), st.integers(0, 600))
def test_no_summary_is_taken_out_and_the_newest_stay(
    types: list[DiscussionEventType], summaries: int
) -> None:
    all_types: list[DiscussionEventType] = [*["SUMMARY"] * summaries, *types]  # type: ignore[list-item]
    visible = list(enumerate(all_types, 1))
    taken = plan_automatic(visible)
    left = [item for item in visible if item[0] not in set(taken)]
    assert [item for item in left if item[1] == "SUMMARY"] == [
        item for item in visible if item[1] == "SUMMARY"
    ]
    others = [sequence for sequence, type_ in left if type_ != "SUMMARY"]
    assert not taken or (len(others) >= 100 and max(taken) < min(others))
    assert len(visible) <= 500 or len(left) <= 500 or len(others) <= 200

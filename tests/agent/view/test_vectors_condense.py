"""The condensations of OpenHands (openhands-sdk 1.58.2) on random histories."""

from typing import Any

import pytest

from perdure.agent.spec import SummaryCondenser
from perdure.agent.view.condense.condensation import CondensationInput
from perdure.agent.view.condense.plan import plan_condensation
from perdure.agent.view.condense.thresholds import CondenseReason, exceeds_threshold
from perdure.events.condensation import Condensation
from perdure.events.entry import Entry, make_entry
from tests.builders import ORIGIN, TIMESTAMP
from tests.openhands import load_cases, translate

CASES = load_cases("condense")

ASKED: dict[str | None, CondenseReason] = {"hard": "user", "soft": "size", None: "size"}
"""What they call a hard requirement is a request; ours says who asked."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_condensation_forgets_the_events_of_the_vectors(case: dict[str, Any]) -> None:
    expected = case["expect"]
    material = CondensationInput(entries(case))
    visible_ids = [event.id for event in material.view.events]
    assert visible_ids == case["view"]
    condenser = SummaryCondenser(max_size=case["max_size"], keep_first=case["keep_first"])
    requirement = expected["requirement"]
    assert (requirement == "hard") == material.view.condensation_requested
    wants = exceeds_threshold(condenser, len(visible_ids), 0)
    assert (requirement == "soft") == (wants and not material.view.condensation_requested)
    plan = plan_condensation(material.view, condenser, material.tokens, ASKED[requirement])
    if "forget" not in expected:
        assert plan is None
        return
    assert plan is not None
    assert plan.start == expected["offset"]
    assert visible_ids[plan.start : plan.end] == expected["forget"]
    check_condensed(material, material.make_condensation(plan, TIMESTAMP, "SUM"), expected)


def check_condensed(
    material: CondensationInput, made: Condensation, expected: dict[str, Any]
) -> None:
    """The summary stands where theirs is meant to stand, with all else around it.

    The offset that we write is another than theirs in cond-116, -162, -166, -202 and -264: there
    the log holds, before that place, what the view holds back, and an offset counts it. Theirs
    counts only what is shown, so that its summary comes to stand too early.
    """
    visible_ids = [event.id for event in material.view.events]
    material.view.add(made.model_copy(update={"id": "made"}))
    gone, at = set(expected["forget"]), expected["offset"]
    left = [item for item in visible_ids if item not in gone]
    assert [event.id for event in material.view.events] == [*left[:at], "made-summary", *left[at:]]


def entries(case: dict[str, Any]) -> list[Entry]:
    events = translate(case["events"])
    return [make_entry(seq, event, ORIGIN) for seq, event in enumerate(events)]


def test_the_cases_are_all_there() -> None:
    assert len(CASES) == 150
    assert sum("forget" in case["expect"] for case in CASES) == 123

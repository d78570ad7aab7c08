"""What OpenHands (openhands-sdk 1.58.2) forgets of random histories, and where its summary goes."""

from typing import Any

import pytest

from agent.condense.material import Material
from agent.condense.plan import Asked, plan_of
from agent.condense.wants import wants_condensing
from agent.spec import SummaryCondenser
from events.condensation import Condensation
from events.entry import Entry, entry
from tests.builders import ORIGIN, WHEN
from tests.openhands import cases, translated

CASES = cases("condense")

ASKED: dict[str | None, Asked] = {"hard": "user", "soft": "size", None: "size"}
"""What they call a hard requirement is a request; ours says who asked."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_is_forgotten_is_what_they_forget(case: dict[str, Any]) -> None:
    expected = case["expect"]
    material = Material(entries(case))
    shown = [event.id for event in material.view.events]
    assert shown == case["view"]
    condenser = SummaryCondenser(max_size=case["max_size"], keep_first=case["keep_first"])
    requirement = expected["requirement"]
    assert (requirement == "hard") == material.view.requested
    wants = wants_condensing(condenser, len(shown), 0)
    assert (requirement == "soft") == (wants and not material.view.requested)
    plan = plan_of(material.view, condenser, material.sizes, ASKED[requirement])
    if "forget" not in expected:
        assert plan is None
        return
    assert plan is not None
    assert plan.start == expected["offset"]
    assert shown[plan.start : plan.end] == expected["forget"]
    check_condensed(material, material.condensation(plan, WHEN, "SUM"), expected)


def check_condensed(material: Material, made: Condensation, expected: dict[str, Any]) -> None:
    """The summary stands where theirs is meant to stand, with all else around it.

    The offset that we write is another than theirs in cond-116, -162, -166, -202 and -264: there
    the log holds, before that place, what the view holds back, and an offset counts it. Theirs
    counts only what is shown, so that its summary comes to stand too early.
    """
    shown = [event.id for event in material.view.events]
    material.view.add(made.model_copy(update={"id": "made"}))
    gone, at = set(expected["forget"]), expected["offset"]
    left = [one for one in shown if one not in gone]
    assert [event.id for event in material.view.events] == [*left[:at], "made-summary", *left[at:]]


def entries(case: dict[str, Any]) -> list[Entry]:
    events = translated(case["events"])
    return [entry(seq, event, ORIGIN) for seq, event in enumerate(events)]


def test_the_cases_are_all_there() -> None:
    assert len(CASES) == 150
    assert sum("forget" in case["expect"] for case in CASES) == 123

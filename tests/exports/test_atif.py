"""ATIF steps and their totals."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings

from perdure.events.entry import Entry
from perdure.exports.atif import ATIF
from tests.builders import agent, entries, user
from tests.exports.checks import document, trajectory_faults
from tests.exports.sample_log import ABOUT, CHILD, EXTERNAL_IMAGE, PIXEL, sample_entries
from tests.logs import condensed_logs


def trajectory(log: list[Entry]) -> Any:
    return document(ATIF, ABOUT, log)


def step(atif: Any, seq: int) -> Any:
    return next(item for item in atif["steps"] if item["extra"]["seq"] == seq)


@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(log=condensed_logs)
def test_every_result_has_its_call_and_the_totals_add_up(log: list[Entry]) -> None:
    assert trajectory_faults(trajectory(log)) == []


def test_the_checker_of_trajectories_finds_faults() -> None:
    atif = trajectory(sample_entries())
    assert trajectory_faults(atif) == []
    spoiled = json.loads(json.dumps(atif))
    spoiled["final_metrics"]["total_cost_usd"] += 1
    spoiled["steps"][2]["observation"]["results"].pop()
    assert len(trajectory_faults(spoiled)) == 3


def test_usage_beside_the_steps_is_summed_by_purpose() -> None:
    final = trajectory(sample_entries())["final_metrics"]
    assert (final["total_cost_usd"], final["extra"]["cost_usd_with_all_beside"]) == (1.5, 2.125)
    assert final["extra"]["beside"].keys() == {"condense", "delegate"}


def test_a_condensation_stands_where_it_took_place_with_its_summary() -> None:
    atif = trajectory(sample_entries())
    condensed = step(atif, 14)
    assert condensed["source"] == "system"
    assert "It looked around." in condensed["message"]
    assert len(condensed["extra"]["forgotten_event_ids"]) == 2
    assert step(atif, 5)["tool_calls"][0]["tool_call_id"] == "call_1"


def test_an_answer_that_was_cut_off_is_marked() -> None:
    cut = agent("Half an").model_copy(update={"truncated": True})
    atif = trajectory(entries([user(), cut, user(), agent("Done.")]))
    assert step(atif, 1)["extra"]["truncated"] is True
    assert "truncated" not in step(atif, 3)["extra"]


def test_the_outcome_of_a_call_is_beside_its_result() -> None:
    atif = trajectory(sample_entries())
    outcomes = [result.get("extra") for result in step(atif, 5)["observation"]["results"]]
    assert outcomes == [None, {"rejected": True}, {"error": "unknown_tool"}]
    assert step(atif, 30)["observation"]["results"][0]["extra"] == {"recorded": False}
    calls = step(atif, 5)["tool_calls"]
    assert calls[1]["extra"] == {"risk": "HIGH"}
    assert (calls[2]["arguments"], calls[2]["extra"]) == ({}, {"raw_arguments": "{broken"})


def test_a_delegated_conversation_is_a_file_beside_this_one() -> None:
    [result] = step(trajectory(sample_entries()), 15)["observation"]["results"]
    [other] = result["subagent_trajectory_ref"]
    assert other == {"trajectory_path": f"{CHILD}.json", "session_id": CHILD}


def test_steps_of_the_parent_conversation_are_marked() -> None:
    steps = trajectory(sample_entries())["steps"]
    marked = [step["extra"]["seq"] for step in steps if step.get("is_copied_context")]
    assert marked == [2, 3]


def test_images_are_parts_of_a_message() -> None:
    content = step(trajectory(sample_entries()), 3)["message"]
    pictures = [item["source"] for item in content if item["type"] == "image"]
    assert [picture["path"] for picture in pictures] == [PIXEL, EXTERNAL_IMAGE]
    assert [picture["media_type"] for picture in pictures] == ["image/png", "image/jpeg"]


def test_unknown_events_are_exported_as_they_are() -> None:
    raw_step = step(trajectory(sample_entries()), 19)
    assert (raw_step["source"], raw_step["extra"]["raw"]["exit"]) == ("system", 1)


def test_events_that_are_missing_are_named() -> None:
    log = [entry for entry in sample_entries() if entry.seq not in (9, 12, 13)]
    assert trajectory(log)["notes"] == "These events cannot be read: 9, 12 to 13."

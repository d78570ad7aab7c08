"""The `.eval` log: a zip of JSON that is one sample."""

import io
import json
import zipfile
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings

from events.entry import Entry
from exports.format import About
from exports.inspect_log import INSPECT
from tests.builders import CONVERSATION
from tests.exports.checks import exported, faults_of_sample
from tests.exports.story import ABOUT, story
from tests.logs import condensed_logs


def opened(log: list[Entry], about: About = ABOUT) -> tuple[Any, Any]:
    """The header and the sample."""
    archive = zipfile.ZipFile(io.BytesIO(exported(INSPECT, about, log)[""]))
    assert archive.testzip() is None
    sample = archive.read(f"samples/{CONVERSATION}_epoch_1.json")
    return json.loads(archive.read("header.json")), json.loads(sample)


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(log=condensed_logs)
def test_every_call_has_its_result_and_the_usage_is_that_of_the_log(log: list[Entry]) -> None:
    assert faults_of_sample(*opened(log)) == []


def test_a_check_finds_what_it_looks_for() -> None:
    header, sample = opened(story())
    sample["messages"].pop()
    sample["model_usage"].clear()
    assert len(faults_of_sample(header, sample)) == 2


def test_a_sample_tells_what_was_asked_what_it_took_and_what_else_happened() -> None:
    header, sample = opened(story())
    assert (header["status"], header["eval"]["task"]) == ("success", "A <story> & more")
    assert (sample["input"], sample["metadata"]["status"]) == ("Look at this.", "finished")
    assert sum(one["total_cost"] for one in sample["model_usage"].values()) == 2.125
    assert "Condensation" in {one["data"]["kind"] for one in sample["events"]}
    assert sample["output"]["choices"][0]["message"]["tool_calls"][0]["id"] == "call_10"


def test_a_conversation_that_failed_is_an_error() -> None:
    header, sample = opened(story(), replace(ABOUT, status="error", reason="max_budget"))
    assert (header["status"], header["error"]["message"]) == ("error", "max_budget")
    assert sample["error"]["message"] == "max_budget"


def test_errors_of_calls_are_told_in_their_terms() -> None:
    _, sample = opened(story())
    kinds = [one["error"]["type"] for one in sample["messages"] if "error" in one]
    assert kinds == ["approval", "parsing", "cancelled", "unknown"]

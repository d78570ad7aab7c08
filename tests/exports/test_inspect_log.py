"""The `.eval` log: a zip of JSON that is one sample."""

import io
import json
import zipfile
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings

from perdure.events.entry import Entry
from perdure.exports.format import ExportMetadata
from perdure.exports.inspect_log import INSPECT
from tests.builders import CONVERSATION
from tests.exports.checks import export_files, sample_faults
from tests.exports.sample_log import ABOUT, sample_entries
from tests.logs import condensed_logs


def read_log(log: list[Entry], about: ExportMetadata = ABOUT) -> tuple[Any, Any]:
    """Return the header and the sample."""
    archive = zipfile.ZipFile(io.BytesIO(export_files(INSPECT, about, log)[""]))
    assert archive.testzip() is None
    sample = archive.read(f"samples/{CONVERSATION}_epoch_1.json")
    return json.loads(archive.read("header.json")), json.loads(sample)


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(log=condensed_logs)
def test_every_call_has_its_result_and_the_usage_is_that_of_the_log(log: list[Entry]) -> None:
    assert sample_faults(*read_log(log)) == []


def test_the_checker_of_samples_finds_faults() -> None:
    header, sample = read_log(sample_entries())
    sample["messages"].pop()
    sample["model_usage"].clear()
    assert len(sample_faults(header, sample)) == 2


def test_a_sample_has_its_input_usage_and_other_events() -> None:
    header, sample = read_log(sample_entries())
    assert (header["status"], header["eval"]["task"]) == ("success", "A <story> & more")
    assert (sample["input"], sample["metadata"]["status"]) == ("Look at this.", "finished")
    assert sum(item["total_cost"] for item in sample["model_usage"].values()) == 2.125
    assert "Condensation" in {event["data"]["kind"] for event in sample["events"]}
    assert sample["output"]["choices"][0]["message"]["tool_calls"][0]["id"] == "call_10"


def test_a_conversation_that_failed_is_an_error() -> None:
    header, sample = read_log(sample_entries(), replace(ABOUT, status="error", reason="max_budget"))
    assert (header["status"], header["error"]["message"]) == ("error", "max_budget")
    assert sample["error"]["message"] == "max_budget"


def test_errors_of_calls_have_inspects_types() -> None:
    _, sample = read_log(sample_entries())
    kinds = [message["error"]["type"] for message in sample["messages"] if "error" in message]
    assert kinds == ["approval", "parsing", "cancelled", "unknown"]

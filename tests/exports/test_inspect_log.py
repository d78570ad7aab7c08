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
from tests.builders import CONVERSATION, action, id_of, observation, prompt, user
from tests.exports.checks import export_files, sample_faults
from tests.exports.sample_log import ABOUT, entries_of, sample_entries
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
    notes = [event["data"]["kind"] for event in sample["events"] if event["event"] == "info"]
    assert "Condensation" in notes
    assert sample["output"]["choices"][0]["message"]["tool_calls"][0]["id"] == "call_10"


def test_a_conversation_that_failed_is_an_error() -> None:
    header, sample = read_log(sample_entries(), replace(ABOUT, status="error", reason="max_budget"))
    assert (header["status"], header["error"]["message"]) == ("error", "max_budget")
    assert sample["error"]["message"] == "max_budget"


def test_errors_of_calls_have_inspects_types() -> None:
    _, sample = read_log(sample_entries())
    kinds = [message["error"]["type"] for message in sample["messages"] if "error" in message]
    assert kinds == ["approval", "parsing", "cancelled", "unknown"]


def events_of(sample: Any, kind: str) -> list[Any]:
    return [event for event in sample["events"] if event["event"] == kind]


def seen_texts(sample: Any, event: Any) -> str:
    """Return what the model saw at a call, as JSON."""
    pool = sample["events_data"]["messages"]
    return json.dumps([pool[at] for first, end in event["input_refs"] for at in range(first, end)])


def test_the_events_of_a_sample_are_its_calls_with_input_output_usage_and_times() -> None:
    _, sample = read_log(sample_entries())
    answers = events_of(sample, "model")
    replies = [item for item in sample["messages"] if item["role"] == "assistant"]
    assert [item["output"]["choices"][0]["message"]["id"] for item in answers] == [
        item["id"] for item in replies
    ]
    first = answers[0]
    assert first["output"]["usage"]["total_tokens"] == 120
    assert first["output"]["choices"][0]["stop_reason"] == "tool_calls"
    assert "Look at this." in seen_texts(sample, first)
    assert first["timestamp"] <= first["completed"]
    results = {item["tool_call_id"]: item for item in sample["messages"] if item["role"] == "tool"}
    tools = events_of(sample, "tool")
    assert [item["id"] for item in tools] == list(results)
    assert [item.get("error") for item in tools] == [item.get("error") for item in results.values()]
    assert sample["events"][0]["event"] == "sample_init"


def test_the_input_of_a_model_call_is_without_what_was_condensed_before() -> None:
    _, sample = read_log(sample_entries())
    before, after = events_of(sample, "model")[0:2]
    assert len(events_of(sample, "compaction")) == 1
    assert "It looked around." not in seen_texts(sample, before)
    assert "It looked around." in seen_texts(sample, after)
    assert "seen <secret:TOKEN>" not in seen_texts(sample, after)
    assert "seen <secret:TOKEN>" in json.dumps(sample["messages"])


def test_long_texts_are_attachments_and_events_grow_with_the_conversation() -> None:
    def size(turns: int) -> int:
        text = "x" * 5000
        told = [
            prompt(),
            *(
                item
                for at in range(turns)
                for item in (
                    user(f"{at} {text}"),
                    action("look", f"c{at}", f"r{at}"),
                    observation(id_of(0), "look", "seen", f"c{at}"),
                )
            ),
        ]
        _, sample = read_log(entries_of((event, None) for event in told))
        assert all(len(value) > 100 for value in sample["attachments"].values())
        return len(json.dumps({name: sample[name] for name in ("events", "events_data")}))

    assert size(200) < 12 * size(20)
    assert size(20) < 20 * 5000

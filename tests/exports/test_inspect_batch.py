"""The `.eval` log of a whole batch."""

import io
import json
import tracemalloc
import zipfile
from typing import Any

import pytest

from perdure.exports.format import ExportMetadata
from perdure.exports.inspect_log import MAX_SUMMARY_CHARS, InspectLog
from perdure.exports.inspect_sample import SampleMetadata
from tests.exports.batch import EPOCHS, NAMES, batch_log, batch_summary, results
from tests.exports.checks import sample_faults
from tests.exports.sample_log import sample_entries

HEADER = {"status": "success", "eval": {"task": "t"}, "results": {"total_samples": 0}}


def read_zip(body: bytes) -> dict[str, Any]:
    archive = zipfile.ZipFile(io.BytesIO(body))
    assert archive.testzip() is None
    return {name: json.loads(archive.read(name)) for name in archive.namelist()}


@pytest.fixture(scope="module")
def files() -> dict[str, Any]:
    return read_zip(batch_log())


def sample(files: dict[str, Any], name: str, epoch: int = 1) -> Any:
    return files[f"samples/{name}_epoch_{epoch}.json"]


def test_every_attempt_that_counts_is_a_sample_with_all_its_conversation(
    files: dict[str, Any],
) -> None:
    final = [(result.id, each.epoch + 1) for result in results() for each in result.final_attempts]
    samples = [item for name, item in files.items() if name.startswith("samples/")]
    assert [(item["id"], item["epoch"]) for item in samples] == final
    for item in samples:
        alone = {"stats": {"model_usage": item["model_usage"]}}
        assert sample_faults(alone, item) == []
    assert len(sample(files, "a")["messages"]) > 10
    assert sample(files, "e")["input"] == "What is 1 + 1?"


def test_a_sample_has_its_scores_targets_and_metadata(files: dict[str, Any]) -> None:
    assert sample(files, "a")["scores"]["exact"]["value"] == "C"
    second = sample(files, "b/ü <1>")
    assert second["scores"]["includes"]["value"] == {"right": True, "style": 0.25}
    assert (sample(files, "c")["target"], second["target"]) == (["2", "two"], "2")
    assert second["metadata"]["nested"] == {"n": [1]}
    assert (second["total_time"], second["turn_count"]) == (2.0, 3)


def test_failures_are_errors_and_earlier_ones_are_retried(files: dict[str, Any]) -> None:
    lost = sample(files, "c")
    assert lost["error"]["message"] == "configuration: auth: Set a key."
    assert "scores" not in lost
    retried = sample(files, "b/ü <1>")
    assert [retry["message"] for retry in retried["error_retries"]] == [
        "infrastructure: timeout: No answer."
    ]
    assert "error" not in retried


def test_a_limit_has_inspects_type_and_is_no_error(files: dict[str, Any]) -> None:
    limited = sample(files, "b/ü <1>", 2)
    assert limited["limit"] == {"type": "message", "limit": 7, "reason": "max_iterations"}
    assert limited["scores"]["exact"]["value"] is False
    assert "error" not in limited
    assert sample(files, "d", 2)["limit"] == {"type": "time", "limit": 60, "reason": "deadline"}


def test_the_header_equals_our_summary(files: dict[str, Any]) -> None:
    header, ours = files["header.json"], batch_summary()
    assert header["status"] == "started", "an epoch has no result yet"
    assert header["results"]["total_samples"] == ours.counts.expected == EPOCHS * len(NAMES)
    assert header["results"]["completed_samples"] == ours.counts.done == 8
    scores = {
        (score["scorer"], score["name"], score["reducer"]): score
        for score in header["results"]["scores"]
    }
    mean, estimate = scores["exact", "exact", "mean"], ours.score("exact")
    assert estimate is not None
    assert mean["metrics"]["mean"]["value"] == estimate.mean
    assert mean["metrics"]["stderr"]["value"] == estimate.standard_error
    assert (mean["scored_samples"], mean["unscored_samples"]) == (5, 0)
    assert "accuracy" in scores["exact", "exact", "pass_at_2"]["metrics"]
    assert ("includes", "style", "mean") in scores
    assert header["eval"]["dataset"]["sample_ids"] == list(NAMES)
    assert files["_journal/start.json"]["eval"] == header["eval"]


def test_usage_adds_up_and_includes_grading_and_lost_logs(files: dict[str, Any]) -> None:
    assert sample(files, "a")["model_usage"]["judge"]["total_cost"] == 0.5
    unread = sample(files, "c")["model_usage"]
    assert unread == {"openai/gpt-x": unread["openai/gpt-x"]}
    assert unread["openai/gpt-x"]["total_cost"] == 0.5
    spent: dict[str, float] = {}
    for name, item in files.items():
        for model, usage in item["model_usage"].items() if name.startswith("samples/") else ():
            spent[model] = spent.get(model, 0) + usage["total_cost"]
    usage = files["header.json"]["stats"]["model_usage"]
    assert {model: item["total_cost"] for model, item in usage.items()} == pytest.approx(spent)


def test_the_summary_of_a_sample_is_short(files: dict[str, Any]) -> None:
    summaries = files["summaries.json"]
    assert len(summaries) == sum(len(result.final_attempts) for result in results())
    assert [summary["retries"] for summary in summaries if "retries" in summary] == [1]
    assert [summary["limit"] for summary in summaries if "limit" in summary] == ["message", "time"]
    assert {len(summary["metadata"]["long"]) for summary in summaries} == {MAX_SUMMARY_CHARS}
    counted = {(summary["id"], summary["epoch"]): summary["message_count"] for summary in summaries}
    assert counted["a", 1] == len(sample(files, "a")["messages"])
    assert counted["c", 1] == 0


def test_a_batch_without_results_is_a_valid_log() -> None:
    files = read_zip(b"".join(InspectLog().write_end(HEADER)))
    assert files["summaries.json"] == []
    assert files["header.json"]["eval"] == {"created": "1970-01-01T00:00:00Z", "task": "t"}


@pytest.mark.longest
def test_a_written_sample_leaves_memory() -> None:
    made, log = InspectLog(), sample_entries()

    def write(first: int, end: int) -> int:
        for number in range(first, end):
            for piece in made.write_sample(
                ExportMetadata("c"), SampleMetadata(f"sample-{number}"), log
            ):
                assert len(piece) < 1024 * 1024
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = write(0, 100)
        assert write(100, 200) - before < 100 * 2000
    finally:
        tracemalloc.stop()
    end = b"".join(made.write_end(HEADER))
    assert end.count(b"samples/sample-") == 200, "the directory of the zip names each"

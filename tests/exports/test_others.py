"""Exports are read by the code of others: `make validators` installs it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perdure.events.entry import Entry, parse_entry
from perdure.exports.atif import ATIF
from perdure.exports.inspect_log import INSPECT
from perdure.exports.openai_chat import OPENAI
from tests.exports import batch
from tests.exports.checks import export_files
from tests.exports.sample_log import ABOUT, sample_entries
from tests.exports.validators_environment import VALIDATORS

pytestmark = pytest.mark.skipif(
    not VALIDATORS.ready(), reason="NOT CHECKED: no validators are installed: `make validators`"
)

READER = Path(__file__).with_name("validators_reader.py")
GOLDEN = Path(__file__).parents[1] / "golden" / "events"


def logs() -> dict[str, list[Entry]]:
    """The story as far as it went at each of its events, and one with an event of each kind."""
    whole = sample_entries()
    begun = {f"{end:02}": whole[:end] for end in range(len(whole) + 1)}
    bodies = [path.read_bytes() for path in sorted(GOLDEN.glob("*.json"))]
    golden = [parse_entry(nth, body) for nth, body in enumerate(bodies, 4)]
    return {**begun, "golden": [*whole[:4], *golden]}


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the readers' answers for each file, by its name."""
    folder, taken = tmp_path_factory.mktemp("exported"), tmp_path_factory.mktemp("read") / "read"
    for name, log in logs().items():
        for made in (ATIF, OPENAI, INSPECT):
            body = export_files(made, ABOUT, log).get("", b"")
            if body:
                (folder / f"{name}{made.suffix}").write_bytes(body)
    (folder / "batch.eval").write_bytes(batch.batch_log())
    alone = {"PATH": os.environ["PATH"], "HOME": str(taken.parent)}
    command = [str(VALIDATORS.python), "-I", str(READER), str(folder), str(taken)]
    done = subprocess.run(
        command, cwd=taken.parent, env=alone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(taken.read_text())
    return answers


@pytest.mark.long
def test_trajectories_are_valid_atif_and_complete(read: dict[str, Any]) -> None:
    for name, log in logs().items():
        [body] = export_files(ATIF, ABOUT, log).values()
        assert read[f"{name}.json"] == json.loads(body)


def test_examples_are_accepted_for_fine_tuning(read: dict[str, Any]) -> None:
    learned = [name for name in read if name.endswith(".jsonl")]
    assert len(learned) > 20
    assert {read[name][-1] for name in learned} == {"assistant"}


def test_inspect_reads_the_conversation_as_a_sample(read: dict[str, Any]) -> None:
    [whole] = [read[name] for name in read if name == f"{len(sample_entries()):02}.eval"]
    assert (whole["status"], whole["cost"]) == ("success", 2.125)
    assert (whole["roles"][0], whole["counted"]) == ("system", len(whole["roles"]))
    assert whole["input"] == ["Look at this.", "Look at this."]
    assert "Condensation" in whole["kinds"]
    assert {"sample_init", "model", "tool", "compaction", "info"} <= set(whole["events"])
    assert len(whole["inputs"]) == whole["roles"].count("assistant")
    assert "Look at this." in "".join(whole["inputs"][0])
    assert "It looked around." in "".join(whole["inputs"][1])
    assert not whole["unresolved"]


def test_inspect_reads_a_batch_and_computes_our_scores(read: dict[str, Any]) -> None:
    whole, ours = read["batch.eval"], batch.batch_summary()
    final = [(result.id, each) for result in batch.results() for each in result.final_attempts]
    names = sorted([name, each.epoch + 1] for name, each in final)
    assert sorted(whole["samples"]) == sorted(whole["summaries"]) == names
    assert (whole["status"], whole["expected"]) == ("started", ours.counts.expected)
    assert whole["completed"] == whole["without_error"] == ours.counts.done
    assert (whole["retries"], sorted(whole["limits"])) == (1, ["message", "time"])
    log_metrics = {(scorer, name, by): metrics for scorer, name, by, metrics in whole["told"]}
    assert len(log_metrics) == sum(len(measure.estimates) for measure in ours.measures)
    estimate = ours.score("exact")
    assert estimate is not None
    computed = whole["computed"]["exact"]
    assert (
        computed["mean"]
        == pytest.approx(estimate.mean)
        == log_metrics["exact", "exact", "mean"]["mean"]
    )
    assert computed["stderr"] == pytest.approx(estimate.standard_error)
    assert log_metrics["exact", "exact", "mean"]["stderr"] == estimate.standard_error

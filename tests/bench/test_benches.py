"""The benches themselves, with small numbers: they run, and their reports are whole."""

import json
import subprocess
import sys
from typing import Any

import pytest

from bench.processes import ROOT, measured_environment
from tests.exports.validators_environment import VALIDATORS

SIDES = (" before", "")
"""What follows the names of two checkouts that are compared."""

pytestmark = [pytest.mark.longest, pytest.mark.timeout(600)]


def run_bench(command: str) -> dict[str, Any]:
    result = subprocess.run(
        [sys.executable, "-m", *f"bench.{command} -o json".split()],
        cwd=ROOT,
        env=measured_environment({"PYTHONDONTWRITEBYTECODE": "1"}),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_a_step_is_measured_between_two_floors_and_beside_another_checkout() -> None:
    report = run_bench(f"step --rounds 2 --steps 11 --only s3+http+brief --against {ROOT}")
    names = ["s3+http+brief before", "s3+http+brief"]
    assert list(report["medians"]) == ["floor", *names]
    assert [trial["name"] for trial in report["trials"]] == [*names, *names[::-1]]
    for trial in report["trials"]:
        assert trial["row"]["own_cpu_ms"] > trial["floor_before"]["own_cpu_ms"] > 0
        assert trial["row"]["store_cpu_ms"] > 0 == trial["floor_after"]["store_cpu_ms"]
        assert trial["row"]["history_events"] > 1
    assert list(report["before_ratios"]) == names[1:]
    assert report["floor_ratios"]["s3+http+brief"]["cpu"]["paired"]["median"] > 0


def test_an_answer_is_measured_with_its_store_operations() -> None:
    report = run_bench("one --rounds 1 --count 4 --only files")
    assert list(report["medians"]) == ["floor", "floor of 1 activity", "files"]
    # the question, the opening, the spec, the prompt and the answer
    assert report["store_operations"]["create events/N.json"] == 5


def test_many_conversations_are_measured_on_each_number_of_workers() -> None:
    report = run_bench("many --rounds 1 --conversations 2 3 --workers 1 2 --steps 4 --only files")
    sizes = [(size["conversations"], size["workers"]) for size in report["sizes"]]
    assert sizes == [(2, 1), (3, 1), (2, 2), (3, 2)]
    for size in report["sizes"]:
        for row in size["medians"].values():
            assert 0 < row["p50_ms"] <= row["p95_ms"]
            assert row["steps_per_s"] > 0
            assert row["worker_mb"] > 10


def test_the_drift_of_a_step_is_measured_with_a_condenser_at_work() -> None:
    report = run_bench("drift --rounds 2 --steps 60 --only files files+condenser")
    for shape in report["shapes"].values():
        assert [len(run["cpu_ms"]) for run in shape["runs"]] == [10, 10]
        assert all(tenth > 0 for tenth in shape["tenths"]["own_cpu_ms"])
        assert shape["drift"]["cpu_ms"]["low"] <= shape["drift"]["cpu_ms"]["high"]


def test_a_worker_start_is_measured_beside_another_checkout() -> None:
    report = run_bench(f"worker_start --rounds 1 --only files --against {ROOT}")
    ways = [f"{way} files{side}" for way in ("module", "machine", "command") for side in SIDES]
    medians = report["medians"]
    assert list(medians) == ways
    for row in medians.values():
        assert 0 < row["polls_cpu_ms"] < row["answer_cpu_ms"] <= row["quiet_cpu_ms"]
        assert row["answer_mb"] > 10
    # 640 writes to an unknown store, and the parser of the command line
    assert medians["machine files"]["polls_cpu_ms"] > medians["module files"]["polls_cpu_ms"]
    assert medians["command files"]["polls_cpu_ms"] > medians["module files"]["polls_cpu_ms"]


def test_a_batch_is_measured_beside_its_conversations() -> None:
    overhead = run_bench("batch overhead --rounds 1 --samples 4 --concurrency 2")["overhead"]
    assert list(overhead["scripts"]) == ["steps", "word"]
    for compared in overhead["scripts"].values():
        assert compared["per_sample"]["batch"]["own_cpu_ms"] > 0
        assert compared["ratios"]["cpu_ms"]["paired"]["median"] > 0


@pytest.mark.skipif(not VALIDATORS.ready(), reason="NOT CHECKED: no Inspect: `make validators`")
def test_an_agent_in_a_batch_is_measured_and_killed_beside_inspect() -> None:
    report = run_bench("inspect_side agent --rounds 1 --kills 1 --samples 4 --at-a-time 2")
    agent = report["agent"]
    sides = (
        ["inspect", "perdure"] if agent["not_checked"] else ["inspect", "checkpoints", "perdure"]
    )
    assert list(agent["undisturbed"]) == list(agent["killed"]) == sides
    for row in agent["undisturbed"].values():
        assert row["cpu_ms_a_call"] > 0
    assert agent["killed"]["perdure"]["tool_calls_again"] == 0


@pytest.mark.longest
def test_memories_are_measured_and_killed_ingestions_lose_and_double_nothing() -> None:
    report = run_bench("memory scale ingestion --users 3 --memories 60 --searches 50 --turns 150")
    scale, ingestion = report["scale"], report["ingestion"]
    assert scale["memories"] == 180
    assert scale["search"]["results"] > 0
    assert scale["search"]["results of another user"] == 0
    lost = scale["search without its index"]
    assert lost["same results"] == lost["indexes"] == 3
    assert (ingestion["memories"], ingestion["missing"], ingestion["twice"]) == (151, 0, 0)
    assert ingestion["kills"] > 0
    assert ingestion["last turn is found"]

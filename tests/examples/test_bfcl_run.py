"""The benchmark's conversations through Temporal, S3 and litellm, with workers that are killed."""

from pathlib import Path

import pytest

pytest.importorskip(
    "bfcl_eval", reason="bfcl-eval is missing: pip install --no-deps bfcl-eval mpmath"
)

from examples.bfcl.dataset import samples
from examples.bfcl.run import Plan, Verdict, run


@pytest.mark.timeout(300)  # each new worker probes the store, which takes seconds of a busy machine
async def test_conversations_pass_while_workers_are_killed_again_and_again(
    tmp_path: Path,
) -> None:
    chosen = [samples()[f"multi_turn_base_{number}"] for number in (0, 109)]
    verdicts: list[Verdict] = []
    plan = Plan(chosen, concurrency=2, workers=2, kill_every=0.1)
    report = await run(plan, tmp_path, verdicts.append)
    assert {verdict.sample.id: verdict.failures for verdict in verdicts} == {
        "multi_turn_base_0": [],
        "multi_turn_base_109": [],
    }
    assert report.failed == 0
    assert report.kills > 0

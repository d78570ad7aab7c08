"""Alerts and the dashboard ask for metrics that there are, in queries that Prometheus takes."""

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from perdure.embedded.temporal import TemporalServer
from perdure.telemetry.metrics import KINDS
from tests.deploy.environment import find_promtool
from tests.deploy.tools import FOLDER, ask_tool, needs_tools
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.operations.conftest import harness, temporal
from tests.workers import worker_process

__all__ = ["harness", "temporal"]

RULES = FOLDER / "prometheus" / "rules.yaml"
DASHBOARD = json.loads((FOLDER / "grafana" / "dashboard.json").read_text())
NAME = re.compile(r"\b((?:perdure|gen_ai|temporal)_\w+?)(_bucket|_count|_sum)?(?=[\s{\[)])")

needs_promtool = pytest.mark.skipif(
    find_promtool() is None, reason="NOT CHECKED: there is no promtool: `make deploy-check`"
)


def alert_queries() -> Iterator[str]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def panel_queries() -> Iterator[str]:
    """Yield the queries of the panels, with an interval where Grafana puts one."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"].replace("$__rate_interval", "5m")


QUERIES = [*alert_queries(), *panel_queries()]


def find_metrics(query: str) -> set[tuple[str, str]]:
    """Return the metrics of a query, each with the suffix of the part of a histogram."""
    without_labels = re.sub(r"by \([^)]*\)", "", query)
    return {(name, suffix) for name, suffix in NAME.findall(without_labels)}


def own_metrics() -> dict[str, str]:
    """Return the kinds of the metrics of ours, by their names in Prometheus."""
    return {name.replace(".", "_"): kind.kind for name, kind in KINDS.items()}


def test_every_metric_of_ours_is_one_that_is_exported_in_the_part_that_its_kind_has() -> None:
    own, asked = own_metrics(), set[str]()
    for query in QUERIES:
        metrics = find_metrics(query)
        assert metrics, query
        for name, suffix in metrics:
            if not name.startswith("temporal_"):
                assert name in own, query
                assert ("histogram" in own[name]) == bool(suffix), query
                asked.add(name)
    assert asked == own.keys(), "each metric is shown"


@pytest.mark.long
async def test_every_metric_of_temporals_is_one_that_a_worker_offers(
    harness: ConversationHarness, temporal_server: TemporalServer, unused_tcp_port: int
) -> None:
    asked = {name for query in QUERIES for name, _ in find_metrics(query) if "temporal" in name}
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
        "PERDURE_METRICS_ADDRESS": f"127.0.0.1:{unused_tcp_port}",
    }
    spec = harness.spec(tool_call_answer(("add", {"a": 1, "b": 2})), text_answer("3"))
    with worker_process(environment, harness.folder / "worker.log"):
        await (await harness.client.start("add", spec)).wait_for_turn()
        await asyncio.sleep(0.5)
        async with httpx.AsyncClient() as http:
            text = (await http.get(f"http://127.0.0.1:{unused_tcp_port}/metrics")).text
    offered = {family.name for family in text_string_to_metric_families(text)}
    assert len(asked) >= 5
    assert asked <= offered


def test_panels_have_names_places_and_numbers_of_their_own() -> None:
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = set[tuple[int, int]]()
    for panel in panels:
        place = panel["gridPos"]
        xs, ys = (
            range(place["x"], place["x"] + place["w"]),
            range(place["y"], place["y"] + place["h"]),
        )
        covered = {(x, y) for x in xs for y in ys}
        assert not covered & cells, panel["title"]
        assert max(xs) < 24
        cells |= covered
    [source] = DASHBOARD["templating"]["list"]
    assert all(
        it["datasource"]["uid"] == f"${{{source['name']}}}" for it in panels if "datasource" in it
    )


@needs_tools
def test_the_queries_of_the_panels_are_promql() -> None:
    assert len(ask_tool("queries", given=QUERIES)) == len(QUERIES)


@needs_promtool
@pytest.mark.parametrize(
    "words",
    [("check", "rules", "--lint-fatal", str(RULES)), ("test", "rules", "rules.test.yaml")],
    ids=["check", "test"],
)
def test_promtool_accepts_the_alerts_and_their_tests(words: tuple[str, ...]) -> None:
    done = run_promtool(*words)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_the_tests_of_the_alerts_notice_an_alert_that_has_changed(tmp_path: Path) -> None:
    tests = (RULES.parent / "rules.test.yaml").read_text()
    (tmp_path / "rules.test.yaml").write_text(tests)
    changed = RULES.read_text().replace("> 0.2", "> 0.6").replace("> 10\n", "> 60\n")
    (tmp_path / "rules.yaml").write_text(changed)
    done = run_promtool("test", "rules", str(tmp_path / "rules.test.yaml"))
    assert done.returncode != 0
    assert "PerdureModelFails" in done.stdout + done.stderr
    assert "PerdureStepsWait" in done.stdout + done.stderr


def run_promtool(*words: str) -> subprocess.CompletedProcess[str]:
    command = [find_promtool() or "", *words]
    return subprocess.run(command, cwd=RULES.parent, capture_output=True, text=True, check=False)

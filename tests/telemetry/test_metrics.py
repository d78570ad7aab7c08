"""Metrics of what conversations do, as a collector and Prometheus get them."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from perdure.agent.policies import Confirmation
from perdure.api.keys import Scope
from perdure.client.client import Client
from perdure.storage.credentials.api_keys import create_api_key
from perdure.storage.errors import StoreUnavailable
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access
from perdure.telemetry import names
from perdure.telemetry.gauges import Gauges
from perdure.telemetry.metrics import KINDS, Metrics
from perdure.telemetry.observed import ObservedStore
from perdure.temporal.register_attributes import register_attributes
from reliability.chaos.proxy import Fault, FaultyProxy
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.storage.conftest import access, bucket
from tests.telemetry.collector import Collector, attributes_of
from tests.telemetry.test_worker_process import Environment, environment
from tests.workers import worker_process
from tests.workflows.watching import wait_for_status

__all__ = ["access", "bucket", "environment"]

USAGE = {"prompt_tokens": 120, "completion_tokens": 30}

READING: tuple[Scope, ...] = ("read",)

SENT = {
    "gen_ai.client.token.usage",
    "gen_ai.client.operation.duration",
    "gen_ai.client.operation.time_to_first_chunk",
    "perdure.model.cost",
    "perdure.turn.duration",
    "perdure.storage.append.duration",
}


def sums(collector: Collector, name: str, label: str) -> dict[str, tuple[int, float]]:
    """Return count and sum of a histogram by a label."""
    points = collector.metrics[name].histogram.data_points
    return {attributes_of(it).get(label, ""): (it.count, it.sum) for it in points}


@pytest.mark.long
async def test_a_collector_gets_what_a_turn_has_used_and_temporals_metrics(
    harness: ConversationHarness, environment: Environment, collector: Collector
) -> None:
    call = tool_call_answer(("add", {"a": 2, "b": 3}), usage=USAGE)
    spec = harness.spec(call, text_answer("5") | {"usage": USAGE})
    environment |= collector.environment | {"OTEL_TRACES_EXPORTER": "none"}
    environment |= {"OTEL_SERVICE_NAME": "agents"}
    with worker_process(environment, harness.folder / "worker.log"):
        conversation = await harness.client.start("add", spec)
        await conversation.result()
        await collector.wait(lambda: collector.metrics.keys() >= SENT)
    tokens = sums(collector, "gen_ai.client.token.usage", "gen_ai.token.type")
    assert tokens == {"input": (2, 240.0), "output": (2, 60.0)}
    durations = sums(collector, "gen_ai.client.operation.duration", "gen_ai.operation.name")
    assert {name: count for name, (count, _) in durations.items()} == {"chat": 2, "execute_tool": 1}
    assert sums(collector, "perdure.turn.duration", "perdure.status")["finished"][0] == 1
    assert sums(collector, "perdure.storage.append.duration", "")[""][0] == 7
    assert any(name.startswith("temporal_") for name in collector.metrics)
    assert collector.resources[-1]["service.name"] == "agents"
    assert not collector.spans


@pytest.mark.long
async def test_prometheus_finds_the_metrics_at_the_address_of_the_setting(
    harness: ConversationHarness, environment: Environment, unused_tcp_port: int
) -> None:
    environment |= {"PERDURE_METRICS_ADDRESS": f"127.0.0.1:{unused_tcp_port}"}
    with worker_process(environment, harness.folder / "worker.log"):
        conversation = await harness.client.start("add", harness.spec(text_answer("5")))
        await conversation.result()
        await asyncio.sleep(0.5)
        async with httpx.AsyncClient() as http:
            text = (await http.get(f"http://127.0.0.1:{unused_tcp_port}/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {name.replace(".", "_") for name in SENT} <= families.keys()
    labels = families["gen_ai_client_operation_duration"].samples[0].labels
    assert labels["gen_ai_request_model"] == "scripted"
    assert any(name.startswith("temporal_") for name in families)
    assert not any("." in label for it in families.values() for label in it.samples[0].labels)


class Recorded(Metrics):
    """Metrics that are kept by name, with their labels."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[str, str]] = Counter()

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        super().count(name, labels)
        self.counts[name, ",".join(labels.values())] += 1

    def record(self, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        super().record(name, value, labels)
        assert 0 <= value < 60
        self.counts[name, ",".join((labels or {}).values())] += 1


async def test_requests_that_a_store_repeats_and_events_that_it_does_not_write_are_counted(
    bucket: str, access: S3Access
) -> None:
    metrics = Recorded()
    assert access.endpoint_url
    async with FaultyProxy(access.endpoint_url, seed=0, rate=0.0).listening() as proxy:
        own = S3Store(bucket, access=replace(access, endpoint_url=proxy.endpoint))
        metrics.count_retries(own)
        store = ObservedStore(own, metrics.record_append)
        assert await store.create("a/events/1", b"one")
        assert not [name for name, _ in metrics.counts if "retries" in name]
        proxy.faults.extend([Fault.THROTTLED, Fault.THROTTLED])
        assert await store.create("a/events/2", b"two")
        retries = {key[1]: n for key, n in metrics.counts.items() if "retries" in key[0]}
        assert sum(retries.values()) == 2
        assert retries["StoreUnavailable"] == 1, "the other one is obstore's"
        own.retry_seconds = 0.0
        proxy.faults.extend([Fault.THROTTLED] * 3)
        with pytest.raises(StoreUnavailable):
            await store.create("a/events/3", b"three")
        await own.close()
    name = "perdure.storage.append.duration"
    assert metrics.counts[name, ""] == 2
    assert metrics.counts[name, "StoreUnavailable"] == 1


class Gauged:
    """A meter that keeps the newest value of each gauge."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], int] = {}

    def set(self, name: str, value: int, labels: Mapping[str, str]) -> None:
        self.values[name, *labels.values()] = value


async def test_conversations_are_counted_by_status(
    harness: ConversationHarness,
) -> None:
    await register_attributes(harness.client.temporal)
    queue = harness.client.task_queue
    client = Client(harness.client.temporal, harness.client.store, task_queue=queue)
    asks = harness.spec(
        tool_call_answer(("add", {"a": 1, "b": 1})), confirmation=Confirmation(policy="always")
    )
    metrics = Gauged()
    gauges = Gauges(client.temporal, queue, metrics)
    async with harness.worker():
        waiting = await client.start("add", asks)
        await wait_for_status(waiting, "waiting_for_confirmation")
        finished = await client.start("hi", harness.spec(text_answer("ho")))
        await finished.result()
        expected = {
            ("perdure.conversations", "finished"): 1,
            ("perdure.conversations", "waiting_for_confirmation"): 1,
            ("perdure.conversations", "running"): 0,
            ("perdure.approvals.waiting",): 1,
        }
        async with asyncio.timeout(60):  # Temporal's lists are behind
            while not expected.items() <= metrics.values.items():
                await gauges.set_all()
                await asyncio.sleep(0.1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin is not served"),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            },
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not served: write http/protobuf.",
        ),
        ({"PERDURE_METRICS_ADDRESS": "nowhere"}, "The setting 'metrics_address' is not right"),
        ({"PERDURE_METRICS_ADDRESS": "192.0.2.1:9464"}, "Metrics cannot be exported at 192.0.2.1"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence_and_an_exit_code(
    harness: ConversationHarness,
    environment: Environment,
    variables: Environment,
    sentence: str,
) -> None:
    log = harness.folder / "worker.log"
    with worker_process(environment | variables, log) as worker:
        assert worker.process.wait() == 2
    [line] = [it for it in log.read_text().splitlines() if it.startswith("perdure worker:")]
    assert sentence in line


def test_every_metric_has_a_kind() -> None:
    table = {value for value in vars(names).values() if isinstance(value, str)}
    assert table > KINDS.keys() > SENT


@pytest.mark.long
async def test_a_gateway_tells_how_late_its_streams_are(
    harness: ConversationHarness, environment: Environment, unused_tcp_port_factory: Any
) -> None:
    port, metrics_port = unused_tcp_port_factory(), unused_tcp_port_factory()
    environment |= {
        "PERDURE_METRICS_ADDRESS": f"127.0.0.1:{metrics_port}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_TRACES_EXPORTER": "none",
    }
    key = await create_api_key(harness.client.store, "local", "test", READING)
    command = [sys.executable, "-m", "perdure.gateway", "--host", "127.0.0.1", "--port", str(port)]
    log = harness.folder / "gateway.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env={**os.environ, **environment}, stderr=output) as gateway,
    ):
        try:
            text = await follow_and_ask(harness, port, metrics_port, key.secret)
        finally:
            gateway.terminate()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    lag = {it.name: it.value for it in families["perdure_stream_lag"].samples if not it.labels}
    assert lag["perdure_stream_lag_count"] > 0
    assert 0 <= lag["perdure_stream_lag_sum"] < 10 * lag["perdure_stream_lag_count"]
    assert "spans" not in log.read_text()


async def follow_and_ask(
    harness: ConversationHarness, port: int, metrics_port: int, key: str
) -> str:
    """Follow a turn by the gateway at `port`; return what Prometheus gets of it."""
    spec = harness.spec(tool_call_answer(("look", {"seconds": 3})), text_answer("seen"))
    async with harness.worker(), httpx.AsyncClient(timeout=60) as http:
        headers = {"Authorization": f"Bearer {key}"}
        for _ in range(200):
            with contextlib.suppress(httpx.ConnectError):
                await http.get(f"http://127.0.0.1:{port}/health")
                break
            await asyncio.sleep(0.1)
        talk = await harness.client.start("look", spec)
        url = f"http://127.0.0.1:{port}/v1/conversations/{talk.id}/stream"
        following = asyncio.create_task(http.get(url, headers=headers))
        await talk.result()
        await asyncio.sleep(2)
        following.cancel()
        answer = await http.get(f"http://127.0.0.1:{metrics_port}/metrics")
        return answer.text

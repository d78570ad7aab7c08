"""The spans of a gateway's requests, by the HTTP conventions."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from websockets.asyncio.client import connect

from perdure.api.keys import Scope
from perdure.gateway.edge.request_spans import RequestSpans
from perdure.gateway.gateway import Gateway
from perdure.settings.settings import Settings
from perdure.storage.credentials.api_keys import create_api_key
from perdure.telemetry.requests import ServedRequest, new_place, request_span
from tests.gateway.stage import GatewayStage, as_json, serve_gateway
from tests.harness import text_answer
from tests.telemetry.collector import Collector, attributes_of
from tests.telemetry.conftest import Observe, ObservedHarness
from tests.telemetry.test_names import OURS, PUBLISHED

READING: tuple[Scope, ...] = ("read",)
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = "00-11111111111111111111111111111111-2222222222222222-00"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")


@asynccontextmanager
async def traced_gateway(observed: ObservedHarness) -> AsyncIterator[GatewayStage]:
    """Serve a gateway whose spans are sent like those of the worker."""
    harness, sender = observed.conversations, observed.telemetry.sender
    assert sender is not None
    gateway = Gateway(harness.client, Settings(gateway_trusted=True))
    async with serve_gateway(gateway, wrap=lambda app: RequestSpans(app, sender)) as url:
        nobody = httpx.AsyncClient(base_url=url)
        stage = GatewayStage(harness, gateway, url, nobody, nobody, [nobody])
        stage.anna = await stage.client("anna")
        try:
            yield stage
        finally:
            await stage.close()


def key_of(stage: GatewayStage) -> str:
    return stage.anna.headers["authorization"].removeprefix("Bearer ")


@pytest.mark.long
async def test_a_message_is_linked_to_the_span_of_the_request_which_is_a_part_of_its_callers_trace(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    agent = as_json(harness.spec(text_answer("one")))
    async with observed.worker(), traced_gateway(observed) as stage:
        body = {"text": "A private text?", "agent": agent}
        headers = {"traceparent": CALLER}
        started = await stage.anna.post("/v1/conversations", json=body, headers=headers)
        name = started.json()["id"]
        await collector.turns(1)
        await stage.anna.get(f"/v1/conversations/{name}?ticket=hush")
        key = key_of(stage)
    [request] = collector.named("POST")
    assert request.name == "POST /v1/conversations"
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (CALLER[3:35], CALLER[36:52])
    [turn] = collector.named("invoke_agent")
    [link] = turn.links
    assert (link.trace_id, link.span_id) == (request.trace_id, request.span_id)
    attributes = attributes_of(request)
    assert attributes["http.request.method"] == "POST"
    assert attributes["http.response.status_code"] == 201
    assert attributes["user.id"] == "anna"
    [shown] = collector.named("GET")
    assert shown.name == "GET /v1/conversations/{conversation_id}"
    assert attributes_of(shown)["gen_ai.conversation.id"] == name
    assert attributes_of(shown)["url.path"] == f"/v1/conversations/{name}"
    assert shown.parent_span_id == b""
    sent = str(collector.spans)
    assert not [secret for secret in ("hush", "private", key) if secret in sent]


@pytest.mark.long
async def test_names_of_spans_have_no_ids_and_attributes_are_those_of_the_conventions(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    name = "0195f3a0-0000-7000-8000-000000000000"
    paths = (
        f"/v1/conversations/{name}/events",
        f"/openai/v1/responses/resp_{name}",
        f"/api/conversations/{name}",
        f"/{name}",
        f"/v1/posts/{name}/secret-of-it",
    )
    async with traced_gateway(observed) as stage:
        for path in paths:
            await stage.anna.get(path)
        await stage.anna.request("ODD", "/v1/me")
        await stage.anna.get("/health")
        await collector.wait(lambda: len(collector.spans) == len(paths) + 1)
    await observed.close()
    assert not [span.name for span in collector.spans if UUID.search(span.name)]
    assert {"GET", "HTTP /v1/me", "GET /v1/conversations/{conversation_id}/events"} <= {
        span.name for span in collector.spans
    }
    assert not [span for span in collector.spans if span.status.code], "4xx is no server's error"
    assert "secret-of-it" not in str(collector.spans)
    names = {name for span in collector.spans for name in attributes_of(span)}
    assert {name for name in names if not OURS.fullmatch(name)} <= PUBLISHED
    required = {"http.request.method", "url.path", "url.scheme", "http.response.status_code"}
    assert all(required <= attributes_of(span).keys() for span in collector.spans)


@pytest.mark.long
async def test_a_stream_and_a_socket_have_a_span_as_soon_as_they_begin(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    async with observed.worker(), traced_gateway(observed) as stage:
        name = await stage.start(text_answer("one"))
        path = f"/v1/conversations/{name}/stream"
        socket_url = f"{stage.url.replace('http', 'ws', 1)}/v1/conversations/{name}/socket"
        headers = {"authorization": f"Bearer {key_of(stage)}"}
        async with (
            stage.anna.stream("GET", path) as stream,
            connect(socket_url, additional_headers=headers),
        ):
            await collector.wait(lambda: len(collector.named("GET")) == 2)
            assert not stream.is_closed
    spans = {span.name: attributes_of(span) for span in collector.named("GET")}
    statuses = {name: it["http.response.status_code"] for name, it in spans.items()}
    assert statuses == {
        "GET /v1/conversations/{conversation_id}/stream": 200,
        "GET /v1/conversations/{conversation_id}/socket": 101,
    }


async def test_a_caller_decides_whether_its_trace_is_sampled_and_the_log_names_it(
    observe: Observe, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "perdure.gateway.access")
    observed = observe()
    async with traced_gateway(observed) as stage:
        await stage.anna.get("/v1/me", headers={"traceparent": UNSAMPLED})
        await stage.anna.get("/v1/me", headers={"traceparent": "no span"})
        await collector.wait(lambda: len(collector.spans) == 1)
    await observed.close()
    [span] = collector.spans
    assert span.parent_span_id == b""
    lines = [it.message for it in caplog.records if it.name == "perdure.gateway.access"]
    traces = [json.loads(line)["trace_id"] for line in lines]
    assert traces == [UNSAMPLED[3:35], span.trace_id.hex()]


@pytest.mark.long
async def test_a_message_over_mcp_is_linked_to_the_span_that_came_with_the_call(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    async with observed.worker(), traced_gateway(observed) as stage:
        conversation = await stage.start(text_answer("one"), text_answer("two"))
        await collector.turns(1)
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {key_of(stage)}"}) as http,
            McpClient(streamable_http_client(f"{stage.url}/mcp", http_client=http)) as client,
        ):
            arguments = {"conversation_id": conversation, "text": "And?"}
            meta: Any = {"traceparent": CALLER}
            answer = await client.call_tool("send_message", arguments, meta=meta)
            assert not answer.is_error, answer
        await collector.turns(2)
    [link] = collector.named("invoke_agent")[1].links
    assert (link.trace_id.hex(), link.span_id.hex()) == (CALLER[3:35], CALLER[36:52])


@given(st.text(), st.none() | st.integers(100, 599))
def test_a_span_is_named_by_few_values_and_fails_where_the_server_does(
    method: str, status: int | None
) -> None:
    request = ServedRequest(new_place(None), None, 2, 1, method, "http", "/x/1", "/x/{id}", status)
    span = request_span(request)
    assert span.name in {"HTTP /x/{id}", *(f"{it} /x/{{id}}" for it in ("GET", "POST", "PUT"))} or (
        method in span.name and method.isupper()
    )
    assert (span.error is None) == (status is not None and status < 500)
    assert span.begin <= span.end
    assert all(value is not None for value in span.attributes.values())


GATEWAY = """
import sys
import perdure.gateway.serve
from perdure.telemetry.start import start_configured_telemetry

app = object()
assert perdure.gateway.serve.trace_requests(app, start_configured_telemetry(None)) is app
print(*sys.modules)
"""


@pytest.mark.long
def test_a_gateway_without_telemetry_loads_none_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GATEWAY],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    loaded = set(done.stdout.split())
    assert "perdure.gateway.edge.request_spans" not in loaded
    ours = {name for name in loaded if name.startswith("perdure.telemetry.")}
    assert ours <= {"perdure.telemetry.current", "perdure.telemetry.start"}
    assert "opentelemetry.sdk" not in loaded


@pytest.mark.long
async def test_a_gateway_process_sends_its_spans_before_it_ends(
    observe: Observe, collector: Collector, unused_tcp_port: int
) -> None:
    harness = observe().conversations
    key = await create_api_key(harness.client.store, "local", "test", READING)
    environment = {
        **os.environ,
        "TEMPORAL_ADDRESS": harness.client.temporal.service_client.config.target_host,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "60000",
    }
    address = ["--host", "127.0.0.1", "--port", str(unused_tcp_port)]
    url = f"http://127.0.0.1:{unused_tcp_port}"
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "perdure.gateway", *address, env=environment
    )
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key.secret}"}) as http:
        async with asyncio.timeout(60):
            while True:
                with suppress(httpx.ConnectError):
                    await http.get(f"{url}/v1/me")
                    break
                await asyncio.sleep(0.1)
    gateway.terminate()
    assert await gateway.wait() == 0
    assert [span.name for span in collector.spans] == ["GET /v1/me"]

"""The trace of a turn is linked to the span from which an HTTP request was sent."""

import asyncio
import os
import sys

import pytest

from tests.gateway.stage import as_json, open_gateway
from tests.harness import text_answer
from tests.telemetry.collector import Collector
from tests.telemetry.conftest import Observe
from tests.workers import ROOT

START = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SEND = "00-11111111111111111111111111111111-2222222222222222-00"
COMMAND = "00-33333333333333333333333333333333-4444444444444444-01"


@pytest.mark.long
async def test_a_turn_is_linked_to_the_span_of_a_request_and_of_a_command_over_the_gateway(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    answers = [text_answer(word) for word in ("one", "two", "three")]
    body = {"text": "Hello?", "agent": as_json(harness.spec(*answers))}
    async with observed.worker(), open_gateway(harness) as stage:
        headers = {"traceparent": START}
        started = await stage.anna.post("/v1/conversations", json=body, headers=headers)
        name = started.json()["id"]
        await stage.wait_until(name, "finished")
        headers = {"traceparent": SEND}
        path = f"/v1/conversations/{name}/messages"
        await stage.anna.post(path, json={"text": "And now?"}, headers=headers)
        await collector.turns(2)
        key = stage.anna.headers["authorization"].removeprefix("Bearer ")
        environment = {
            **os.environ,
            "PERDURE_GATEWAY": stage.url,
            "PERDURE_GATEWAY_KEY": key,
            "TRACEPARENT": COMMAND,
        }
        command = (sys.executable, "-m", "perdure.cli.main", "send", name, "And then?")
        process = await asyncio.create_subprocess_exec(*command, env=environment, cwd=ROOT)
        assert await process.wait() == 0
        await collector.turns(3)
    links = [span.links[0] for span in collector.named("invoke_agent")]
    senders = [(link.trace_id.hex(), link.span_id.hex()) for link in links]
    assert senders == [(it[3:35], it[36:52]) for it in (START, SEND, COMMAND)]

"""Batches for tests and pictures of the page."""

import asyncio
from typing import Any

from tests.gateway.stage import GatewayStage, as_json


def question(number: int) -> dict[str, Any]:
    sample = f"sum-{number:02}"
    return {"id": sample, "input": f"What is {number} + {number}?", "target": str(2 * number)}


async def start_batch(
    stage: GatewayStage, name: str, samples: int, answer: dict[str, Any], **more: Any
) -> None:
    """Start a batch of Anna's over sums, each of which the model answers in the same way."""
    agent = as_json(stage.harness.spec(*[answer] * 3, tools=("think",)))
    batch = {"name": name, "agent": agent, "scorers": ["match"], "concurrency": 4, **more}
    body = {"batch": batch, "samples": [question(number) for number in range(samples)]}
    started = await stage.anna.post("/v1/batches", json=body)
    assert started.status_code == 201, started.text


async def wait_for_batch(stage: GatewayStage, name: str, *statuses: str) -> None:
    while True:
        batch = (await stage.anna.get(f"/v1/batches/{name}")).json()
        if batch["progress"]["status"] in statuses:
            return
        await asyncio.sleep(0.2)

"""The remote codec, called like the Temporal UI and the `temporal` command do."""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest_asyncio
from pydantic import SecretStr
from temporalio.api.common.v1 import Payload

from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.embedded.process import find_program
from perdure.embedded.temporal import TemporalServer
from perdure.operations.codec_server import MAX_REQUEST_BYTES, serve_codec
from perdure.storage.files import FileStore
from perdure.temporal.codec import Encryption
from perdure.temporal.connect import connect

KEY = bytes(range(32))
UI = "http://127.0.0.1:8233"


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client that sends the headers of the UI."""
    headers = {"Origin": UI, "X-Namespace": "default"}
    async with (
        serve_codec(Encryption({"k1": KEY}), origins=[UI]) as endpoint,
        httpx.AsyncClient(base_url=endpoint, headers=headers, timeout=60) as client,
    ):
        yield client


async def test_only_pages_of_an_allowed_origin_may_call_the_codec(
    browser: httpx.AsyncClient,
) -> None:
    asking = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-namespace",
    }
    allowed = await browser.options("/decode", headers=asking)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == UI
    assert "x-namespace" in allowed.headers["access-control-allow-headers"].lower()
    refused = await browser.options("/decode", headers={**asking, "Origin": "http://evil.test"})
    assert refused.status_code == 400
    assert "access-control-allow-origin" not in refused.headers

    done = await browser.post("/decode", json={"payloads": []})
    assert (done.json(), done.headers["access-control-allow-origin"]) == ({}, UI)
    evil = await browser.post("/decode", json={}, headers={"Origin": "http://evil.test"})
    assert (evil.status_code, "evil.test may not ask" in evil.text) == (403, True)


async def test_encoded_payloads_are_decoded_again(browser: httpx.AsyncClient) -> None:
    plain: dict[str, Any] = {
        "metadata": {"encoding": base64.b64encode(b"json/plain").decode()},
        "data": base64.b64encode(b'"rosebud"').decode(),
    }
    sealed = (await browser.post("/encode", json={"payloads": [plain]})).json()
    assert plain["data"] not in json.dumps(sealed)
    both = [*sealed["payloads"], plain]
    back = (await browser.post("/decode", json={"payloads": both})).json()
    assert back == {"payloads": [plain, plain]}


async def test_an_encrypted_history_is_readable_in_the_ui_and_the_command(
    browser: httpx.AsyncClient, temporal_server: TemporalServer, tmp_path: Path
) -> None:
    key = SecretStr(f"k1:{base64.b64encode(KEY).decode()}")
    temporal = await connect(temporal_server.address, key)
    client = Client(temporal, FileStore(tmp_path), task_queue=f"test-{uuid.uuid4()}")
    talk = await client.start("rosebud", Agent(model=ModelSpec(name="scripted:nothing")))
    history = (await talk.handle.fetch_history()).to_json()
    response = await browser.post("/decode", json={"payloads": find_payloads(json.loads(history))})
    texts = [base64.b64decode(payload["data"]) for payload in response.json()["payloads"]]
    assert sum(b"rosebud" in text for text in texts) == 2, "in the signal and in the summary"

    command = [find_program("temporal"), "workflow", "show", "-w", talk.workflow_id]
    command += ["--address", temporal_server.address, "--detailed"]
    command += ["--codec-endpoint", str(browser.base_url).rstrip("/")]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    await talk.handle.terminate()
    assert process.returncode == 0
    assert b"rosebud" in out


async def test_invalid_requests_are_refused_with_a_reason(browser: httpx.AsyncClient) -> None:
    [foreign] = await Encryption({"k2": KEY}).encode([Payload(data=b"x")])
    unknown = {
        "metadata": {k: base64.b64encode(v).decode() for k, v in foreign.metadata.items()},
        "data": base64.b64encode(foreign.data).decode(),
    }
    no_key = await browser.post("/decode", json={"payloads": [unknown]})
    assert (no_key.status_code, "with the key 'k2'" in no_key.text) == (400, True)
    for body in (b"", b"{", b'{"payloads": 1}', b"\xff"):
        wrong = await browser.post("/decode", content=body)
        assert (wrong.status_code, "must be JSON" in wrong.text) == (400, True), body
    large = await browser.post("/decode", content=b" " * (MAX_REQUEST_BYTES + 1))
    assert (large.status_code, "is larger than" in large.text) == (413, True)
    assert (await browser.get("/decode")).status_code == 405


def find_payloads(value: Any) -> list[dict[str, Any]]:
    """Find every encrypted payload in a history."""
    if isinstance(value, list):
        return [payload for item in value for payload in find_payloads(item)]
    if not isinstance(value, dict):
        return []
    if "metadata" in value and "encryption-key-id" in value["metadata"]:
        return [value]
    return [payload for item in value.values() for payload in find_payloads(item)]

"""`perdure gateway` and `perdure key`: processes on real ports."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from perdure.embedded.temporal import TemporalServer
from tests.cli.command import Perdure, clean_environment, find_address, wait_for_line


@pytest.fixture
def env(temporal_server: TemporalServer, tmp_path: Path) -> Mapping[str, str]:
    return {
        **clean_environment(),
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": (tmp_path / "store").as_uri(),
        "PERDURE_TASK_QUEUE": f"gateway-{uuid4()}",
        "PERDURE_DATA": str(tmp_path / "data"),
        "PERDURE_GATEWAY_TRUSTED": "true",
    }


@asynccontextmanager
async def serve(
    perdure: Perdure,
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """Run a gateway on a free port while inside; yield its URL and its process."""
    async with perdure.start("gateway", "--port", "0") as process:
        line = await wait_for_line(process.stderr, "serves")
        yield find_address(line), process


@pytest.mark.longest
async def test_two_gateways_serve_the_same_and_one_that_is_killed_is_not_missed(
    env: Mapping[str, str],
) -> None:
    perdure = Perdure(env)
    made = await perdure("key", "create", "test", "--user", "anna", "-ojson")
    assert made.code == 0, made.err
    headers = {"Authorization": f"Bearer {made.json['secret']}"}
    script = Path(env["PERDURE_DATA"]) / "script.json"
    script.parent.mkdir()
    script.write_text(json.dumps({"answers": ["It is 5."]}))
    async with serve(perdure) as (first, one), serve(perdure) as (second, two):
        async with httpx.AsyncClient(headers=headers, timeout=60) as client:
            for url in (first, second):
                assert (await client.get(f"{url}/ready")).json() == {"status": "ready"}
                assert (await client.get(f"{url}/v1/me")).json()["user_id"] == "anna"
            body = {"text": "What is 2 + 3?", "model": f"scripted:{script}"}
            started = await client.post(f"{first}/v1/conversations", json=body)
            assert started.status_code == 201, started.text
            one.send_signal(signal.SIGKILL)
            await one.wait()
            path = f"{second}/v1/conversations/{started.json()['id']}"
            async with perdure.start("worker"):
                turn = await client.get(f"{path}/turn", params={"wait": 60})
            assert turn.json()["text"] == "It is 5."
        two.send_signal(signal.SIGTERM)
        _, errors = await two.communicate()
        assert two.returncode == 0, errors
    assert made.json["secret"].encode() not in errors
    assert b"wait=60" not in errors


@pytest.mark.long
async def test_a_gateway_that_is_stopped_ends_its_streams(env: Mapping[str, str]) -> None:
    perdure = Perdure(env)
    secret = (await perdure("key", "create", "test", "-ojson")).json["secret"]
    headers = {"Authorization": f"Bearer {secret}"}
    async with serve(perdure) as (url, process), httpx.AsyncClient(headers=headers) as client:
        async with client.stream("GET", f"{url}/v1/feed", timeout=30) as feed:
            assert feed.status_code == 200
            process.send_signal(signal.SIGTERM)
            await feed.aread()
        await process.communicate()
    assert process.returncode == 0


@pytest.mark.long
async def test_keys_are_made_listed_and_revoked(env: Mapping[str, str]) -> None:
    perdure = Perdure(env)
    options = ("--scope", "read", "--expires", "30d", "-ojson")
    made = (await perdure("key", "create", "a laptop", *options)).json
    assert (made["user_id"], made["scopes"], made["name"]) == ("local", ["read"], "a laptop")
    assert made["expires"] is not None
    listed = await perdure("key", "ls", "-ojson")
    assert [item["id"] for item in listed.json] == [made["id"]]
    assert made["secret"] not in listed.out
    assert (await perdure("key", "ls", "--user", "anna", "-ojson")).json == []
    assert (await perdure("key", "revoke", made["id"], "--user", "anna")).code == 3
    assert (await perdure("key", "revoke", made["id"])).code == 0
    assert (await perdure("key", "ls", "-ojson")).json[0]["revoked"] is True
    for wrong in (("--scope", "all"), ("--user", "../up"), ("--expires", "soon")):
        failed = await perdure("key", "create", "x", *wrong, "-ojson")
        assert (failed.code, failed.error["code"]) == (2, "invalid")


@pytest.mark.long
async def test_a_login_needs_the_address_of_the_gateway(env: Mapping[str, str]) -> None:
    perdure = Perdure(env)
    lost = await perdure("key", "login", "-ojson")
    assert (lost.code, "PERDURE_GATEWAY_URL" in lost.error["hint"]) == (2, True)
    known = perdure.with_env(PERDURE_GATEWAY_URL="https://perdure.example/")
    address = (await known("key", "login", "--read-only", "-ojson")).json["login"]
    assert address.startswith("https://perdure.example/#login=")


@pytest.mark.long
async def test_a_gateway_says_what_it_lacks(env: Mapping[str, str], tmp_path: Path) -> None:
    perdure = Perdure(env)
    async with serve(perdure) as (url, _):
        port = url.rpartition(":")[2]
        taken = await perdure("gateway", "--port", port)
    assert taken.code == 4
    assert f"127.0.0.1:{port} cannot be had" in taken.err
    wrong = perdure.with_env(PERDURE_GATEWAY_ISSUER="http://issuer.example")
    refused = await wrong("gateway", "--port", "0")
    assert (refused.code, "gateway_audience" in refused.err) == (2, True)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys; sys.modules['fastapi'] = None")
    without = perdure.with_env(PYTHONPATH=f"{hidden}{os.pathsep}{env.get('PYTHONPATH', '')}")
    missing = await without("gateway", "--port", "0")
    assert missing.code == 2
    assert "pip install 'perdure[gateway]'" in missing.err


@pytest.mark.long
@pytest.mark.parametrize("module", ["listing", "run", "gateway", "operations", "worker"])
async def test_no_command_loads_the_libraries_of_a_gateway(module: str) -> None:
    """The libraries take half a second: only the process of a gateway loads them."""
    code = (
        f"import sys, perdure.cli.main, perdure.cli.commands.{module}\n"
        "print({'fastapi', 'jwt', 'sse_starlette', 'websockets'} & sys.modules.keys())"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.decode().strip() == "set()"

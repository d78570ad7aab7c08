"""`perdure codec serve`, and what the other commands say of encrypted payloads."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from temporalio.api.common.v1 import Payload

from cli.checks import payloads
from client.codec import Encryption
from settings.settings import Settings
from tests.cli.command import Perdure, clean_environment, interrupted, line_with, scripted

KEY = bytes(range(32))
TEXT = base64.b64encode(KEY).decode()


async def test_payloads_are_decrypted_for_as_long_as_the_command_runs(configured: Perdure) -> None:
    keyed = configured.where(PERDURE_PAYLOAD_KEYS=f"k1:{TEXT}")
    [sealed] = await Encryption({"k1": KEY}).encode([Payload(data=b"rosebud")])
    asked = {
        "metadata": {k: base64.b64encode(v).decode() for k, v in sealed.metadata.items()},
        "data": base64.b64encode(sealed.data).decode(),
    }
    page = "http://localhost:8233"
    async with keyed.started("codec", "serve", "--origin", page, "-ojsonl") as server:
        served = json.loads(await line_with(server.stdout, "endpoint"))
        async with httpx.AsyncClient(base_url=served["endpoint"], timeout=60) as browser:
            told = await browser.post(
                "/decode", json={"payloads": [asked]}, headers={"Origin": page}
            )
        port = served["endpoint"].rpartition(":")[2]
        taken = await keyed("codec", "serve", "--port", port, "-ojson")
    assert base64.b64decode(told.json()["payloads"][0]["data"]) == b"rosebud"
    assert told.headers["access-control-allow-origin"] == page
    assert served["endpoint"].startswith("http://127.0.0.1:")
    assert (taken.code, taken.error["code"]) == (4, "conflict")


@pytest.mark.long
async def test_without_a_key_or_with_half_a_key_nothing_is_served(configured: Perdure) -> None:
    none = await configured("codec", "serve", "-ojson")
    assert (none.code, "nothing is encrypted" in none.error["message"]) == (2, True)
    assert "openssl rand -base64 32" in none.error["hint"]
    half = await configured.where(PERDURE_PAYLOAD_KEYS=f"k1:{TEXT[:20]}")("doctor", "-ojson")
    [found] = [one for one in half.json if one["check"] == "payloads"]
    assert (half.code, found["ok"]) == (2, False)
    assert "The key 'k1' of PERDURE_PAYLOAD_KEYS is not 32 bytes" in found["told"]
    assert TEXT[:20] not in half.out + half.err


async def test_the_doctor_names_the_keys_and_never_shows_them() -> None:
    keys = SecretStr(f"k2:{base64.b64encode(bytes(32)).decode()},k1:{TEXT}")
    told = await payloads(Settings(payload_keys=keys))
    assert told == "Temporal keeps them encrypted with the key 'k2'; read with 'k1' too"
    assert "in clear" in await payloads(Settings())


@pytest.mark.long
async def test_the_page_of_a_stack_of_ones_own_shows_what_is_encrypted(
    tmp_path: Path, script: Callable[..., str]
) -> None:
    env = {"PERDURE_DATA": str(tmp_path), "PERDURE_PAYLOAD_KEYS": f"k1:{TEXT}"}
    perdure = Perdure({**clean_environment(), **env})
    path = script({"content": "Hello."})
    async with perdure.started("dev", "-ojsonl") as dev:
        stack = json.loads(await line_with(dev.stdout, "pids"))
        ran = await perdure("run", "rosebud", *scripted(path), "-ojson")
        async with httpx.AsyncClient(timeout=60) as page:
            settings = (await page.get(f"{stack['ui']}/api/v1/settings")).json()
            origin = {"Origin": stack["ui"].replace("127.0.0.1", "localhost")}
            asked = await page.post(f"{stack['codec']}/decode", json={}, headers=origin)
        await interrupted(dev)
    kept = b"".join(one.read_bytes() for one in (tmp_path / "temporal").glob("*.sqlite*"))
    assert ran.code == 0, ran
    assert settings["Codec"]["Endpoint"] == stack["codec"]
    assert asked.headers["access-control-allow-origin"] == origin["Origin"]
    assert b"binary/encrypted" in kept
    assert b"rosebud" not in kept

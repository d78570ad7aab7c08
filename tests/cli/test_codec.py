"""`perdure codec serve`, and encrypted payloads in other commands."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from temporalio.api.common.v1 import Payload

from perdure.cli.doctor_checks import Checkup, check_payloads
from perdure.settings.settings import Settings
from perdure.temporal.codec import Encryption
from tests.cli.command import Perdure, clean_environment, interrupt, model_options, wait_for_line

KEY = bytes(range(32))
KEY_TEXT = base64.b64encode(KEY).decode()


@pytest.mark.long
async def test_payloads_are_decrypted_for_as_long_as_the_command_runs(configured: Perdure) -> None:
    keyed = configured.with_env(PERDURE_PAYLOAD_KEYS=f"k1:{KEY_TEXT}")
    [sealed] = await Encryption({"k1": KEY}).encode([Payload(data=b"rosebud")])
    payload = {
        "metadata": {k: base64.b64encode(v).decode() for k, v in sealed.metadata.items()},
        "data": base64.b64encode(sealed.data).decode(),
    }
    page = "http://localhost:8233"
    async with keyed.start("codec", "serve", "--origin", page, "-ojsonl") as server:
        served = json.loads(await wait_for_line(server.stdout, "endpoint"))
        async with httpx.AsyncClient(base_url=served["endpoint"], timeout=60) as browser:
            answer = await browser.post(
                "/decode", json={"payloads": [payload]}, headers={"Origin": page}
            )
        port = served["endpoint"].rpartition(":")[2]
        taken = await keyed("codec", "serve", "--port", port, "-ojson")
    assert base64.b64decode(answer.json()["payloads"][0]["data"]) == b"rosebud"
    assert answer.headers["access-control-allow-origin"] == page
    assert served["endpoint"].startswith("http://127.0.0.1:")
    assert (taken.code, taken.error["code"]) == (4, "conflict")


@pytest.mark.long
async def test_without_a_key_or_with_half_a_key_nothing_is_served(configured: Perdure) -> None:
    none = await configured("codec", "serve", "-ojson")
    assert (none.code, "nothing is encrypted" in none.error["message"]) == (2, True)
    assert "openssl rand -base64 32" in none.error["hint"]
    half = await configured.with_env(PERDURE_PAYLOAD_KEYS=f"k1:{KEY_TEXT[:20]}")("doctor", "-ojson")
    [check] = [item for item in half.json if item["check"] == "payloads"]
    assert (half.code, check["ok"]) == (2, False)
    assert "The key 'k1' of PERDURE_PAYLOAD_KEYS is not 32 bytes" in check["message"]
    assert KEY_TEXT[:20] not in half.out + half.err


async def test_the_doctor_names_the_keys_and_never_shows_them() -> None:
    keys = SecretStr(f"k2:{base64.b64encode(bytes(32)).decode()},k1:{KEY_TEXT}")
    message = await check_payloads(Checkup(Settings(payload_keys=keys)))
    assert message == "Temporal keeps them encrypted with the key 'k2'; read with 'k1' too"
    assert "in clear" in await check_payloads(Checkup(Settings()))


@pytest.mark.long
async def test_the_web_page_of_an_embedded_stack_can_decrypt_payloads(
    tmp_path: Path, script: Callable[..., str]
) -> None:
    env = {"PERDURE_DATA": str(tmp_path), "PERDURE_PAYLOAD_KEYS": f"k1:{KEY_TEXT}"}
    perdure = Perdure({**clean_environment(), **env})
    path = script({"content": "Hello."})
    async with perdure.start("dev", "-ojsonl") as dev:
        stack = json.loads(await wait_for_line(dev.stdout, "pids"))
        ran = await perdure("run", "rosebud", *model_options(path), "-ojson")
        async with httpx.AsyncClient(timeout=60) as page:
            settings = (await page.get(f"{stack['ui']}/api/v1/settings")).json()
            origin = {"Origin": stack["ui"].replace("127.0.0.1", "localhost")}
            answer = await page.post(f"{stack['codec']}/decode", json={}, headers=origin)
        await interrupt(dev)
    database = b"".join(item.read_bytes() for item in (tmp_path / "temporal").glob("*.sqlite*"))
    assert ran.code == 0, ran
    assert settings["Codec"]["Endpoint"] == stack["codec"]
    assert answer.headers["access-control-allow-origin"] == origin["Origin"]
    assert b"binary/encrypted" in database
    assert b"rosebud" not in database

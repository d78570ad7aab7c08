"""The requests of docs/gateway.md, as a shell sends them."""

import asyncio
import json
import re
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from perdure.storage.credentials.api_keys import create_api_key
from tests.gateway.stage import open_gateway
from tests.harness import ConversationHarness, text_answer
from tests.secrets.keys import key_setting

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


async def run(command: str, **env: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-euc", command), env={"PATH": "/usr/bin:/bin", **env}, stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.long
async def test_the_requests_of_the_page_are_answered_as_it_says(
    world: ConversationHarness,
) -> None:
    agent = world.spec(text_answer("It is 5."), text_answer("It is 6."))
    settings: dict[str, Any] = {"agent": agent.model_dump(mode="json", exclude_unset=True)}
    me, start, turn, message, events, stream, share, secret = BLOCK.findall(PAGE.read_text())
    async with world.worker(), open_gateway(world, gateway_trusted=False, **settings) as stage:
        stage.gateway.client.secret_keys = SecretStr(key_setting("one"))
        key = await create_api_key(stage.gateway.store, "anna", "docs")
        env = {"GATEWAY": stage.url, "KEY": key.secret}
        assert json.loads(await run(me, **env))["user_id"] == "anna"
        started = json.loads(await run(start, **env))
        assert json.loads(await run(start, **env))["id"] == started["id"]
        env["ID"] = started["id"]
        assert json.loads(await run(turn, **env))["text"] == "It is 5."
        sent = json.loads(await run(message, **env))
        assert json.loads(await run(turn, **env))["text"] == "It is 6."
        page = json.loads(await run(events, **env))
        assert page["items"][sent["seq"]]["id"] == sent["event_id"]
        frames = await run(stream, **env)
        assert frames.count("event: durable") == page["end_seq"]
        assert json.loads(await run(share, **env)) == {"user_id": "ben", "access": "read"}
        assert [it["id"] for it in (await stage.ben.get("/v1/shared")).json()["items"]] == [
            env["ID"]
        ]
        await run(secret, **env)
        handed_in = (await stage.anna.get("/v1/secrets")).json()["items"]
        assert [it["name"] for it in handed_in] == ["TICKETS"]

"""An editor over a gateway: another user's conversations, and requests as no one writes them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from acp.exceptions import RequestError

from perdure.api.keys import Scope
from perdure.client.http.client import HttpClient
from perdure.client.ids import new_conversation_id
from perdure.storage.credentials.api_keys import create_api_key
from tests.acp.editor import Running
from tests.acp.stage import open_editor
from tests.gateway.security.canaries import find_canaries
from tests.gateway.security.scene import CANARY, RATES, make_annas
from tests.gateway.security.test_foreign_surfaces import spoil
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness, text_answer

pytestmark = pytest.mark.long

TEXT = [{"type": "text", "text": "Hi."}]

OPEN: dict[str, Any] = {"cwd": "/work", "mcpServers": []}

ADDRESSED: dict[str, dict[str, Any]] = {
    "session/load": OPEN,
    "session/resume": OPEN,
    "session/fork": OPEN,
    "session/prompt": {"prompt": TEXT},
    "session/set_mode": {"modeId": "ask"},
    "session/close": {},
    "session/delete": {},
}
"""The params of each method that addresses a session, beside its id."""

METHODS: dict[str, dict[str, Any]] = {
    **ADDRESSED,
    "initialize": {"protocolVersion": 1, "clientCapabilities": {}},
    "session/new": {
        "cwd": "/work",
        "mcpServers": [{"name": "a", "command": "/bin/true", "args": ["a"], "env": []}],
    },
    "session/list": {"cwd": "/work"},
}

REFUSALS = {-32602, -32002, -32600}


@dataclass
class Stranger:
    """The editor of a user of a gateway, with the user's key."""

    run: Running
    key: str

    def check_lines(self, **canaries: str) -> None:
        """Check that no line that was sent to the editor shows the key, or another secret."""
        sent = b"".join(line for who, line in self.run.judged.lines if who == "agent").decode()
        assert not find_canaries({"key": self.key, **canaries}, sent)


@asynccontextmanager
async def open_stranger(
    stage: GatewayStage, world: ConversationHarness, user_id: str
) -> AsyncIterator[Stranger]:
    scopes: tuple[Scope, ...] = ("read", "write")
    key = await create_api_key(stage.gateway.store, user_id, "acp", scopes)
    agent = world.spec(*[text_answer("Said.")] * 200)
    async with HttpClient(stage.url, key.secret) as client, open_editor(client, agent) as run:
        yield Stranger(run, key.secret)


async def refuse(run: Running, method: str, session_id: str, params: dict[str, Any]) -> str:
    """Make a request that has to be refused; return how, without the id."""
    with pytest.raises(RequestError) as refused:
        await run.call(method, sessionId=session_id, **params)
    return f"{refused.value.code} {refused.value}".replace(session_id, "(id)")


async def test_what_is_another_users_is_as_what_does_not_exist(world: ConversationHarness) -> None:
    absent = new_conversation_id()
    async with open_gateway(world, gateway_rates=RATES) as stage:
        name = (await make_annas(stage)).conversation_id
        before = (await stage.anna.get(f"/v1/conversations/{name}/events")).json()
        async with open_stranger(stage, world, "ben") as ben:
            for method, params in ADDRESSED.items():
                strange, none = [
                    await refuse(ben.run, method, each, params) for each in (name, absent)
                ]
                assert strange == none, method
            await ben.run.agent.cancel(session_id=name)
            assert (await ben.run.agent.list_sessions()).sessions == []
            ben.check_lines(marker=CANARY)
        assert (await stage.anna.get(f"/v1/conversations/{name}/events")).json() == before


async def test_a_spoilt_request_is_answered_with_a_sentence(world: ConversationHarness) -> None:
    settings: dict[str, Any] = {"gateway_rates": RATES, "gateway_max_concurrent_conversations": 0}
    tried = 0
    async with (
        open_gateway(world, **settings) as stage,
        open_stranger(stage, world, "ben") as ben,
    ):
        for method, params in METHODS.items():
            known = {"sessionId": await ben.run.open()} if method in ADDRESSED else {}
            for spoilt in spoil({**known, **params}):
                if isinstance(spoilt, dict):
                    await check_answer(ben.run, method, spoilt)
                    tried += 1
        assert (await ben.run.prompt(await ben.run.open(), "Hi.")).stop_reason == "end_turn"
        ben.check_lines()
    assert tried > 400


async def check_answer(run: Running, method: str, params: dict[str, Any]) -> None:
    """Make a request that makes little sense: what refuses it is a short sentence with a code."""
    try:
        await run.call(method, **params)
    except RequestError as error:
        refused = error
    else:
        return
    what = f"{method} {json.dumps(params)[:300]}: {refused.code} {refused}"
    assert refused.code in REFUSALS, what
    assert 10 < len(str(refused)) < 500, what
    assert "Traceback" not in what, what

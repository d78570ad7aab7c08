"""API keys: who may make and revoke them, and what they allow."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from perdure.gateway.identity.api_keys import ApiKeys
from perdure.storage.credentials.api_keys import (
    API_KEY,
    create_api_key,
    find_api_key,
    list_api_keys,
    read_api_key,
    revoke_api_key,
)
from perdure.storage.errors import Altered
from perdure.storage.keys import api_key_prefix
from tests.gateway.stage import GatewayStage
from tests.storage.memory import MemoryStore


class CountingStore(MemoryStore):
    """A store that notes the keys of its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    async def replace(self, key: str, body: bytes) -> None:
        self.writes.append(key)
        await super().replace(key, body)


@pytest.mark.long
async def test_a_user_makes_lists_and_revokes_keys_of_his_own(idle_stage: GatewayStage) -> None:
    body = {"name": "laptop", "scopes": ["read"], "expires_in": 3600}
    made = await idle_stage.anna.post("/v1/keys", json=body)
    assert made.status_code == 201, made.text
    key, secret = made.json()["key"], made.json()["secret"]
    assert secret.startswith(f"pk_{key['id']}_")
    reader = idle_stage.client_with(secret)
    assert (await reader.get("/v1/me")).json()["key_id"] == key["id"]
    listed = (await idle_stage.anna.get("/v1/keys")).json()["items"]
    assert key["id"] in [item["id"] for item in listed]
    assert secret not in json.dumps(listed)
    assert key["id"] not in (await idle_stage.ben.get("/v1/keys")).text
    assert (await idle_stage.ben.delete(f"/v1/keys/{key['id']}")).status_code == 404
    assert (await reader.get("/v1/me")).status_code == 200
    assert (await idle_stage.anna.delete(f"/v1/keys/{key['id']}")).status_code == 204
    assert (await reader.get("/v1/me")).status_code == 401
    [revoked] = [
        item
        for item in (await idle_stage.anna.get("/v1/keys")).json()["items"]
        if item["id"] == key["id"]
    ]
    assert revoked["revoked"] is True
    assert revoked["last_used"] is not None


async def test_a_key_does_what_its_scopes_say_and_makes_no_key_with_more(
    idle_stage: GatewayStage,
) -> None:
    reader = await idle_stage.client("anna", ["read"])
    writer = await idle_stage.client("anna", ["write"])
    keeper = await idle_stage.client("anna", ["admin"])
    refused = await reader.post("/v1/conversations", json={"text": "Hello?"})
    assert (refused.status_code, refused.json()["code"]) == (403, "scope")
    assert (await writer.get("/v1/conversations")).status_code == 403
    assert (await reader.get("/v1/conversations")).status_code == 200
    assert (await reader.get("/v1/keys")).status_code == 403
    assert (await keeper.get("/v1/conversations")).status_code == 403
    body = {"name": "more", "scopes": ["admin", "write"]}
    more = await keeper.post("/v1/keys", json=body)
    assert (more.status_code, "write" in more.json()["detail"]) == (403, True)
    assert (await keeper.post("/v1/keys", json={**body, "scopes": ["admin"]})).status_code == 201


@pytest.mark.parametrize(
    "secret",
    [
        "x",
        "pk_",
        "pk_0123456789abcdef_" + "a" * 43,
        "pk_../../users/anna_" + "a" * 43,
        "pk_0123456789abcdef_" + "ä" * 43,
        "Bearer Bearer",
        "a.b.c",
    ],
)
async def test_what_is_no_key_is_refused(idle_stage: GatewayStage, secret: str) -> None:
    headers = {b"Authorization": f"Bearer {secret}".encode()}
    refused = await idle_stage.client_with(None).get("/v1/me", headers=headers)
    assert refused.status_code == 401


async def test_a_key_with_another_secret_or_another_scheme_is_refused(
    idle_stage: GatewayStage,
) -> None:
    made = await create_api_key(idle_stage.gateway.store, "anna", "test")
    wrong = made.secret[:-1] + ("A" if made.secret[-1] != "A" else "B")
    assert (await idle_stage.client_with(wrong).get("/v1/me")).status_code == 401
    nobody = idle_stage.client_with(None)
    basic = await nobody.get("/v1/me", headers={"Authorization": f"Basic {made.secret}"})
    assert basic.status_code == 401
    queried = await nobody.get("/v1/me", params={"key": made.secret, "api_key": made.secret})
    assert queried.status_code == 401
    assert (await idle_stage.client_with(made.secret).get("/v1/me")).status_code == 200


async def test_a_key_ends_with_its_time() -> None:
    store, clock = MemoryStore(), [0.0]
    keys = ApiKeys(store, lambda: clock[0])
    made = await create_api_key(store, "anna", "brief", expires_in=0.2)
    assert (await keys.authenticate(made.secret)) is not None
    await asyncio.sleep(0.25)
    assert (await keys.authenticate(made.secret)) is None


async def test_a_revocation_elsewhere_is_seen_within_seconds() -> None:
    store, clock = MemoryStore(), [0.0]
    keys = ApiKeys(store, lambda: clock[0])
    made = await create_api_key(store, "anna", "shared", ["read", "admin"])
    principal = await keys.authenticate(made.secret)
    assert principal is not None
    assert principal.user_id == "anna"
    assert principal.scopes == {"read", "admin"}
    await revoke_api_key(store, made.key.id)
    clock[0] = 4.9
    assert await keys.is_valid(made.key.id)
    clock[0] = 5.0
    assert not await keys.is_valid(made.key.id)
    assert await keys.authenticate(made.secret) is None


async def test_no_later_write_undoes_a_revocation_and_uses_are_written_rarely() -> None:
    store = CountingStore()
    keys = ApiKeys(store)
    made = await create_api_key(store, "anna", "test")
    for _ in range(10):
        await keys.authenticate(made.secret)
    used = f"{api_key_prefix(made.key.id)}used.json"
    assert store.writes.count(used) == 1
    await revoke_api_key(store, made.key.id)
    await revoke_api_key(store, made.key.id)
    await keys.authenticate(made.secret)
    assert await read_api_key(store, made.key.id) is None
    found = await find_api_key(store, "anna", made.key.id)
    assert found is not None
    assert found.revoked


async def test_the_store_has_no_secret_and_a_damaged_key_is_none() -> None:
    store = MemoryStore()
    made = await create_api_key(store, "anna", "test", expires_in=60)
    parts = API_KEY.fullmatch(made.secret)
    assert parts is not None
    bodies = [await store.read(key) or b"" for key in await store.list("")]
    assert not [body for body in bodies if parts[2].encode() in body]
    [listed] = await list_api_keys(store, "anna")
    assert listed == made.key
    expires = datetime.fromisoformat(listed.expires or "")
    assert timedelta(0) < expires - datetime.now(UTC) <= timedelta(seconds=60)
    await store.replace(f"{api_key_prefix(made.key.id)}key.json", b"{}")
    with pytest.raises(Altered):
        await read_api_key(store, made.key.id)


async def test_the_user_of_a_key_and_its_id_lead_nowhere_else() -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match="a user id"):
        await create_api_key(store, "../anna", "test")
    assert await find_api_key(store, "anna", "../../users") is None
    with pytest.raises(ValueError, match="API key"):
        await revoke_api_key(store, "..")
    assert await store.list("") == []

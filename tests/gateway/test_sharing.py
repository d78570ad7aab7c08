"""Lists of what others share, and the audit of grants."""

import json
import logging
from typing import Any

import httpx
import pytest

from tests.gateway.following.test_connections import run_batch
from tests.gateway.stage import GatewayStage
from tests.gateway.test_limits import audit_records
from tests.harness import text_answer


async def shared(client: httpx.AsyncClient, path: str = "", **query: Any) -> dict[str, Any]:
    response = await client.get(f"/v1/shared{path}", params=query)
    assert response.status_code == 200, response.text
    return dict(response.json())


@pytest.mark.long
async def test_shared_conversations_are_listed_page_by_page(stage: GatewayStage) -> None:
    names = [await stage.start(text_answer("One.")) for _ in range(5)]
    for name in names:
        await stage.wait_until(name, "finished")
        path = f"/v1/conversations/{name}"
        await stage.anna.patch(path, json={"title": f"Plan {names.index(name)}"})
        await stage.anna.put(f"{path}/grants/ben", json={"access": "write"})
    await stage.anna.delete(f"/v1/conversations/{names[3]}/grants/ben")
    await stage.anna.delete(f"/v1/conversations/{names[1]}")
    found, cursor = [], None
    while True:
        page = await shared(stage.ben, limit=1, **({"cursor": cursor} if cursor else {}))
        found += page["items"]
        if (cursor := page.get("next_cursor")) is None:
            break
    assert [item["id"] for item in found] == [names[4], names[2], names[0]]
    assert {(item["owner"], item["access"]) for item in found} == {("anna", "write")}
    assert found[0]["status"]["title"] == "Plan 4"
    [named] = (await shared(stage.ben, text="plan 2"))["items"]
    assert named["id"] == names[2]
    assert (await shared(stage.ben, status="error"))["items"] == []
    assert (await shared(stage.anna))["items"] == []
    refused = await stage.ben.get("/v1/shared", params={"cursor": "none"})
    assert refused.status_code == 422
    own = (await stage.ben.get("/v1/conversations")).json()["items"]
    assert own == []


@pytest.mark.long
async def test_a_shared_batch_is_listed_read_and_steered(
    stage: GatewayStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.gateway.audit")
    path, _ = await run_batch(stage)
    name, query = path.rpartition("/")[2], {"owner": "anna"}
    assert (await stage.ben.put(f"{path}/grants/carl", json={}, params=query)).status_code == 404
    granted = await stage.anna.put(f"{path}/grants/ben", json={"access": "write"})
    assert granted.json() == {"user_id": "ben", "access": "write"}
    [item] = (await shared(stage.ben, "/batches"))["items"]
    assert (item["name"], item["owner"], item["access"]) == (name, "anna", "write")
    assert (await shared(stage.ben, "/batches", cursor=f"{name}/anna"))["items"] == []
    shown = (await stage.ben.get(path, params=query)).json()
    assert (shown["owner"], shown["access"]) == ("anna", "write")
    own = (await stage.anna.get(path)).json()
    assert (own["owner"], own["access"]) == ("anna", "owner")
    assert (await stage.ben.post(f"{path}/pause", params=query)).status_code == 409
    refused = await stage.ben.post(f"{path}/retry", json={}, params=query)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert (await stage.anna.delete(f"{path}/grants/ben")).status_code == 204
    assert (await stage.ben.get(path, params=query)).status_code == 404
    assert (await shared(stage.ben, "/batches"))["items"] == []
    lines = [json.loads(record.message) for record in audit_records(caplog)]
    acts = [line for line in lines if line["act"] in ("grant", "revoke")]
    assert [(it["act"], it["user"], it["path"]) for it in acts] == [
        ("grant", "anna", f"{path}/grants/ben"),
        ("revoke", "anna", f"{path}/grants/ben"),
    ]
    assert (acts[0]["to"], acts[0]["access"], acts[1]["of"]) == ("ben", "write", "ben")
    assert any((it["act"], it.get("user")) == ("refused", "ben") for it in lines)

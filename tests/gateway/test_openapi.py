"""The description of the native API is exact, and it is the one in the repository."""

import json
from typing import Any

import httpx
import pytest

from tests.gateway.stage import GatewayStage
from tests.record_openapi import OPENAPI, describe_api, encode

ABSENT = {
    "conversation_id": "00000000-0000-7000-8000-000000000000",
    "key_id": "0" * 16,
    "user_id": "nobody",
    "sha256": "0" * 64,
    "path": "none.txt",
    "name": "none",
    "session_id": "none",
}
"""Values of path parameters that name nothing."""

OPEN = ("/health", "/ready", "/v1/login", "/v1/posts/{address_id}/{secret}")


async def test_the_description_is_the_one_in_the_repository() -> None:
    assert encode(await describe_api()) == OPENAPI.read_text(), (
        "run python -m tests.record_openapi and read what has changed for clients"
    )


def operations() -> list[Any]:
    return [
        pytest.param(method.upper(), path, operation, id=f"{method} {path}")
        for path, methods in json.loads(OPENAPI.read_text())["paths"].items()
        for method, operation in methods.items()
    ]


def example(schema: dict[str, Any]) -> Any:
    """Return a value of a body that fits its schema, by its required fields alone."""
    whole = json.loads(OPENAPI.read_text())["components"]["schemas"]
    if "$ref" in schema:
        schema = whole[schema["$ref"].rpartition("/")[2]]
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {name: example(fields[name]) for name in schema.get("required", ())}
        case "array":
            return [example(schema["items"])] * schema.get("minItems", 0)
        case "string":
            return "x"
        case "boolean":
            return True
        case _:
            return {}


async def ask(client: httpx.AsyncClient, method: str, path: str, operation: Any) -> httpx.Response:
    for name, value in ABSENT.items():
        path = path.replace(f"{{{name}}}", value)
    body = operation.get("requestBody")
    sent = example(body["content"]["application/json"]["schema"]) if body else None
    return await client.request(method, path, json=sent, timeout=20)


@pytest.mark.parametrize(("method", "path", "operation"), operations())
async def test_each_route_asks_for_a_key_and_answers_as_it_says(
    idle_stage: GatewayStage, method: str, path: str, operation: dict[str, Any]
) -> None:
    nobody = idle_stage.client_with(None)
    strange = await ask(nobody, method, path, operation)
    if path not in OPEN:
        assert strange.status_code == 401
        assert strange.headers["www-authenticate"] == "Bearer"
        assert strange.headers["content-type"] == "application/problem+json"
    if "feed" in path or "stream" in path:
        return  # it never ends
    answer = await ask(idle_stage.ben, method, path, operation)
    assert str(answer.status_code) in operation["responses"]
    if "{" in path:
        assert answer.status_code in (404, 422), answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"].endswith((".", "!", "?"))


@pytest.mark.parametrize("body", [b"\xff\xfe", b"{", b"[]", b"null", b'"x"', b"[" * 100_000])
async def test_a_body_that_is_none_is_a_422(idle_stage: GatewayStage, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    for path in ("/v1/conversations", "/v1/login", "/v1/keys"):
        refused = await idle_stage.anna.post(path, content=body, headers=headers)
        assert refused.status_code == 422, refused.text
        assert refused.headers["content-type"] == "application/problem+json"
    form = await idle_stage.anna.post("/v1/conversations", data={"text": "x"})
    assert form.status_code == 422


async def test_a_wrong_method_or_address_is_a_problem(idle_stage: GatewayStage) -> None:
    wrong = await idle_stage.anna.put("/v1/conversations")
    assert wrong.status_code == 405
    assert wrong.headers["allow"] == "GET, POST"
    one = await idle_stage.anna.put(f"/v1/conversations/{ABSENT['conversation_id']}")
    assert one.headers["allow"] == "DELETE, GET, PATCH"
    for path in ("/v1/none", "/v1/conversations/", "/v2/me", "//v1/me"):
        absent = await idle_stage.anna.get(path)
        assert absent.status_code in (404, 405)
        assert absent.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/conversations/{id}/events", {"after_seq": 2**60}),
        ("/v1/conversations/{id}/events", {"limit": 0}),
        ("/v1/conversations/{id}/events", {"limit": "x"}),
        ("/v1/conversations/{id}/events", {"before_seq": -1}),
        ("/v1/conversations/{id}/turn", {"wait": 1e9}),
        ("/v1/conversations/{id}", {"owner": "../anna"}),
        ("/v1/conversations/{id}", {"owner": "a" * 200}),
        ("/v1/conversations/not-a-uuid", {}),
        ("/v1/conversations", {"status": "nonsense"}),
        ("/v1/conversations", {"cursor": "x" * 600}),
        ("/v1/batches/..", {}),
        ("/v1/batches/a%2fb", {}),
    ],
)
async def test_a_parameter_that_is_none_is_refused(
    idle_stage: GatewayStage, path: str, query: dict[str, Any]
) -> None:
    refused = await idle_stage.anna.get(
        path.replace("{id}", ABSENT["conversation_id"]), params=query
    )
    assert refused.status_code in (404, 422), refused.text
    assert refused.json()["detail"]


async def test_every_answer_has_headers_that_protect_browsers(idle_stage: GatewayStage) -> None:
    for path in ("/v1/me", "/v1/none", "/health"):
        answer = await idle_stage.anna.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers

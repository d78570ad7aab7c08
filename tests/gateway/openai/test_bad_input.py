"""Bad input is answered in OpenAI's shape, with a sentence and the field."""

import contextlib
from typing import Any

import pytest

from tests.gateway.openai.stage import OpenAiStage

HELLO = [{"role": "user", "content": "Hello?"}]
CHAT, RESPONSES = "/chat/completions", "/responses"
NOWHERE = f"conv_{'0' * 32}"

BAD: dict[str, tuple[str, Any, int, str, str | None]] = {
    "no body": (CHAT, None, 400, "invalid_value", "model"),
    "no object": (CHAT, [1], 400, "invalid_value", None),
    "no messages": (CHAT, {"model": "adder", "messages": []}, 400, "invalid_value", "messages"),
    "an unknown agent": (CHAT, {"model": "x", "messages": HELLO}, 404, "model_not_found", "model"),
    "tools": (
        CHAT,
        {"model": "adder", "messages": HELLO, "tools": [{"type": "function"}]},
        *(400, "unsupported_parameter", "tools"),
    ),
    "two answers": (
        CHAT,
        {"model": "adder", "messages": HELLO, "n": 2},
        *(400, "unsupported_parameter", "n"),
    ),
    "a schema": (
        CHAT,
        {"model": "adder", "messages": HELLO, "response_format": {"type": "json_object"}},
        *(400, "unsupported_parameter", "response_format"),
    ),
    "an unknown role": (
        CHAT,
        {"model": "adder", "messages": [{"role": "king", "content": "Hello?"}]},
        *(400, "invalid_value", "messages[0].role"),
    ),
    "an unknown part": (
        CHAT,
        {"model": "adder", "messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
        *(400, "unsupported_value", "messages[0].content[0]"),
    ),
    "an answer at the end": (
        CHAT,
        {"model": "adder", "messages": [*HELLO, {"role": "assistant", "content": "Hi."}]},
        *(400, "invalid_value", "messages"),
    ),
    "an empty message": (
        CHAT,
        {"model": "adder", "messages": [{"role": "user", "content": " "}]},
        *(400, "invalid_value", "messages"),
    ),
    "no input": (RESPONSES, {"model": "adder"}, 400, "invalid_value", "input"),
    "too much metadata": (
        RESPONSES,
        {"model": "adder", "input": "Hi.", "metadata": {str(n): "x" for n in range(17)}},
        *(400, "invalid_value", "metadata"),
    ),
    "two places": (
        RESPONSES,
        {
            "model": "adder",
            "input": "Hi.",
            "conversation": NOWHERE,
            "previous_response_id": f"resp_{'0' * 32}_3",
        },
        *(400, "mutually_exclusive_parameters", "previous_response_id"),
    ),
    "an unknown conversation": (
        RESPONSES,
        {"model": "adder", "input": "Hi.", "conversation": NOWHERE},
        *(404, "not_found", None),
    ),
    "no conversation": (
        RESPONSES,
        {"model": "adder", "input": "Hi.", "conversation": "../x"},
        *(404, "not_found", None),
    ),
    "an unknown response": (
        RESPONSES,
        {"model": "adder", "input": "Hi.", "previous_response_id": f"resp_{'0' * 32}_3"},
        *(400, "previous_response_not_found", "previous_response_id"),
    ),
    "what is not stored, in the background": (
        RESPONSES,
        {"model": "adder", "input": "Hi.", "background": True, "store": False},
        *(400, "invalid_value", "background"),
    ),
    "an approval of nothing": (
        RESPONSES,
        {
            "model": "adder",
            "input": [
                {
                    "type": "mcp_approval_response",
                    "approval_request_id": "mcpr_x",
                    "approve": True,
                }
            ],
        },
        *(400, "invalid_value", "input"),
    ),
    "items of a conversation": (
        "/conversations",
        {"items": [{"type": "message", "role": "user", "content": "Hi."}]},
        *(400, "unsupported_parameter", "items"),
    ),
    "an address that is none": ("/completions", {"model": "adder"}, 404, "not_found", None),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_input_is_named(openai_stage: OpenAiStage, name: str) -> None:
    path, body, status, code, param = BAD[name]
    response = await openai_stage.gateway.anna.post(f"/openai/v1{path}", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["message"].endswith(".")
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"\xff", b"{", b"[" * 100_000, b'{"model": "\\ud800"}'])
async def test_a_body_that_cannot_be_read_is_refused(
    openai_stage: OpenAiStage, body: bytes
) -> None:
    response = await openai_stage.gateway.anna.post(f"/openai/v1{CHAT}", content=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_value")


async def test_instructions_and_agents_of_a_conversation_do_not_change(
    openai_stage: OpenAiStage,
) -> None:
    responses = openai_stage.gateway.anna
    body = {"model": "adder", "input": "Hi.", "instructions": "Be brief."}
    first = (await responses.post("/openai/v1/responses", json=body)).json()
    chained = {**body, "previous_response_id": first["id"]}
    changed = await responses.post(
        "/openai/v1/responses", json={**chained, "instructions": "Be long."}
    )
    assert changed.json()["error"]["code"] == "instructions_changed"
    settings, ignore = (
        openai_stage.gateway.gateway.settings,
        {"gateway_openai_instructions": "ignore"},
    )
    openai_stage.gateway.gateway.settings = settings.model_copy(update=ignore)
    ignored = await responses.post(
        "/openai/v1/responses", json={**chained, "instructions": "Be long."}
    )
    openai_stage.gateway.gateway.settings = settings
    assert ignored.status_code == 200
    other = await responses.post("/openai/v1/responses", json={**chained, "model": "asker"})
    assert other.json()["error"]["code"] == "model_mismatch"
    assert (await responses.post("/openai/v1/responses", json=chained)).status_code == 200


async def test_a_key_is_asked_for_and_has_to_have_the_scope(openai_stage: OpenAiStage) -> None:
    stage = openai_stage.gateway
    for secret in (None, "pk_0000000000000000_" + "a" * 43):
        response = await stage.client_with(secret).get("/openai/v1/models")
        assert (response.status_code, response.json()["error"]["code"]) == (401, "invalid_api_key")
    client = await stage.client("anna", ["read"])
    assert (await client.get("/openai/v1/models")).status_code == 200
    refused = await client.post(f"/openai/v1{CHAT}", json={"model": "adder", "messages": HELLO})
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")


async def test_a_method_that_an_address_does_not_take_is_refused(
    openai_stage: OpenAiStage,
) -> None:
    response = await openai_stage.gateway.anna.put("/openai/v1/models")
    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")
    assert "GET" in response.headers["allow"]


async def test_a_body_that_is_too_large_is_refused_in_openais_shape(
    openai_stage: OpenAiStage,
) -> None:
    body = b" " * (8 * 1024 * 1024 + 1)
    response = await openai_stage.gateway.anna.post(f"/openai/v1{CHAT}", content=body)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
    host = {"Host": "elsewhere.example.org"}
    response = await openai_stage.gateway.anna.get("/openai/v1/models", headers=host)
    assert (response.status_code, response.json()["error"]["code"]) == (421, "unknown_host")


CANARY = "sk-canary-1234567890"


async def test_nothing_of_a_clients_keys_is_kept_or_logged(
    openai_stage: OpenAiStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "perdure")
    stage = openai_stage.gateway
    headers = {"x-api-key": CANARY, "api-key": CANARY, "OpenAI-Organization": CANARY}
    body = {"model": "adder", "messages": HELLO, "api_key": CANARY, "user": CANARY}
    done = await stage.anna.post(f"/openai/v1{CHAT}", json=body, headers=headers)
    assert done.status_code == 200
    assert CANARY not in done.text
    wrong = {"model": "adder", "messages": HELLO, "metadata": {"key": [CANARY]}}
    refused = await stage.anna.post(f"/openai/v1{CHAT}", json=wrong)
    assert CANARY not in refused.text + caplog.text
    files = [path for path in stage.harness.folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # a draft that has become an object
            assert CANARY.encode() not in path.read_bytes(), path

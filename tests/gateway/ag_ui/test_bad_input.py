"""Bad input is refused with one sentence, which says what to do."""

import uuid
from typing import Any

import pytest

from tests.gateway.ag_ui.stage import AgUiStage, ask, kinds, user

RESUMED = {"interruptId": "c", "status": "resolved"}
SOUND = {"type": "audio", "source": {"type": "url", "value": "https://example.org/a.mp3"}}
HANDLE = {"type": "image", "source": {"type": "file", "value": "file-1"}}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no thread": ({"threadId": None}, "threadId: "),
    "an empty thread": ({"threadId": ""}, "threadId: "),
    "no run": ({"runId": 7}, "runId: "),
    "no messages": ({"messages": None}, "messages: "),
    "an unknown role": ({"messages": [{"id": "1", "role": "king"}]}, "messages.0.role: "),
    "a message without an id": ({"messages": [{"role": "user"}]}, "messages.0.id: "),
    "an empty message": ({"messages": [user(" ")]}, "messages[0]: the message is empty"),
    "no content": ({"messages": [user(None)]}, "content."),
    "sounds": ({"messages": [user([SOUND])]}, "messages[0].content[0]: agents read texts"),
    "a file of a provider": ({"messages": [user([HANDLE])]}, "content[0].source: an image comes"),
    "tools": ({"tools": [{"name": "alert", "description": "Shows it."}]}, "tools: an agent has"),
    "a context that is none": ({"context": [{"description": "x"}]}, "context.0.value: "),
    "an answer that is none": ({"resume": [{"interruptId": "c"}]}, "resume.0.status: "),
    "an answer without a decision": ({"resume": [RESUMED]}, "resume[0].payload: send `approved`"),
    "an answer twice": (
        {"resume": [{**RESUMED, "status": "cancelled"}] * 2},
        "resume: an interrupt is answered twice",
    ),
    "an answer to nothing": (
        {"messages": [], "resume": [{**RESUMED, "status": "cancelled"}]},
        "resume: nothing waits for an answer to c",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_input_is_refused_with_a_sentence(ag_ui_stage: AgUiStage, name: str) -> None:
    fields, sentence = BAD[name]
    body = {**ask(user("Hello?")), **fields}
    response = await ag_ui_stage.gateway.anna.post("/ag-ui/adder", json=body)
    problem = response.json()
    assert (response.status_code, problem["status"]) == (422, 422)
    assert sentence in problem["detail"]
    assert problem["detail"].endswith(".")


@pytest.mark.parametrize("body", [b"", b"\xff", b"{", b"[" * 100_000, b'{"threadId": "\\ud800"}'])
async def test_a_body_that_cannot_be_read_is_refused(ag_ui_stage: AgUiStage, body: bytes) -> None:
    response = await ag_ui_stage.gateway.anna.post("/ag-ui/adder", content=body)
    assert (response.status_code, response.json()["code"]) == (422, "invalid")


async def test_what_is_not_there_or_not_allowed_is_refused(ag_ui_stage: AgUiStage) -> None:
    stage, body = ag_ui_stage.gateway, ask(user("Hello?"))
    reader, other = await stage.client("anna", ["read"]), await stage.client("anna")
    found = [
        await stage.anna.post("/ag-ui/nobody", json=body),
        await stage.anna.post("/ag-ui/adder/more", json=body),
        await stage.anna.get("/ag-ui/adder"),
        await stage.client_with(None).post("/ag-ui/adder", json=body),
        await reader.post("/ag-ui/adder", json=body),
        await other.post("/ag-ui/adder", content=b" " * (8 * 1024 * 1024 + 1)),
    ]
    assert [each.status_code for each in found] == [404, 404, 405, 401, 403, 413]
    assert all(each.json()["detail"].endswith(".") for each in found)
    assert found[2].headers["allow"] == "POST"


async def test_nothing_begins_with_a_request_that_is_refused(ag_ui_stage: AgUiStage) -> None:
    body = ask(user("Hello?"), threadId=str(uuid.uuid4()), tools=[{"name": "alert"}])
    await ag_ui_stage.gateway.anna.post("/ag-ui/adder", json=body)
    shown = await ag_ui_stage.gateway.anna.get(f"/v1/conversations/{body['threadId']}")
    assert shown.status_code == 404


@pytest.mark.long
async def test_tools_of_a_client_are_read_over_where_the_installation_says_so(
    ag_ui_stage: AgUiStage,
) -> None:
    gateway = ag_ui_stage.gateway.gateway
    settings = gateway.settings
    gateway.settings = settings.model_copy(update={"gateway_ag_ui_tools": "ignore"})
    events = await ag_ui_stage.run("adder", ask(user("2 + 3?"), tools=[{"name": "alert"}]))
    gateway.settings = settings
    assert kinds(events)[-1] == "RUN_FINISHED"


@pytest.mark.long
async def test_a_thread_keeps_the_agent_that_it_has_begun_with(ag_ui_stage: AgUiStage) -> None:
    body = ask(user("2 + 3?"))
    await ag_ui_stage.run("adder", body)
    other = {**body, "messages": [user("Hello?")]}
    response = await ag_ui_stage.gateway.anna.post("/ag-ui/asker", json=other)
    assert (response.status_code, response.json()["code"]) == (422, "agent_mismatch")
    assert "adder" in response.json()["detail"]


@pytest.mark.long
async def test_a_thread_that_was_deleted_is_not_found(ag_ui_stage: AgUiStage) -> None:
    body = ask(user("2 + 3?"))
    await ag_ui_stage.run("adder", body)
    await ag_ui_stage.gateway.anna.delete(f"/v1/conversations/{body['threadId']}")
    response = await ag_ui_stage.gateway.anna.post("/ag-ui/adder", json=body)
    assert response.status_code == 404


CANARY = "sk-canary-violet-4711"


@pytest.mark.long
async def test_nothing_of_what_is_read_over_is_kept_or_logged(
    ag_ui_stage: AgUiStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "perdure")
    stage = ag_ui_stage.gateway
    secret = {"forwardedProps": {"api_key": CANARY}, "state": {"key": CANARY}}
    await ag_ui_stage.run("adder", ask(user("2 + 3?"), **secret))
    wrong = ask(user("2 + 3?"), **secret, resume=[{"interruptId": [CANARY]}])
    refused = await stage.anna.post("/ag-ui/adder", json=wrong)
    assert CANARY not in refused.text + caplog.text
    files = [path for path in stage.harness.folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []

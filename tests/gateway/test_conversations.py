"""Conversations through the native API."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from perdure.client.ids import new_conversation_id
from tests.gateway.stage import GatewayStage, as_json
from tests.harness import text_answer, tool_call_answer

ASKS = {"policy": "always"}


async def test_a_conversation_is_started_and_read_through_the_gateway(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("It is 5."), text_answer("Bye."))
    shown = await stage.wait_until(name, "finished")
    assert shown["owner"] == "anna"
    assert shown["access"] == "owner"
    page = await events(stage.anna, name)
    assert [item["seq"] for item in page["items"]] == list(range(page["end_seq"]))
    sent = await stage.anna.post(f"/v1/conversations/{name}/messages", json={"text": "And now?"})
    assert sent.status_code == 200, sent.text
    assert sent.json()["seq"] >= page["end_seq"]
    assert sent.json()["event_id"]


async def events(client: httpx.AsyncClient, name: str, **query: Any) -> dict[str, Any]:
    response = await client.get(f"/v1/conversations/{name}/events", params=query)
    assert response.status_code == 200, response.text
    return dict(response.json())


@pytest.mark.long
async def test_a_conversation_may_begin_without_a_message_and_with_a_title(
    stage: GatewayStage,
) -> None:
    agent = as_json(stage.harness.spec(text_answer("Here I am.")))
    body = {"agent": agent, "title": "Waiting", "tags": ["one", "two"]}
    started = await stage.anna.post("/v1/conversations", json=body)
    assert started.status_code == 201, started.text
    name = started.json()["id"]
    assert started.headers["location"] == f"/v1/conversations/{name}"
    path = f"/v1/conversations/{name}"
    while (status := (await stage.anna.get(path)).json()["status"])["title"] != "Waiting":
        await asyncio.sleep(0.05)
    assert (status["status"], status["turn"], status["tags"]) == ("idle", 0, ["one", "two"])
    await stage.anna.post(f"{path}/messages", json={"text": "Are you there?"})
    assert (await stage.wait_until(name, "finished"))["status"]["title"] == "Waiting"


@pytest.mark.long
async def test_the_end_of_a_turn_is_awaited(stage: GatewayStage) -> None:
    name = await stage.start({"content": "Slowly.", "delay": 0.5}, text_answer("Twice."))
    path = f"/v1/conversations/{name}"
    hurried = (await stage.anna.get(f"{path}/turn", params={"wait": 0})).json()
    assert (hurried["ended"], hurried["text"]) == (False, "")
    patient = (await stage.anna.get(f"{path}/turn", params={"wait": 30})).json()
    assert (patient["ended"], patient["text"], patient["status"]) == (True, "Slowly.", "finished")
    late = (await stage.anna.get(f"{path}/turn", params={"wait": 0})).json()
    assert (late["ended"], late["text"]) == (True, "Slowly."), "it ended before anybody asked"
    sent = await stage.anna.post(
        f"{path}/messages", json={"text": "Again", "message_id": "second", "wait": False}
    )
    assert sent.status_code == 200
    assert sent.json() is None
    query: dict[str, str | int] = {"message_id": "second", "wait": 30}
    second = (await stage.anna.get(f"{path}/turn", params=query)).json()
    assert (second["ended"], second["text"]) == (True, "Twice.")


@pytest.mark.long
async def test_a_repeated_request_starts_and_sends_nothing_more(stage: GatewayStage) -> None:
    agent = as_json(stage.harness.spec(text_answer("One."), text_answer("Two.")))
    headers = {"Idempotency-Key": f"start {uuid4()}"}
    body = {"text": "Begin", "agent": agent, "title": "Once"}
    first = await stage.anna.post("/v1/conversations", json=body, headers=headers)
    again = await stage.anna.post("/v1/conversations", json=body, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200)
    name = first.json()["id"]
    assert again.json()["id"] == name
    await stage.wait_until(name, "finished")
    third = await stage.anna.post("/v1/conversations", json=body, headers=headers)
    assert third.json()["id"] == name
    path = f"/v1/conversations/{name}/messages"
    headers = {"Idempotency-Key": "message"}
    sent = await stage.anna.post(path, json={"text": "Next"}, headers=headers)
    repeated = await stage.anna.post(path, json={"text": "Next"}, headers=headers)
    assert sent.json() == repeated.json()
    other = await stage.anna.post(path, json={"text": "Other"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    page = await events(stage.anna, name, kind="MessageEvent")
    texts = [item["llm_message"]["content"][0]["text"] for item in page["items"]]
    assert texts.count("Begin") == texts.count("Next") == 1
    others = await stage.ben.post("/v1/conversations", json=body, headers={"Idempotency-Key": "x"})
    assert others.json()["id"] != name


@pytest.mark.long
async def test_events_are_paged_both_ways_and_by_kind(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("It is 5."))
    await stage.wait_until(name, "finished")
    whole = await events(stage.anna, name)
    end, seqs = whole["end_seq"], [item["seq"] for item in whole["items"]]
    assert end >= 4
    forward, after = [], -1
    while True:
        page = await events(stage.anna, name, after_seq=after, limit=2)
        forward += [item["seq"] for item in page["items"]]
        assert (page["from_seq"], page["end_seq"]) == (after + 1, end)
        after = page["through_seq"]
        if not page["has_more"]:
            break
    backward: list[int] = []
    before = end
    while True:
        page = await events(stage.anna, name, before_seq=before, limit=2)
        backward = [item["seq"] for item in page["items"]] + backward
        before = page["from_seq"]
        if not page["has_more"]:
            break
    assert forward == backward == seqs
    messages = [item["seq"] for item in whole["items"] if item["kind"] == "MessageEvent"]
    for query in ({"limit": 1}, {"limit": 1, "before_seq": end}):
        found = await events(stage.anna, name, kind="MessageEvent", **query)
        expected = messages[0] if "before_seq" not in query else messages[-1]
        assert [item["seq"] for item in found["items"]] == [expected]
        assert found["has_more"] is True
    assert (await events(stage.anna, name, after_seq=10_000))["items"] == []


@pytest.mark.long
async def test_a_page_that_is_known_is_not_sent_again(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("It is 5."), text_answer("It is 6."))
    await stage.wait_until(name, "finished")
    path = f"/v1/conversations/{name}/events"
    first = await stage.anna.get(path)
    headers = {"If-None-Match": first.headers["etag"]}
    again = await stage.anna.get(path, headers=headers)
    assert (again.status_code, again.content) == (304, b"")
    other = await stage.anna.get(path, params={"limit": 1}, headers=headers)
    assert other.status_code == 200
    assert (await stage.ben.get(path, headers=headers)).status_code == 404
    await stage.anna.post(f"/v1/conversations/{name}/messages", json={"text": "And 3 + 3?"})
    assert (await stage.anna.get(path, headers=headers)).status_code == 200


@pytest.mark.long
async def test_actions_wait_for_a_person_who_accepts_or_rejects_them(stage: GatewayStage) -> None:
    answers = (
        tool_call_answer(("add", {"a": 1, "b": 2})),
        tool_call_answer(("add", {"a": 1, "b": 2})),
        text_answer("Done."),
    )
    name = await stage.start(*answers, confirmation=ASKS)
    path = f"/v1/conversations/{name}"
    shown = await stage.wait_until(name, "waiting_for_confirmation")
    [call] = shown["status"]["pending"]
    unknown = await stage.anna.post(f"{path}/respond", json={"accept": True, "calls": ["none"]})
    assert unknown.status_code == 422, unknown.text
    body = {"accept": True, "calls": [call["tool_call_id"]]}
    accepted = await stage.anna.post(f"{path}/respond", json=body)
    assert accepted.json() == {"calls": [call["tool_call_id"]]}
    while (await stage.wait_until(name, "waiting_for_confirmation"))["status"]["pending"] == [call]:
        await asyncio.sleep(0.05)
    unseen = await stage.anna.post(f"{path}/respond", json={"accept": False, "reason": "No."})
    assert unseen.status_code == 422
    through = (await events(stage.anna, name))["end_seq"]
    body = {"accept": False, "reason": "No.", "through": through}
    rejected = await stage.anna.post(f"{path}/respond", json=body)
    assert rejected.status_code == 200, rejected.text
    assert (await stage.wait_until(name, "finished"))["status"]["pending"] == []


@pytest.mark.long
async def test_a_conversation_is_paused_resumed_interrupted_condensed_and_closed(
    stage: GatewayStage,
) -> None:
    name = await stage.start(text_answer("One."), {"content": "Two.", "delay": 30})
    path = f"/v1/conversations/{name}"
    await stage.wait_until(name, "finished")
    assert (await stage.anna.post(f"{path}/pause")).status_code == 204
    await stage.wait_until(name, "paused")
    assert (await stage.anna.post(f"{path}/resume")).status_code == 204
    await stage.wait_until(name, "finished", "idle")
    await stage.anna.post(f"{path}/messages", json={"text": "More"})
    await stage.wait_until(name, "running")
    assert (await stage.anna.post(f"{path}/interrupt")).status_code == 204
    await stage.wait_until(name, "idle", "paused")
    assert (await stage.anna.post(f"{path}/condense")).status_code == 204
    assert (await stage.anna.post(f"{path}/reopen")).json()["outcome"] in ("running", "at_rest")
    assert (await stage.anna.post(f"{path}/close")).status_code == 204
    await stage.wait_until(name, "closed")
    late = await stage.anna.post(f"{path}/messages", json={"text": "Hello?"})
    assert (late.status_code, late.json()["code"]) == (409, "conflict")


@pytest.mark.long
async def test_what_is_noted_and_configured_is_shown(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("One."))
    path = f"/v1/conversations/{name}"
    await stage.wait_until(name, "finished")
    noted = await stage.anna.patch(path, json={"title": "A", "tags": ["x"], "state": {"k": [1]}})
    assert noted.status_code == 200, noted.text
    assert (noted.json()["status"]["title"], noted.json()["status"]["tags"]) == ("A", ["x"])
    values = (await stage.anna.get(f"{path}/values")).json()
    assert values == {"values": {"k": [1]}, "versions": {}}
    assert (await stage.anna.patch(path, json={})).status_code == 422
    changes = {"changes": {"limits": {"max_iterations": 7}}}
    assert (await stage.anna.post(f"{path}/configure", json=changes)).status_code == 200
    wrong = await stage.anna.post(f"{path}/configure", json={"changes": {"workspace": "/etc"}})
    assert (wrong.status_code, "cannot be changed" in wrong.json()["detail"]) == (422, True)


@pytest.mark.long
async def test_a_value_that_others_share_is_replaced_by_those_who_have_read_it(
    stage: GatewayStage,
) -> None:
    name = await stage.start(text_answer("One."))
    path = f"/v1/conversations/{name}"
    await stage.wait_until(name, "finished")
    first = {"state": {"user:pet": "cat", "k": 1}}
    assert (await stage.anna.patch(path, json=first)).status_code == 200
    versions = (await stage.anna.get(f"{path}/values")).json()["versions"]
    assert list(versions) == ["user:pet"]
    second = {"state": {"user:pet": "dog"}, "versions": versions}
    assert (await stage.anna.patch(path, json=second)).status_code == 200
    refused = await stage.anna.patch(path, json=second)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert 'it is now "dog"' in refused.json()["detail"]
    forbidden = await stage.anna.patch(path, json={"state": {"app:motd": "hi"}})
    assert forbidden.status_code == 403
    for wrong in (
        {"state": {"user:pet": 1}, "versions": {"other": "1"}},
        {"state": {"user:pet": 1}, "versions": {"user:pet": 1}},
        {"state": {"user:a/b": 1}},
        {"versions": {"user:pet": "1"}},
    ):
        assert (await stage.anna.patch(path, json=wrong)).status_code == 422, wrong
    assert (await stage.ben.patch(path, json=first)).status_code == 404
    shown = (await stage.anna.get(path, params={"with_state": True})).json()
    assert shown["state"] == {"user:pet": "dog", "k": 1}
    assert (await stage.anna.get(path)).json().get("state") is None
    assert (await stage.ben.get(path, params={"with_state": True})).status_code == 404
    assert (await stage.anna.get(path, params={"with_state": "maybe"})).status_code == 422


@pytest.mark.long
async def test_a_closed_conversation_is_opened_again_on_request(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("One."), text_answer("Two."))
    path = f"/v1/conversations/{name}"
    await stage.wait_until(name, "finished")
    await stage.anna.post(f"{path}/close")
    await stage.wait_until(name, "closed")
    assert (await stage.anna.post(f"{path}/messages", json={"text": "On"})).status_code == 409
    body = {"text": "On", "reopen": True}
    assert (await stage.ben.post(f"{path}/messages", json=body)).status_code == 404
    assert (await stage.anna.post(f"{path}/messages", json=body)).status_code == 200
    await stage.wait_until(name, "finished")
    wrong = {"text": "On", "reopen": "yes"}
    assert (await stage.anna.post(f"{path}/messages", json=wrong)).status_code == 422
    for query in ({"active": "perhaps"}, {"app": "x" * 300}, {"cursor": "nonsense"}):
        assert (await stage.anna.get("/v1/conversations", params=query)).status_code == 422


@pytest.mark.long
async def test_a_fork_and_a_question_beside_the_conversation(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("One."))
    path = f"/v1/conversations/{name}"
    await stage.wait_until(name, "finished")
    end = (await events(stage.anna, name))["end_seq"]
    asked = await stage.anna.post(f"{path}/ask", json={"question": "Why?"})
    assert asked.json()["text"].startswith("ANSWER")
    assert (await events(stage.anna, name))["end_seq"] == end
    forked = await stage.anna.post(f"{path}/fork", json={"at": end - 1})
    assert forked.status_code == 201, forked.text
    assert forked.json()["at"] == end - 1
    fork = forked.json()["conversation_id"]
    shared = (await events(stage.anna, fork))["items"][:end]
    assert [item["origin"] for item in shared] == [
        item["origin"] for item in (await events(stage.anna, name))["items"]
    ]
    behind = await stage.anna.post(f"{path}/fork", json={"at": 5000})
    assert behind.status_code == 422


async def test_a_shared_conversation_is_read_and_steered_as_granted(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("One."), text_answer("Two."))
    path, query = f"/v1/conversations/{name}", {"owner": "anna"}
    await stage.wait_until(name, "finished")
    before = await stage.ben.get(path, params=query)
    assert before.status_code == 404
    granted = await stage.anna.put(f"{path}/grants/ben", json={"access": "read"})
    assert granted.json() == {"user_id": "ben", "access": "read"}
    shown = (await stage.ben.get(path, params=query)).json()
    assert (shown["owner"], shown["access"]) == ("anna", "read")
    assert (await events(stage.ben, name, owner="anna"))["items"]
    message = {"text": "Hello from Ben"}
    refused = await stage.ben.post(f"{path}/messages", json=message, params=query)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert (await stage.ben.get(path)).status_code == 404
    for call in (
        stage.ben.delete(path, params=query),
        stage.ben.get(f"{path}/grants", params=query),
        stage.ben.put(f"{path}/grants/eve", json={}, params=query),
    ):
        assert (await call).status_code == 403
    await stage.anna.put(f"{path}/grants/ben", json={"access": "write"})
    sent = await stage.ben.post(f"{path}/messages", json=message, params=query)
    assert sent.status_code == 200, sent.text
    listed = (await stage.anna.get(f"{path}/grants")).json()
    assert listed == {"items": [{"user_id": "ben", "access": "write"}]}
    assert (await stage.anna.delete(f"{path}/grants/ben")).status_code == 204
    assert (await stage.ben.get(path, params=query)).json() == before.json()


@pytest.mark.long
async def test_a_deleted_conversation_is_closed_and_gone_from_all_routes(
    stage: GatewayStage,
) -> None:
    name = await stage.start(text_answer("One."))
    path = f"/v1/conversations/{name}"
    await stage.wait_until(name, "finished")
    await stage.anna.put(f"{path}/grants/ben", json={"access": "read"})
    absent = await stage.anna.get(f"/v1/conversations/{new_conversation_id()}")
    assert (await stage.anna.delete(path)).status_code == 204
    gone = await stage.anna.get(path)
    assert gone.status_code == absent.status_code == 404
    assert gone.json().keys() == absent.json().keys()
    assert (await stage.anna.post(f"{path}/messages", json={"text": "?"})).status_code == 404
    assert (await stage.ben.get(path, params={"owner": "anna"})).status_code == 404
    assert name not in [item["id"] for item in (await conversations(stage.anna))["items"]]
    again = await stage.anna.post("/v1/conversations", json={"text": "?", "conversation_id": name})
    assert again.status_code == 404 or again.status_code == 422
    log = stage.gateway.client_for("anna").conversation(name).log
    assert await log.end() > 0


async def conversations(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    response = await client.get("/v1/conversations", params=query)
    assert response.status_code == 200, response.text
    return dict(response.json())


@pytest.mark.long
async def test_conversations_are_listed_page_by_page(stage: GatewayStage) -> None:
    names = []
    for number in range(5):
        names.append(await stage.start(text_answer("One."), text=f"Task {number}"))
        await stage.wait_until(names[-1], "finished")
    found, cursor = [], None
    while True:
        page = await conversations(stage.anna, limit=2, **({"cursor": cursor} if cursor else {}))
        assert len(page["items"]) <= 2
        found += page["items"]
        if (cursor := page["next_cursor"]) is None:
            break
    assert [item["id"] for item in found] == names[::-1]
    assert {item["owner"] for item in found} == {"anna"}
    assert found[0]["status"]["title"] == "Task 4"
    matching = await conversations(stage.anna, text="task 3", status="finished")
    assert [item["id"] for item in matching["items"]] == [names[3]]
    assert (await conversations(stage.anna, status="paused"))["items"] == []
    assert (await conversations(stage.anna, tag="none"))["items"] == []
    assert (await conversations(stage.ben))["items"] == []
    wrong = await stage.anna.get("/v1/conversations", params={"cursor": "bm9uZQ"})
    assert wrong.status_code == 422


@pytest.mark.long
async def test_nobody_without_a_key_is_answered(stage: GatewayStage) -> None:
    refused = await stage.client_with(None).get("/v1/me")
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.json()["code"] == "unauthorized"


async def test_who_asks_is_told_who_he_is(stage: GatewayStage) -> None:
    me = (await stage.ben.get("/v1/me")).json()
    assert me["user_id"] == "ben"
    assert me["scopes"] == ["admin", "read", "write"]

"""The routes and the socket of OpenHands' client, as requests on the wire."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import websockets
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from tests.gateway.stage import GatewayStage
from tests.harness import text_answer, tool_call_answer

pytestmark = pytest.mark.long

ROOT = "/openhands/api/conversations"


def start_body(stage: GatewayStage, *answers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    model = stage.harness.spec(*answers).model.name
    llm = {"model": model, "api_key": "sk-violet", "usage_id": "agent"}
    agent = {"kind": "Agent", "llm": llm, "tools": [{"name": "terminal"}]}
    return {"agent": agent, "tool_module_qualnames": {"terminal": "openhands.tools"}, **fields}


async def start(stage: GatewayStage, *answers: dict[str, Any], **fields: Any) -> str:
    made = await stage.anna.post(ROOT, json=start_body(stage, *answers, **fields))
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def key_of(client: httpx.AsyncClient) -> str:
    return client.headers["Authorization"].removeprefix("Bearer ")


@asynccontextmanager
async def open_socket(
    stage: GatewayStage, name: str, query: str = "", key: str | None = None
) -> AsyncIterator[ClientConnection]:
    """Open a socket as the client does: its first message has the key."""
    url = f"{stage.url.replace('http', 'ws')}/openhands/sockets/events/{name}{query}"
    async with websockets.connect(url) as socket:
        sent = {"type": "auth", "session_api_key": key or key_of(stage.anna)}
        await socket.send(json.dumps(sent))
        yield socket


async def receive_until_end(socket: ClientConnection) -> list[str]:
    """Receive until the whole state says that the conversation rests; name what came."""
    names: list[str] = []
    while True:
        event = json.loads(await asyncio.wait_for(socket.recv(), 60))
        names.append(event.get("key") or event["kind"])
        if event.get("key") == "full_state" and event["value"]["execution_status"] != "running":
            return names


async def close_code(stage: GatewayStage, name: str, key: str | None = None) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        async with open_socket(stage, name, key=key) as socket:
            await asyncio.wait_for(socket.recv(), 30)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


async def test_a_start_is_repeated_without_harm_and_a_deleted_one_comes_back(
    stage: GatewayStage,
) -> None:
    name = str(uuid.uuid4())
    body = start_body(stage, text_answer("Done."), conversation_id=name, max_iterations=5)
    first = await stage.anna.post(ROOT, json=body)
    again = await stage.anna.post(ROOT, json=body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"] == name
    assert "sk-violet" not in first.text
    assert first.json()["max_iterations"] == 5
    message = {"role": "user", "content": [{"type": "text", "text": "Go."}], "run": True}
    sent = await stage.anna.post(f"{ROOT}/{name}/events", json=message)
    assert sent.json() == {"success": True}
    await stage.wait_until(name, "finished")
    assert (await stage.anna.delete(f"{ROOT}/{name}")).status_code == 200
    for path in ("", "/events/search", "/agent_final_response"):
        assert (await stage.anna.get(f"{ROOT}/{name}{path}")).status_code == 404
    back = await stage.anna.post(ROOT, json=body)
    assert back.status_code == 200
    answer = await stage.anna.get(f"{ROOT}/{name}/agent_final_response")
    assert answer.json() == {"response": "Done."}


async def test_requests_that_do_not_fit_are_refused_in_openhands_words(
    stage: GatewayStage,
) -> None:
    anna, unknown = stage.anna, str(uuid.uuid4())
    nobody = stage.client_with(None)
    answers = {
        "no key": (await nobody.get(f"{ROOT}/search"), 401, "Unauthorized"),
        "no UUID": (await anna.get(f"{ROOT}/x"), 422, "valid UUID"),
        "unknown": (await anna.get(f"{ROOT}/{unknown}"), 404, unknown),
        "no JSON": (await anna.post(ROOT, content=b"{"), 422, "no JSON"),
        "no agent": (await anna.post(ROOT, json={}), 422, "agent"),
        "limit": (await anna.get(f"{ROOT}/search", params={"limit": 101}), 422, "limit"),
        "model": (
            await anna.post(ROOT, json={"agent": {"llm": {}, "tools": []}}),
            422,
            "names no model",
        ),
    }
    for what, (response, status, words) in answers.items():
        assert response.status_code == status, (what, response.text)
        assert words in response.text, what
        assert "detail" in response.json()
    header = {"X-Session-API-Key": key_of(anna)}
    assert (await nobody.get(f"{ROOT}/search", headers=header)).status_code == 200
    assert (await nobody.get("/openhands/alive")).json() == {"status": "ok"}
    assert (await nobody.get("/openhands/ready")).json() == {"status": "ready"}
    assert "sdk_version" in (await nobody.get("/openhands/server_info")).json()


async def test_another_user_sees_nothing(stage: GatewayStage) -> None:
    name = await start(stage, text_answer("Done."))
    ben = stage.ben
    for path in ("", "/events/search", "/events/count", "/agent_final_response"):
        assert (await ben.get(f"{ROOT}/{name}{path}")).status_code == 404
    for path in ("/run", "/pause", "/interrupt", "/fork", "/condense"):
        assert (await ben.post(f"{ROOT}/{name}{path}")).status_code == 404
    assert (await ben.delete(f"{ROOT}/{name}")).status_code == 404
    assert (await ben.get(f"{ROOT}/search")).json()["items"] == []
    assert (await ben.get(ROOT, params={"ids": name})).json() == [None]
    assert await close_code(stage, name, key_of(ben)) == 4004


async def test_a_socket_says_for_good_that_a_key_is_wrong(stage: GatewayStage) -> None:
    name = await start(stage, text_answer("Done."))
    assert await close_code(stage, name, "pk_none") == 4001
    assert await close_code(stage, str(uuid.uuid4())) == 4004
    assert await close_code(stage, "x") == 4004


async def test_a_socket_begins_with_the_whole_state_and_ends_a_run_with_it(
    stage: GatewayStage,
) -> None:
    call = tool_call_answer(("terminal", {"command": "echo one"}))
    name = await start(stage, call, text_answer("Done."))
    async with open_socket(stage, name) as socket:
        first = json.loads(await socket.recv())
        assert (first["key"], first["value"]["execution_status"]) == ("full_state", "idle")
        await socket.send("{")  # what cannot be read is passed over
        parts = [{"type": "text", "text": "Go."}]
        await socket.send(json.dumps({"role": "user", "content": parts}))
        names = await receive_until_end(socket)
    assert names[:2] == ["MessageEvent", "execution_status"]
    assert names[-2:] == ["execution_status", "full_state"]
    assert [each for each in names if each.endswith("Event") and each != "SystemPromptEvent"] == [
        "MessageEvent",
        "ActionEvent",
        "ObservationEvent",
        "MessageEvent",
    ]
    async with open_socket(stage, name, "?resend_mode=all") as socket:
        again = [json.loads(await socket.recv()) for _ in range(4)]
    assert [event.get("key") for event in again][:1] == ["full_state"]
    assert again[1]["kind"] == "ConversationStateUpdateEvent"


async def test_the_end_is_told_again_to_a_client_that_asks(stage: GatewayStage) -> None:
    name = await start(stage, text_answer("Done."))
    async with open_socket(stage, name) as socket:
        await socket.recv()
        assert (await stage.anna.get(f"{ROOT}/{name}")).json()["execution_status"] == "idle"
        told = json.loads(await asyncio.wait_for(socket.recv(), 30))
    assert (told["key"], told["value"]["execution_status"]) == ("full_state", "idle")


async def test_events_are_searched_page_by_page(stage: GatewayStage) -> None:
    answers = [text_answer(f"Answer {nth}.") for nth in range(3)]
    name = await start(stage, *answers)
    for nth in range(3):
        parts = [{"type": "text", "text": f"Question {nth}."}]
        await stage.anna.post(f"{ROOT}/{name}/events", json={"content": parts, "run": True})
        await stage.wait_until(name, "finished")
    path = f"{ROOT}/{name}/events"

    async def search(**params: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = (await stage.anna.get(f"{path}/search", params=params)).json()
            found += page["items"]
            if page["next_page_id"] is None:
                return found
            params["page_id"] = page["next_page_id"]

    whole = await search()
    assert (
        whole
        == await search(limit=1)
        == list(reversed(await search(sort_order="TIMESTAMP_DESC", limit=2)))
    )
    assert not [event for event in whole if event.get("key") in ("spec", "openhands")]
    times = [event["timestamp"] for event in whole]
    assert times == sorted(times)
    messages = await search(kind="openhands.sdk.event.MessageEvent", source="agent")
    assert len(messages) == 3
    assert len(await search(body="qUESTION 1")) == 1
    assert len(await search(timestamp__gte=f"{times[-1]}+00:00")) >= 1
    assert await search(timestamp__lt=times[0]) == []
    assert (await stage.anna.get(f"{path}/count")).json() == len(whole)
    one = (await stage.anna.get(f"{path}/{whole[3]['id']}")).json()
    assert one == whole[3]
    assert (await stage.anna.get(f"{path}/{uuid.uuid4()}")).status_code == 404


async def test_lists_and_titles(stage: GatewayStage) -> None:
    names = [await start(stage, text_answer("Done.")) for _ in range(3)]
    changed = {"title": "A plan", "tags": {"team": "red"}}
    assert (await stage.anna.patch(f"{ROOT}/{names[0]}", json=changed)).status_code == 200
    assert (await stage.anna.patch(f"{ROOT}/{names[0]}", json={"title": " "})).status_code == 422
    shown = (await stage.anna.get(f"{ROOT}/{names[0]}")).json()
    assert (shown["title"], shown["tags"]) == ("A plan", {"team": "red"})
    page = (await stage.anna.get(f"{ROOT}/search", params={"limit": 2})).json()
    rest = (
        await stage.anna.get(f"{ROOT}/search", params={"limit": 2, "page_id": page["next_page_id"]})
    ).json()
    ids = [item["id"] for item in (*page["items"], *rest["items"])]
    assert sorted(ids) == sorted(names)
    assert (await stage.anna.get(f"{ROOT}/count")).json() == 3
    both = (await stage.anna.get(ROOT, params={"ids": [names[1], str(uuid.uuid4())]})).json()
    assert [item and item["id"] for item in both] == [names[1], None]


async def test_what_is_not_served_says_so(stage: GatewayStage) -> None:
    name = await start(stage, text_answer("Done."))
    path = f"{ROOT}/{name}"
    assert (await stage.anna.post(f"{path}/navigate", json={})).status_code == 501
    for part in ("goal", "goal/pause", "children", "runtime"):
        assert (await stage.anna.get(f"{path}/{part}")).status_code == 501
        assert "not served" in (await stage.anna.post(f"{path}/{part}", json={})).text
    secrets = {"secrets": {"A": "violet"}}
    assert (await stage.anna.post(f"{path}/secrets", json=secrets)).status_code == 501
    analyzer = {"security_analyzer": {"kind": "GraySwanAnalyzer"}}
    assert (await stage.anna.post(f"{path}/security_analyzer", json=analyzer)).status_code == 501
    assert (
        await stage.anna.post(f"{path}/security_analyzer", json={"security_analyzer": None})
    ).status_code == 200
    fork = {"from_event_id": str(uuid.uuid4())}
    assert (await stage.anna.post(f"{path}/fork", json=fork)).status_code == 404
    taken = await stage.anna.post(f"{path}/fork", json={"id": name})
    assert taken.status_code == 409


async def test_a_secret_that_is_looked_up_elsewhere_is_refused_with_a_sentence(
    stage: GatewayStage,
) -> None:
    name = await start(stage, text_answer("Done."))
    secrets = {"TOKEN": {"kind": "LookupSecret", "url": "http://127.0.0.1:9/token"}}
    later = await stage.anna.post(f"{ROOT}/{name}/secrets", json={"secrets": secrets})
    body = start_body(stage, text_answer("Done."), secrets=secrets)
    first = await stage.anna.post(ROOT, json=body)
    for refused in (later, first):
        sentence = "The secret 'TOKEN' is looked up elsewhere: send its value."
        assert (refused.status_code, refused.json()) == (501, {"detail": sentence})


async def test_a_fork_counts_its_usage_anew_unless_it_keeps_that_of_what_it_shares(
    stage: GatewayStage,
) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    answers = [{"content": text, "usage": usage} for text in ("One.", "Two.", "Three.")]
    name = await start(stage, *answers)
    await say(stage, name)
    await wait_for_tokens(stage, name, 7)
    fresh, kept, implied = [
        (await stage.anna.post(f"{ROOT}/{name}/fork", json=body)).json()
        for body in ({"reset_metrics": True}, {"reset_metrics": False}, {})
    ]
    assert [prompt_tokens(it) for it in (fresh, kept, implied)] == [0, 7, 0]
    for it, wanted in ((fresh, 7), (kept, 14)):
        await say(stage, it["id"])
        await wait_for_tokens(stage, it["id"], wanted)
    async with open_socket(stage, fresh["id"]) as socket:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 60))
    assert (frame["key"], prompt_tokens(frame["value"])) == ("full_state", 7)
    nested = (await stage.anna.post(f"{ROOT}/{fresh['id']}/fork", json={})).json()
    assert prompt_tokens(nested) == 0


async def say(stage: GatewayStage, name: str) -> None:
    message = {"content": [{"type": "text", "text": "Go."}], "run": True}
    assert (await stage.anna.post(f"{ROOT}/{name}/events", json=message)).status_code == 200


async def wait_for_tokens(stage: GatewayStage, name: str, wanted: int) -> None:
    async with asyncio.timeout(60):
        while prompt_tokens((await stage.anna.get(f"{ROOT}/{name}")).json()) != wanted:
            await asyncio.sleep(0.1)
    await stage.wait_until(name, "finished")


def prompt_tokens(info: dict[str, Any]) -> int:
    metrics = info["stats"]["usage_to_metrics"].get("agent")
    return int(metrics["accumulated_token_usage"]["prompt_tokens"]) if metrics else 0


async def test_no_socket_tells_of_rest_behind_the_answer_to_a_request_to_run(
    stage: GatewayStage,
) -> None:
    name = await start(stage, {"content": "one two three", "chunk_delay": 60})
    message = {"role": "user", "content": [{"type": "text", "text": "Go."}], "run": False}
    assert (await stage.anna.post(f"{ROOT}/{name}/events", json=message)).status_code == 200
    loop = asyncio.get_running_loop()

    async def attach(delay: float = 0) -> tuple[float, str]:
        await asyncio.sleep(delay)
        async with open_socket(stage, name) as socket:
            first = json.loads(await asyncio.wait_for(socket.recv(), 60))
            return loop.time(), first["value"]["execution_status"]

    assert (await attach())[1] == "idle"
    attached = [asyncio.create_task(attach(number / 50)) for number in range(40)]
    await asyncio.sleep(0.2)
    assert (await stage.anna.post(f"{ROOT}/{name}/run")).status_code == 200
    answered = loop.time()
    firsts = await asyncio.gather(*attached)
    assert {status for moment, status in firsts if moment > answered} == {"running"}

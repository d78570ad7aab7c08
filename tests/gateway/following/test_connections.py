"""Streams of server-sent events, and sockets."""

import asyncio
import json
from math import inf

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from perdure.api.frames import AckFrame, ErrorFrame
from perdure.gateway.following.followers import Followers
from perdure.gateway.following.settings import FollowingLimits
from reliability.following.http_clients import (
    open_socket,
    receive_frames,
    stream_frames,
    watching_by_socket,
    watching_by_stream,
)
from reliability.following.watcher import wait_for_status
from tests.gateway.stage import GatewayStage, as_json
from tests.harness import text_answer, tool_call_answer

pytestmark = pytest.mark.long

WORDS = "one two three four five six seven eight nine ten"
SLOW_ANSWER = {"content": WORDS, "chunk_delay": 0.1}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


async def test_stream_and_socket_send_the_same(stage: GatewayStage) -> None:
    conversation_id = await stage.start(
        tool_call_answer(("add", {"a": 2, "b": 3})), SLOW_ANSWER, text="2 + 3?"
    )
    async with (
        watching_by_stream(stage.anna, conversation_id) as stream,
        watching_by_socket(stage.anna, conversation_id) as socket,
    ):
        await wait_for_status(stream, "finished")
        await wait_for_status(socket, "finished")
    page = (await stage.anna.get(f"/v1/conversations/{conversation_id}/events")).json()
    expected = {item.pop("seq"): item for item in page["items"]}
    assert stream.entries == socket.entries == expected
    assert stream.finished_texts == socket.finished_texts == [(WORDS, WORDS)]


async def test_a_client_that_comes_back_misses_nothing(stage: GatewayStage) -> None:
    conversation_id = await stage.start(text_answer("Hello."), text_answer("Bye."))
    await stage.wait_until(conversation_id, "finished")
    path = f"/v1/conversations/{conversation_id}"
    whole = [frame async for frame in stream_frames(stage.anna, conversation_id, follow=False)]
    seqs = [frame.seq for frame in whole if frame.kind == "durable"]
    await stage.anna.post(f"{path}/messages", json={"text": "And?"})
    await stage.wait_until(conversation_id, "finished")
    headers = {"Last-Event-ID": str(seqs[2])}
    params = {"follow": False, "after_seq": 0}
    response = await stage.anna.get(f"{path}/stream", params=params, headers=headers)
    ids = [int(line[4:]) for line in response.text.splitlines() if line.startswith("id: ")]
    end = (await stage.anna.get(f"{path}/events")).json()["end_seq"]
    assert end > len(seqs)
    assert ids == list(range(seqs[2] + 1, end))


async def test_requests_on_a_socket_are_answered_by_their_ids(stage: GatewayStage) -> None:
    answers = [text_answer("Hello."), {"content": WORDS, "chunk_delay": 1.0}]
    conversation_id = await stage.start(*answers)
    await stage.wait_until(conversation_id, "finished")
    async with open_socket(stage.anna, conversation_id) as socket:
        frames = receive_frames(socket)

        async def ask(**request: object) -> AckFrame | ErrorFrame:
            await socket.send(json.dumps(request))
            async for frame in frames:
                if isinstance(frame, AckFrame | ErrorFrame):
                    return frame
            raise AssertionError("the socket was closed")

        sent = await ask(kind="send", id="1", text="Count.", message_id="m1")
        stopped = await ask(kind="interrupt", id="2")
        wrong = await ask(kind="respond", id="3", accept=True)
        unknown = await ask(kind="dance", id="4")
        no_json = await ask()
        again = await ask(kind="send", id="5", text="Count.", message_id="m1")
        await ask(kind="close", id="6")
        await stage.wait_until(conversation_id, "closed")
        closed = await ask(kind="send", id="7", text="More.")
        reopened = await ask(kind="send", id="8", text="More.", reopen=True)
    assert isinstance(closed, ErrorFrame)
    assert isinstance(reopened, AckFrame)
    assert isinstance(sent, AckFrame)
    assert isinstance(again, AckFrame)
    page = (await stage.anna.get(f"/v1/conversations/{conversation_id}/events")).json()
    assert page["items"][sent.seq]["message_id"] == "m1"
    assert (again.id, again.seq) == ("5", sent.seq)
    assert stopped == AckFrame(id="2")
    refusals = [wrong, unknown, no_json]
    assert [answer.id for answer in refusals] == ["3", "", ""]
    assert [getattr(answer, "code", "") for answer in refusals] == ["invalid"] * 3


@pytest.mark.parametrize(
    ("who", "path", "code", "reason"),
    [
        ("nobody", "{id}", 4001, "unauthorized"),
        ("ben", "{id}", 4004, "not_found"),
        ("anna", UNKNOWN, 4004, "not_found"),
        ("anna", "no-id-at-all", 4004, "not_found"),
        ("ben", "{id}?owner=anna", 4004, "not_found"),
    ],
)
async def test_a_socket_that_is_refused_is_told_why(
    stage: GatewayStage, who: str, path: str, code: int, reason: str
) -> None:
    conversation_id = await stage.start(text_answer("Hello."))
    await stage.wait_until(conversation_id, "finished")
    clients = {"anna": stage.anna, "ben": stage.ben, "nobody": stage.client_with(None)}
    name, _, owner = path.format(id=conversation_id).partition("?owner=")
    async with open_socket(clients[who], name, owner=owner) as socket:
        error = json.loads(await socket.recv())
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert (error["kind"], error["code"]) == ("error", reason)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == code


async def test_a_stream_that_is_refused_is_told_why(stage: GatewayStage) -> None:
    conversation_id = await stage.start(text_answer("Hello."))
    await stage.wait_until(conversation_id, "finished")
    path = f"/v1/conversations/{conversation_id}/stream"
    assert (await stage.client_with(None).get(path)).status_code == 401
    assert (await stage.ben.get(path)).status_code == 404
    assert (await stage.ben.get(f"{path}?owner=anna")).status_code == 404
    assert (await stage.anna.get(f"/v1/conversations/{UNKNOWN}/stream")).status_code == 404
    assert (await stage.anna.get(f"{path}?after_seq=x")).status_code == 422


async def test_one_client_too_many_is_refused(stage: GatewayStage) -> None:
    stage.gateway.followers = Followers(stage.gateway.client, FollowingLimits(clients=2))
    conversation_id = await stage.start(text_answer("Hello."))
    async with (
        watching_by_socket(stage.anna, conversation_id),
        watching_by_stream(stage.anna, conversation_id) as watcher,
    ):
        await wait_for_status(watcher, "finished")
        with pytest.raises(httpx.HTTPStatusError) as refused:
            await anext(stream_frames(stage.anna, conversation_id))
        async with open_socket(stage.anna, conversation_id) as socket:
            error = json.loads(await socket.recv())
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
    assert refused.value.response.status_code == 429
    assert int(refused.value.response.headers["retry-after"]) > 0
    assert error["code"] == "too_many_clients"
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013
    async with watching_by_socket(stage.anna, conversation_id) as watcher:
        await wait_for_status(watcher, "finished")


async def test_a_revoked_grant_ends_the_connection(stage: GatewayStage) -> None:
    conversation_id = await stage.start(text_answer("Hello."), text_answer("Bye."))
    await stage.wait_until(conversation_id, "finished")
    path = f"/v1/conversations/{conversation_id}"
    await stage.anna.put(f"{path}/grants/ben", json={"access": "read"})
    async with (
        watching_by_socket(stage.ben, conversation_id, owner="anna") as socket,
        watching_by_stream(stage.ben, conversation_id, owner="anna") as stream,
    ):
        await wait_for_status(socket, "finished")
        await wait_for_status(stream, "finished")
        await stage.anna.delete(f"{path}/grants/ben")
        async with asyncio.timeout(30):
            while socket.error is None or stream.error is None:
                await asyncio.sleep(0.05)
    assert (socket.error.code, stream.error.code) == ("not_found", "not_found")


@pytest.mark.parametrize("shared", ["conversations", "batches"])
async def test_a_grant_revoked_in_the_same_process_ends_the_connection_at_once(
    stage: GatewayStage, shared: str
) -> None:
    """Nobody asks again by the clock: the revocation itself does."""
    limits = FollowingLimits(check_interval=inf)
    stage.gateway.followers = Followers(stage.gateway.client, limits)
    if shared == "conversations":
        conversation_id = await stage.start(text_answer("Hello."))
        path = f"/v1/conversations/{conversation_id}"
    else:
        path, conversation_id = await run_batch(stage)
    await stage.wait_until(conversation_id, "finished")
    await stage.anna.put(f"{path}/grants/ben", json={"access": "read"})
    async with (
        watching_by_socket(stage.ben, conversation_id, owner="anna") as socket,
        watching_by_stream(stage.ben, conversation_id, owner="anna") as stream,
        watching_by_stream(stage.anna, conversation_id) as own,
    ):
        await wait_for_status(socket, "finished")
        await wait_for_status(stream, "finished")
        await stage.anna.delete(f"{path}/grants/ben")
        async with asyncio.timeout(30):
            while socket.error is None or stream.error is None:
                await asyncio.sleep(0.05)
        assert own.error is None
    assert (socket.error.code, stream.error.code) == ("not_found", "not_found")
    await stage.gateway.followers.close()


async def run_batch(stage: GatewayStage) -> tuple[str, str]:
    """Run a batch of one sample; return its path, and the id of the sample's conversation."""
    agent = as_json(stage.harness.spec(text_answer("2"), tools=("think",)))
    batch = {"name": stage.harness.client.task_queue, "agent": agent, "scorers": ["match"]}
    samples = [{"id": "sum", "input": "1 + 1"}]
    await stage.anna.post("/v1/batches", json={"batch": batch, "samples": samples})
    path = f"/v1/batches/{batch['name']}"
    while (await stage.anna.get(path)).json()["progress"]["status"] != "finished":
        await asyncio.sleep(0.2)
    result = (await stage.anna.get(f"{path}/result", params={"sample": "sum"})).json()
    return path, result["attempts"][0]["conversation_id"]

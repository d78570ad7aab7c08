"""A gateway that is killed and started again: nothing is missed, doubled or noticed."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import pytest

from perdure.client.http import connection
from perdure.client.http.client import HttpClient
from perdure.client.http.conversation import HttpConversation
from perdure.errors import Forbidden, Invalid, Unreachable
from perdure.storage.credentials.api_keys import revoke_api_key
from tests.client.http.gateway_process import GatewayProcess
from tests.harness import ConversationHarness, text_answer, tool_call_answer

pytestmark = pytest.mark.long

MESSAGES = 3


@contextlib.asynccontextmanager
async def kill_now_and_then(gateway: GatewayProcess, seed: int) -> AsyncIterator[None]:
    """Kill the gateway at random moments meanwhile; it answers again at the end."""
    chance, ending = random.Random(seed), asyncio.Event()

    async def run() -> None:
        while not ending.is_set():
            await asyncio.sleep(chance.uniform(0.2, 3.0))
            await gateway.restart(chance.uniform(0.0, 1.0))

    killing = asyncio.create_task(run())
    try:
        yield
    finally:
        ending.set()
        await killing


async def collect(conversation: HttpConversation, seqs: list[int]) -> None:
    async for entry in conversation.events():
        seqs.append(entry.seq)  # noqa: PERF401 - who waits looks at the list meanwhile


async def test_followers_and_senders_notice_nothing_but_a_pause(
    harness: ConversationHarness, gateway: GatewayProcess
) -> None:
    answers = []
    for number in range(MESSAGES):
        seconds = 0.3 + number / 1000
        answers += [tool_call_answer(("look", {"seconds": seconds})), text_answer("Done.")]
    async with harness.worker(), gateway.client() as client, gateway.client() as second:
        conversation = await client.start("Begin.", harness.spec(*answers), message_id="message-0")
        seqs: list[int] = []
        following = asyncio.create_task(collect(second.conversation(conversation.id), seqs))
        async with kill_now_and_then(gateway, 1):
            for number in range(MESSAGES):
                if number:
                    await conversation.send(f"Message {number}.", f"message-{number}")
                assert (await conversation.result()).text == "Done."
        state = await conversation.state()
        while len(seqs) < state.next_seq:
            await asyncio.sleep(0.05)
        following.cancel()
        sent = [await conversation.log.get(seq) for seq in sorted(state.message_seqs.values())]
    assert seqs == [*range(state.next_seq)]
    assert sorted(state.message_seqs) == [f"message-{number}" for number in range(MESSAGES)]
    assert len([entry for entry in sent if entry.event.source == "user"]) == MESSAGES


async def test_each_entry_comes_once_and_in_order_while_the_gateway_is_killed(
    harness: ConversationHarness, gateway: GatewayProcess
) -> None:
    answers = [tool_call_answer(("look", {"seconds": 0.1 + n / 1000})) for n in range(25)]
    async with harness.worker(), gateway.client() as client:
        conversation = await client.start("Go.", harness.spec(*answers, text_answer("Done.")))
        async with kill_now_and_then(gateway, 2):
            watching = [asyncio.create_task(collect_turn(client.conversation(conversation.id)))]
            watching.append(asyncio.create_task(collect_turn(conversation)))
            seqs = await asyncio.gather(*watching)
        end = await conversation.log.end()
    assert end > 50
    assert seqs[1] == [*range(end)]
    assert seqs[0] == seqs[1][-len(seqs[0]) :]


async def collect_turn(conversation: HttpConversation) -> list[int]:
    ids = [event.id async for event in conversation.turn()]
    entries = await conversation.log.read(0, await conversation.log.end())
    seq_of = {entry.event.id: entry.seq for entry in entries}
    return [seq_of[id] for id in ids]


async def test_the_text_of_a_turn_is_whole_though_the_gateway_is_killed(
    harness: ConversationHarness, gateway: GatewayProcess
) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    slow = {"content": words, "chunk_delay": 0.1}
    async with harness.worker(), gateway.client() as client:
        conversation = await client.start("Count.", harness.spec(slow))
        async with kill_now_and_then(gateway, 3):
            pieces = [piece async for piece in conversation.text()]
    assert "".join(pieces).strip() == words
    assert len(pieces) > 1


async def test_a_gateway_that_never_answers_is_reported_soon_and_in_a_sentence(
    gateway: GatewayProcess,
) -> None:
    await gateway.kill()
    with pytest.raises(
        Unreachable, match=rf"^The gateway {gateway.url} does not answer: "
    ) as error:
        async with gateway.client():
            pass
    assert "perdure gateway" in error.value.hint
    assert gateway.key not in repr(error.value.__cause__)


async def test_a_gateway_that_takes_too_long_is_no_wrong_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "READ_TIMEOUT", 0.2)
    monkeypatch.setattr(connection, "FIRST_PATIENCE", 0.0)

    async def answer_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match="does not answer in time") as error:
            await HttpClient(f"http://127.0.0.1:{port}", "pk_none").__aenter__()
    assert "/ready" in error.value.hint


async def test_a_revoked_key_is_refused_and_ends_what_follows(
    harness: ConversationHarness, gateway: GatewayProcess
) -> None:
    async with harness.worker(), gateway.client() as client:
        conversation = await client.start("Hi.", harness.spec(text_answer("Hello.")))
        await conversation.result()
        following = asyncio.create_task(collect(conversation, []))
        me = await client.me()
        assert me.key_id is not None
        await revoke_api_key(harness.client.store, me.key_id)
        with pytest.raises(Forbidden, match="no valid key"):
            await asyncio.wait_for(following, 60)
        with pytest.raises(Forbidden, match="no valid key"):
            await conversation.status()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://perdure.example.org", "would be sent to perdure.example.org in plain text"),
        ("https://user:secret@perdure.example.org", "has no key, query or fragment"),
        ("https://perdure.example.org/?key=secret", "has no key, query or fragment"),
        ("perdure.example.org", "is no address of a gateway"),
        ("https://perdure.example.org:port", "is no address of a gateway"),
    ],
)
def test_an_address_that_would_show_the_key_is_refused(url: str, message: str) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        HttpClient(url, "pk_key")
    assert "secret" not in str(refused.value) + refused.value.hint

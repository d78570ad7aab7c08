"""The client whose methods wait, over Temporal and over a gateway, in a thread of the test."""

import asyncio
from collections.abc import Callable

import pytest

from perdure import MessageEvent, NotFound, SyncClient, SyncHttpClient, Unreachable
from perdure.client.ids import new_conversation_id
from perdure.client.sync import SyncConversation
from perdure.settings.settings import Settings
from perdure.storage.credentials.api_keys import create_api_key
from tests.client.http.gateway_process import GatewayProcess
from tests.harness import ConversationHarness, text_answer, tool_call_answer

Connect = Callable[[], SyncClient]


@pytest.fixture(params=["library", "gateway", "gateway of the settings"])
def connect(request: pytest.FixtureRequest, harness: ConversationHarness) -> Connect:
    """A function that connects a client of Anna's."""
    if request.param == "library":
        store = (harness.folder / "store").as_uri()
        queue = harness.client.task_queue
        return lambda: SyncClient(Settings(store=store, user="anna", task_queue=queue))
    gateway: GatewayProcess = request.getfixturevalue("gateway")
    if request.param == "gateway":
        return lambda: SyncHttpClient(gateway.url, gateway.key)
    return lambda: SyncClient(Settings(gateway=gateway.url, gateway_key=gateway.key))


@pytest.mark.long
async def test_a_program_without_a_loop_follows_a_conversation(
    harness: ConversationHarness, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "TEMPORAL_ADDRESS", harness.client.temporal.service_client.config.target_host
    )
    spec = harness.spec(
        tool_call_answer(("add", {"a": 2, "b": 3})), text_answer("It is 5."), text_answer("And 6.")
    )

    def work() -> None:
        with connect() as client:
            conversation = client.start("2 + 3?", spec)
            assert isinstance(conversation, SyncConversation)
            sources = [e.source for e in conversation.turn() if isinstance(e, MessageEvent)]
            assert sources == ["user", "agent"]
            assert conversation.result().text == "It is 5."
            conversation.send("3 + 3?")
            assert "".join(conversation.text()).strip() == "And 6."
            state, status = conversation.state(), conversation.status()
            assert (state.next_seq, status.status) == (status.next_seq, "finished")
            events = conversation.events()
            assert [next(events).seq for _ in range(3)] == [0, 1, 2]
            events.close()
            log = conversation.event_log
            assert log[-1] == log[len(log) - 1] == list(log)[-1]
            assert log[log.get_index(log[-2].id)] == log[-2:][0]
            conversation.note(title="Sums", state={"color": "blue"})
            assert conversation.values() == {"color": "blue"}
            conversation.grant("ben")
            assert [grant.user_id for grant in conversation.grants()] == ["ben"]
            forked = client.fork(conversation.id)
            assert forked.conversation.state().title == "Sums"
            assert client.ask(conversation.id, "What?").text.startswith("ANSWER")
            assert client.list_conversations() == [forked.conversation.id, conversation.id]
            with pytest.raises(NotFound):
                client.conversation(new_conversation_id()).status()

    async with harness.worker():
        await asyncio.to_thread(work)


async def test_a_gateway_that_does_not_answer_is_reported_when_it_connects(
    harness: ConversationHarness,
) -> None:
    key = await create_api_key(harness.client.store, "anna", "test", ["read"])
    with pytest.raises(Unreachable, match=r"^The gateway http://127\.0\.0\.1:9 does not answer"):
        await asyncio.to_thread(SyncHttpClient, "http://127.0.0.1:9", key.secret)

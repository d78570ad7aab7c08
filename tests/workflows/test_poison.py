"""Whatever is sent to Temporal, a conversation goes on, or fails with a sentence."""

import contextlib
from typing import Any

import pytest
import temporalio.client
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import RawValue
from temporalio.service import RPCError

from perdure.agent.loop.start import ConversationStatus
from perdure.client.ids import new_conversation_id
from perdure.embedded.temporal import TemporalServer
from perdure.events.control import ConversationStateUpdateEvent
from perdure.temporal.names import ACTOR_HEADER
from tests.harness import ConversationHarness, text_answer
from tests.workflows.watching import events


@pytest.mark.parametrize(
    "sent", [[], [1, 2], [None], [b"\xff"], [{"spec": 1}], ["x"], [{}, {}, {}]], ids=repr
)
async def test_a_workflow_that_is_started_with_nonsense_fails_with_a_sentence(
    harness: ConversationHarness, sent: list[Any]
) -> None:
    async with harness.worker():
        name = f"conv-{new_conversation_id()}"
        handle = await harness.client.temporal.start_workflow(
            "Conversation",
            args=sent,
            id=name,
            task_queue=harness.client.task_queue,
            result_type=ConversationStatus,
        )
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert "A conversation is started with one object" in str(failed.value.cause)


def raw(data: bytes, encoding: bytes = b"json/plain") -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


POISON = {
    "no JSON": raw(b"{"),
    "no UTF-8": raw(b'"\xff"'),
    "half a surrogate pair": raw(b'"\\ud800"'),
    "a huge number": raw(b"1" * 50_000),
    "a huge exponent": raw(b'{"text": 1e999999}'),
    "deep": raw(b"[" * 20_000 + b"]" * 20_000),
    "deep objects": raw(b'{"text":' * 5_000 + b"1" + b"}" * 5_000),
    "no encoding": raw(b'"hi"', b""),
    "an unknown encoding": raw(b'"hi"', b"binary/unknown"),
    "no bytes": raw(b""),
    "not protobuf": raw(b"\xff\xff", b"json/protobuf"),
}


async def test_no_signal_of_anybody_stops_a_conversation(harness: ConversationHarness) -> None:
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        for poison in POISON.values():
            for name in ("send_message", "pause", "no_such_signal", "\U0001f4a5" * 240):
                await talk.handle.signal(name, poison)
        await talk.resume()
        for update in ("no_such_update", "submit_message"):
            with pytest.raises(WorkflowUpdateFailedError):
                await talk.handle.execute_update(update, POISON["no JSON"])
        with pytest.raises(WorkflowQueryFailedError):
            await talk.handle.query("no_such_query")
        await talk.send("still there?", message_id="m")
        assert (await talk.wait_for_turn("m")).status == "finished"
        assert (await talk.status()).trouble is None
    updates = await events(talk, ConversationStateUpdateEvent)
    strays = [item.value for item in updates if item.key == "refused" and "signal" in item.value]
    assert len(strays) == 2 * len(POISON)
    assert "There is no signal 'no_such_signal'." in strays


class Mislabelled(temporalio.client.Interceptor):
    """Writes a payload where the name of the sender stands."""

    def __init__(self, header: Payload) -> None:
        self.header = header

    def intercept_client(
        self, next: temporalio.client.OutboundInterceptor
    ) -> temporalio.client.OutboundInterceptor:
        return MislabelledOutbound(next, self.header)


class MislabelledOutbound(temporalio.client.OutboundInterceptor):
    def __init__(self, following: temporalio.client.OutboundInterceptor, header: Payload) -> None:
        super().__init__(following)
        self.header = header

    async def signal_workflow(self, input: temporalio.client.SignalWorkflowInput) -> None:
        input.headers = {**input.headers, ACTOR_HEADER: self.header}
        await super().signal_workflow(input)


async def test_no_header_of_anybody_stops_a_conversation(harness: ConversationHarness) -> None:
    config = harness.client.temporal.config()
    async with harness.worker():
        talk = await harness.client.start("Hi.", harness.spec(text_answer("One.")))
        await talk.wait_for_turn()
        for poison in POISON.values():
            config["interceptors"] = [Mislabelled(poison.payload)]
            stranger = temporalio.client.Client(**config)
            await stranger.get_workflow_handle(talk.workflow.handle.id).signal("condense")
        await talk.close()
        await talk.workflow.handle.result()
        assert (await talk.state()).status == "closed"


@pytest.mark.long
async def test_a_flood_of_signals_as_large_as_temporal_takes_is_outlived(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    """Temporal may end a workflow whose history they make too long; the next message opens it."""
    anybody = await temporalio.client.Client.connect(temporal_server.address)
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        handle = anybody.get_workflow_handle(talk.workflow_id)
        with contextlib.suppress(RPCError):
            for _ in range(40):
                await handle.signal("send_message", "x" * 1_900_000)
        await talk.send("still there?", message_id="m")
        assert (await talk.wait_for_turn("m")).status == "finished"
        assert (await talk.status()).trouble is None

"""Any payload, to any handler of a real conversation, which goes on all the same."""

import contextlib
from random import Random

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.service import RPCError

from perdure.client.conversation import Conversation
from perdure.events.messages import MessageEvent
from reliability.fuzz.input_targets import SENT
from reliability.fuzz.mutation import mutate
from tests.harness import ConversationHarness, text_answer
from tests.workflows.watching import events

SIGNALS = ("send_message", "condense", "resume", "interrupt", "no_such_signal")
UPDATES = ("submit_message", "respond", "configure", "note", "note", "no_such_update")
ENCODINGS = (b"json/plain", b"json/plain", b"json/plain", b"binary/plain", b"binary/null", b"")

LARGEST = 4 * 1024
"""Bytes: what a history takes is another test's."""

DEEP = tuple(b'{"state":{"a":%b1%b}}' % (b"[" * n, b"]" * n) for n in range(185, 200))


ENDLESS = {
    "max_iterations": 500,
    **dict.fromkeys(("max_budget", "max_tokens", "max_events", "deadline")),
}


@pytest.mark.parametrize("payloads", [60, pytest.param(1_000, marks=pytest.mark.longest)])
async def test_a_conversation_outlives_any_payloads(
    harness: ConversationHarness, payloads: int
) -> None:
    random = Random("handlers")
    async with harness.worker():
        answers = [text_answer(str(n)) for n in range(payloads)]
        talk = await harness.client.start("hi", harness.spec(*answers))
        await talk.wait_for_turn()
        for data in DEEP:
            await send(talk, "note", data)
        for _ in range(payloads):
            name, encoding = random.choice(UPDATES + SIGNALS), random.choice(ENCODINGS)
            await send(talk, name, mutate(random, SENT), encoding, random.choice((1, 1, 1, 2)))
        await talk.handle.signal("pause", RawValue(Payload(data=b"{")))
        await talk.configure({"limits": ENDLESS, "condenser": {"kind": "none"}})
        await talk.resume()
        await talk.send("still there?", message_id="the last")
        await talk.wait_for_turn("the last")
        assert (await talk.status()).trouble is None
    heard = [event.message_id for event in await events(talk, MessageEvent)]
    assert "the last" in heard


async def send(
    talk: Conversation, name: str, data: bytes, encoding: bytes = ENCODINGS[0], times: int = 1
) -> None:
    data = data.replace(b'"model"', b'"tags"')[:LARGEST]  # another model would not answer
    sent = [RawValue(Payload(metadata={"encoding": encoding}, data=data))] * times
    with contextlib.suppress(WorkflowUpdateFailedError, WorkflowQueryFailedError, RPCError):
        if name in SIGNALS:
            await talk.handle.signal(name, args=sent)
        else:
            await talk.handle.execute_update(name, args=sent)

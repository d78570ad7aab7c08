"""Webhooks: what a conversation tells a real receiver, on a real Temporal."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from standardwebhooks import WebhookVerificationError

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import Start
from perdure.agent.policies import Confirmation
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.client.webhooks.protocol import define_webhook
from perdure.client.webhooks.webhooks import Webhooks
from perdure.errors import Invalid, NotFound
from perdure.temporal.names import conversation_workflow_id, delivery_workflow_id
from perdure.webhooks.networks import parse_networks
from tests.client.webhooks.conftest import (
    converse,
    failures,
)
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.webhook_receiver import Receiver


async def _entries(conversation: Conversation) -> AsyncIterator[Any]:
    for entry in await conversation.log.read(0, await conversation.log.end()):
        yield entry


async def test_the_end_of_a_turn_is_posted_once_and_signed(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    made = await webhooks.create(define_webhook(f"{receiver.url}/a"))
    async with harness.worker():
        conversation = await converse(harness, text_answer("Hello."), text_answer("Bye."))
        [post] = await receiver.wait_for("/a")
        told = post.check(made.secret)
        assert told["type"] == "conversation.turn_end"
        ending = [entry async for entry in _entries(conversation)][-1]
        assert told["data"] == {
            "conversation_id": conversation.id,
            "event_id": ending.event.id,
            "seq": ending.seq,
            "status": "finished",
            "phase": "awaiting_user",
            "turn": 1,
            "text": "Hello.",
            "calls": [],
        }
        assert post.id == ending.event.id
        await conversation.send("And?")
        _, second = await receiver.wait_for("/a", 2)
        assert second.check(made.secret)["data"]["text"] == "Bye."
        name = delivery_workflow_id(harness.client.user_id, made.id, post.id)
        history = await harness.client.temporal.get_workflow_handle(name).fetch_history()
        assert made.secret not in history.to_json()
        assert harness.resources.secrets_by_user.everyone.mask(made.secret) == (
            "<secret:WEBHOOK_SECRET>"
        )
        with pytest.raises(WebhookVerificationError):
            second.check("whsec_" + "A" * 43 + "=")
    assert [it.id for it in receiver.posts] == [post.id, second.id]
    assert await failures(conversation) == []


async def test_an_approval_and_an_error_are_posted(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    made = await webhooks.create(define_webhook(f"{receiver.url}/a", events=("approval", "error")))
    call = tool_call_answer(("charge", {"amount": 5, "seconds": 0}))
    spec = harness.spec(call, text_answer("Hello."), confirmation=Confirmation(policy="always"))
    async with harness.worker():
        conversation = await harness.client.start("Hi.", spec)
        [asked] = await receiver.wait_for("/a")
        told = asked.check(made.secret)
        assert told["type"] == "conversation.approval"
        [waiting] = told["data"]["calls"]
        assert (waiting["tool_name"], waiting["risk"]) == ("charge", "UNKNOWN")
        await conversation.respond(accept=True, calls=[waiting["tool_call_id"]])
        await conversation.result()
        await conversation.send("And?")  # the script has no further answer
        _, failed = await receiver.wait_for("/a", 2)
        told = failed.check(made.secret)
        assert told["type"] == "conversation.error"
        assert told["data"]["status"] == "error"
        assert told["data"]["detail"]["reason"]


async def test_a_webhook_of_a_conversation_has_nothing_of_others(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    async with harness.worker():
        conversation = await converse(harness, text_answer("Hello."), text_answer("Bye."))
        await webhooks.create(define_webhook(f"{receiver.url}/a", conversation_id=conversation.id))
        await harness.resources.secrets_of(harness.client.user_id).load()
        await converse(harness, text_answer("Elsewhere."))
        await conversation.send("And?")
        [post] = await receiver.wait_for("/a")
        assert b"Bye." in post.body
    assert len(receiver.posts) == 1, "what was before it is not posted either"


async def test_for_a_day_after_a_rotation_there_are_two_signatures(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    made = await webhooks.create(define_webhook(f"{receiver.url}/a"))
    rotated = await webhooks.rotate(made.id)
    assert rotated.secret != made.secret
    async with harness.worker():
        name = await webhooks.test(made.id)
        [post] = await receiver.wait_for("/a")
        assert post.id == name
        assert len(post.headers["webhook-signature"].split()) == 2
        assert post.check(made.secret) == post.check(rotated.secret)
        assert post.check(rotated.secret)["type"] == "test"


@pytest.mark.parametrize(
    "host", ["127.0.0.2", "localhost", "10.0.0.1", "[::1]", "[::ffff:127.0.0.2]", "2130706434"]
)
async def test_a_private_address_is_refused(webhooks: Webhooks, host: str) -> None:
    refused = replace(webhooks, networks=parse_networks(["127.0.0.9/32"]))
    with pytest.raises(Invalid, match="has a private address, to which no webhook may go"):
        await refused.create(define_webhook(f"http://{host}:8080/a"))
    assert await webhooks.list_webhooks() == []


async def test_without_keys_no_webhook_is_kept(webhooks: Webhooks) -> None:
    webhooks.client.secret_keys = None
    with pytest.raises(Invalid, match="PERDURE_SECRET_KEYS is not set"):
        await webhooks.create(define_webhook("http://127.0.0.1:8080/a"))


async def test_webhooks_are_their_users(webhooks: Webhooks) -> None:
    made = await webhooks.create(define_webhook("http://127.0.0.1:8080/a"))
    ben = replace(webhooks, client=webhooks.client.as_user("ben"))
    methods = {"create", "list_webhooks", "get", "rotate", "test", "delete"}
    public = {name for name in dir(Webhooks) if not name.startswith("_")}
    assert public == methods | {"from_client"}
    assert await ben.list_webhooks() == []
    for act in (ben.get, ben.rotate, ben.test, ben.delete):
        with pytest.raises(NotFound, match="There is no webhook"):
            await act(made.id)
    assert [it.id for it in await webhooks.list_webhooks()] == [made.id]
    assert await webhooks.client.list_secrets() == []
    await webhooks.delete(made.id)
    with pytest.raises(NotFound):
        await webhooks.get(made.id)
    assert await webhooks.list_webhooks() == []


async def test_a_turn_that_ends_as_its_run_continues_as_new_is_posted_at_once(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    await webhooks.create(define_webhook(f"{receiver.url}/a"))
    conversation_id = new_conversation_id()
    start = Start(
        conversation_id=conversation_id,
        user_id=harness.client.user_id,
        spec=harness.spec(text_answer("Hello.")),
        inbox=(UserMessage(text="Hi."),),
        max_run_events=1,
    )
    async with harness.worker():
        handle = await harness.client.temporal.start_workflow(
            "Conversation",
            start,
            id=conversation_workflow_id(harness.client.user_id, conversation_id),
            task_queue=harness.client.task_queue,
        )
        [post] = await receiver.wait_for("/a")
        assert b"Hello." in post.body
        described = await harness.client.temporal.get_workflow_handle(handle.id).describe()
        assert described.run_id != handle.first_execution_run_id
        await harness.client.conversation(conversation_id).close()


async def test_a_conversation_that_an_agent_delegates_posts_nothing(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    await webhooks.create(define_webhook(f"{receiver.url}/a"))
    script = [
        tool_call_answer(("delegate", {"task": "count"})),
        text_answer("I count 3."),
        text_answer("It is 3."),
    ]
    async with harness.worker():
        conversation = await harness.client.start(
            "Count.", harness.spec(*script, tools=("delegate",))
        )
        await conversation.result()
        [post] = await receiver.wait_for("/a")
        await asyncio.sleep(0.5)  # for one too many
    assert {json.loads(it.body)["data"]["conversation_id"] for it in receiver.posts} == {
        conversation.id
    }
    assert json.loads(post.body)["data"]["turn"] == 1


async def test_a_question_is_posted_with_its_choices_and_once(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    made = await webhooks.create(define_webhook(f"{receiver.url}/a", events=("question",)))
    question = {"question": "Which colour?", "choices": ["red", "blue"]}
    spec = harness.spec(
        tool_call_answer(("ask_user", question)), text_answer("Done."), tools=("ask_user",)
    )
    async with harness.worker():
        conversation = await harness.client.start("Paint it.", spec)
        [post] = await receiver.wait_for("/a")
        told = post.check(made.secret)
        assert (told["type"], told["data"]["status"]) == (
            "conversation.question",
            "waiting_for_answer",
        )
        wait = told["data"]["detail"]["wait"]
        assert (wait["question"], wait["choices"]) == ("Which colour?", ["red", "blue"])
        await conversation.pause()
        async with asyncio.timeout(60):
            while (await conversation.status()).status != "paused":
                await asyncio.sleep(0.05)
        await conversation.resume()
        async with asyncio.timeout(60):
            while (await conversation.status()).status != "waiting_for_answer":
                await asyncio.sleep(0.05)
        assert await conversation.answer(choice="blue") == "blue"
        assert (await conversation.result()).text == "Done."
    assert [it.id for it in receiver.posts] == [post.id]

"""Receivers that fail, hang, are gone, and redirect."""

from dataclasses import replace

import pytest

from perdure.client.webhooks.protocol import define_webhook
from perdure.client.webhooks.webhooks import Webhooks
from perdure.errors import Conflict
from perdure.temporal.webhooks import Patience
from perdure.webhooks.networks import parse_networks
from tests.client.webhooks.conftest import await_deliveries, await_failure, converse, failures
from tests.harness import ConversationHarness, text_answer
from tests.webhook_receiver import Receiver, hang, run_receiver, say, take


async def test_a_receiver_that_fails_is_posted_the_same_again(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    receiver.answers["/a"] = [say(500), say(503, Retry_After="1"), take]
    made = await webhooks.create(define_webhook(f"{receiver.url}/a"))
    async with harness.worker():
        conversation = await converse(harness, text_answer("Hello."))
        posts = await receiver.wait_for("/a", 3)
        assert len({post.id for post in posts}) == 1
        assert len({post.body for post in posts}) == 1
        times = [int(post.headers["webhook-timestamp"]) for post in posts]
        assert times[2] > times[1], "Retry-After names a second"
        for post in posts:
            post.check(made.secret)
        [delivery] = await await_deliveries(webhooks, made.id, "delivered")
        assert (delivery.event, delivery.conversation_id) == ("turn_end", conversation.id)
    assert await failures(conversation) == []


@pytest.mark.long
async def test_a_receiver_that_hangs_delays_no_conversation_and_is_given_up(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    patience = Patience(give_up_after=2.0, first_delay=0.1, answer_timeout=0.5)
    harness = replace(harness, resources=replace(harness.resources, webhook_patience=patience))
    receiver.answers["/a"] = [hang]
    made = await webhooks.create(define_webhook(f"{receiver.url}/a"))
    async with harness.worker():
        conversation = await converse(harness, text_answer("Hello."), text_answer("Bye."))
        [first, *_] = await receiver.wait_for("/a")
        await conversation.send("And?")
        assert (await conversation.result()).text == "Bye."
        # The second turn's delivery fails as well, sometimes sooner.
        assert await await_failure(conversation, first.id) == {
            "webhook_id": made.id,
            "event": "turn_end",
            "event_id": first.id,
            "reason": "the receiver did not answer within 0.5 s",
        }
        await await_deliveries(webhooks, made.id, "failed")


async def test_a_receiver_that_is_gone_ends_its_webhook(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    receiver.answers["/a"] = [say(410)]
    made = await webhooks.create(define_webhook(f"{receiver.url}/a"))
    async with harness.worker():
        conversation = await converse(harness, text_answer("Hello."), text_answer("Bye."))
        assert "410 Gone" in (await await_failure(conversation))["reason"]
        assert (await webhooks.get(made.id)).ended == "Its receiver answered 410 Gone."
        await harness.resources.secrets_of(harness.client.user_id).load()
        await conversation.send("And?")
        assert (await conversation.result()).text == "Bye."
    assert len(receiver.posts) == 1
    with pytest.raises(Conflict, match="has ended"):
        await webhooks.test(made.id)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_redirect_to_a_private_address_is_refused(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver, host: str
) -> None:
    networks = parse_networks(["127.0.0.9/32"])
    harness = replace(harness, resources=replace(harness.resources, webhook_networks=networks))
    port = receiver.url.rpartition(":")[2]
    async with run_receiver("127.0.0.9") as allowed, harness.worker():
        allowed.answers["/a"] = [say(307, Location=f"http://{host}:{port}/b")]
        await replace(webhooks, networks=networks).create(define_webhook(f"{allowed.url}/a"))
        conversation = await converse(harness, text_answer("Hello."))
        assert "has a private address" in (await await_failure(conversation))["reason"]
        assert len(allowed.posts) == 1
    assert receiver.posts == []


async def test_a_redirect_to_an_address_that_is_allowed_is_followed(
    harness: ConversationHarness, webhooks: Webhooks, receiver: Receiver
) -> None:
    receiver.answers["/a"] = [say(308, Location="/b")]
    made = await webhooks.create(define_webhook(f"{receiver.url}/a"))
    async with harness.worker():
        await converse(harness, text_answer("Hello."))
        [post] = await receiver.wait_for("/b")
        assert post.check(made.secret)["data"]["text"] == "Hello."
        assert post.id == receiver.at("/a")[0].id

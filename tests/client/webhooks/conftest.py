"""A worker with keys for secrets, a receiver, and the webhooks of a user."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr

from perdure.client.conversation import Conversation
from perdure.client.webhooks.webhooks import Webhooks
from perdure.events.control import ConversationStateUpdateEvent
from perdure.secrets.vault import build_key_ring
from perdure.temporal.webhooks import Patience
from perdure.webhooks.networks import parse_networks
from tests.harness import ConversationHarness
from tests.secrets.keys import key_setting
from tests.webhook_receiver import Receiver, run_receiver
from tests.workflows.conftest import harness as plain
from tests.workflows.conftest import temporal

__all__ = ["plain", "temporal"]

LOOPBACK = parse_networks(["127.0.0.1/32"])
QUICK = Patience(give_up_after=20.0, first_delay=0.1)


@pytest.fixture
def harness(plain: ConversationHarness) -> ConversationHarness:
    """Conversations on a worker with keys for secrets, which may post to one loopback address."""
    keys = SecretStr(key_setting("first"))
    plain.client.secret_keys = keys
    resources = replace(
        plain.resources,
        secret_keys=build_key_ring(keys),
        webhook_networks=LOOPBACK,
        webhook_patience=QUICK,
    )
    return replace(plain, resources=resources)


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver() as receiver:
        yield receiver


@pytest.fixture
def webhooks(harness: ConversationHarness) -> Webhooks:
    return Webhooks(harness.client, LOOPBACK)


async def converse(harness: ConversationHarness, *answers: dict[str, Any]) -> Conversation:
    """Start a conversation, and return it once its turn is over."""
    conversation = await harness.client.start("Hi.", harness.spec(*answers))
    await conversation.result()
    return conversation


async def failures(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the events of posts that were not taken."""
    return [
        event.value
        for event in await conversation.event_log.read()
        if isinstance(event, ConversationStateUpdateEvent) and event.key == "webhook_failed"
    ]


async def await_failure(conversation: Conversation, event_id: str | None = None) -> dict[str, Any]:
    """Wait for the first failure in the log, or the first of a delivery."""
    async with asyncio.timeout(60):
        while True:
            for failure in await failures(conversation):
                if event_id in (None, failure["event_id"]):
                    return failure
            await asyncio.sleep(0.05)


async def await_deliveries(webhooks: Webhooks, webhook_id: str, status: str) -> list[Any]:
    async with asyncio.timeout(60):  # lists of Temporal are a little behind
        while True:
            found = (await webhooks.get(webhook_id)).deliveries or ()
            if found and all(it.status == status for it in found):
                return list(found)
            await asyncio.sleep(0.1)

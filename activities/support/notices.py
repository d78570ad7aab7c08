"""Telling a user's webhooks what has happened in a conversation that comes to rest.

The webhooks are known where the user's secrets are: a conversation of a user without any costs
nothing more. What they are told follows from the events since the state was saved last.
"""

from collections.abc import AsyncIterator

import temporalio.client
from temporalio import activity

from perdure.activities.support.resources import Resources
from perdure.agent.loop.evolve import evolve
from perdure.agent.loop.notices import Notice, find_notice
from perdure.agent.loop.state import FOLD_VERSION, State
from perdure.api.webhooks import Post
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.secrets.webhooks import Webhook
from perdure.storage.log.cached_state import parse_cached_state
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import PAGE_SIZE
from perdure.temporal.deliveries import start_delivery
from perdure.temporal.webhooks import DeliveryOrder


async def notify_webhooks(
    resources: Resources, temporal: temporalio.client.Client, log: EventLog, end: int
) -> None:
    """Begin to deliver what the events before slot `end` tell, once each.

    Must come before the state is saved: an attempt that is repeated then begins the same again.
    """
    known = resources.secrets_of(log.user_id).webhooks
    webhooks = [it for it in known if it.concerns(log.conversation_id)]
    if not webhooks or not await _is_of_person(log):
        return
    async for entry, notice in _find_notices(log, end):
        for webhook in webhooks:
            if notice.kind in webhook.events and entry.event.timestamp >= webhook.created:
                order = _build_order(resources, log, webhook, entry, notice)
                await start_delivery(temporal, order, activity.info().task_queue)


async def _find_notices(log: EventLog, end: int) -> AsyncIterator[tuple[Entry, Notice]]:
    """Yield what events since the last save tell, by the states between them."""
    saved = parse_cached_state(await log.load_state()).state
    first = max(await log.first_own_seq(), saved.next_seq)
    state = saved if saved.fold_version == FOLD_VERSION else State()  # another version folds anew
    while state.next_seq < end:
        entries = await log.read(state.next_seq, min(end - state.next_seq, PAGE_SIZE))
        if not entries:
            return
        for entry in entries:
            before, state = state, evolve(state, summarize(entry))
            notice = find_notice(before, state, entry.event)
            if notice is not None and entry.seq >= first:
                yield entry, notice


async def _is_of_person(log: EventLog) -> bool:
    """Tell whether nobody but its user waits for a conversation: no parent, and no batch."""
    event = (await log.get(await log.first_own_seq())).event
    if not isinstance(event, ConversationStateUpdateEvent) or event.key != "opened":
        return True
    return not {"parent", "trial"} & event.value.keys()


def _build_order(
    resources: Resources, log: EventLog, webhook: Webhook, entry: Entry, notice: Notice
) -> DeliveryOrder:
    about = {
        "conversation_id": log.conversation_id,
        "event_id": entry.event.id,
        "seq": entry.seq,
    }
    told = notice.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
    post = Post(
        type=f"conversation.{notice.kind}",
        timestamp=f"{entry.event.timestamp}Z",
        data=about | told,
    )
    return DeliveryOrder(
        user_id=log.user_id,
        webhook_id=webhook.id,
        event_id=entry.event.id,
        event=notice.kind,
        conversation_id=log.conversation_id,
        body=post.model_dump_json(),
        patience=resources.webhook_patience,
    )

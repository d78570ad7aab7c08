"""Bringing conversations back whose workflows Temporal does not know any more."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent.decide import decide
from agent.state import State
from agent.status import Status
from agent.steps import Entitle, Parent
from client.client import Client
from client.conversation import Conversation
from client.errors import Invalid, NotFound
from events.control import ConversationStateUpdateEvent
from events.event import AnyEvent
from storage.errors import Altered, Damaged, Missing
from storage.keys import conversations_prefix, is_conversation_id
from storage.log import EventLog
from storage.state import state_of

AT_ONCE = 8
"""Conversations that are looked at side by side: each may hold a log in memory."""

PAGE = 1000

IN_A_TURN: tuple[Status, ...] = ("running", "paused", "waiting_for_confirmation")
"""Where somebody waits for an agent, or an agent for somebody, who looks for it in Temporal."""

OWN = 3
"""A fork's first events of its own that come before, or are, its first opening."""

UNBEGUN = "a fork that nobody has begun"

NO_AGENT = "its log ends before it says which agent it is: start another one"

Outcome: TypeAlias = Literal["reopened", "running", "at_rest", "closed", "delegated", "damaged"]
"""What became of a conversation.

* reopened: a workflow goes on with it
* running: one did already
* at_rest: there is nothing to do until somebody says something, which opens it
* closed: it has ended for good
* delegated: the conversation that waits for it, or its batch, goes on with it
* damaged: its log cannot be read, so it was left alone
"""


@dataclass(frozen=True)
class Reopened:
    """`status` is what the log tells; `reason` says more about the outcome."""

    conversation_id: str
    outcome: Outcome
    status: Status | None = None
    reason: str | None = None


async def reopen(client: Client, conversation_id: str) -> Reopened:
    """Go on with a conversation from its log alone; where a workflow runs, nothing is done.

    Raises Invalid, NotFound, Unreachable, StoreError.
    """
    conversation = client.conversation(conversation_id)
    try:
        state = await state_of(conversation.log)
        if state.next_seq == 0:
            raise NotFound.of(conversation_id)
        outcome, reason = await _brought_back(client, conversation, state)
    except (Altered, Damaged, Missing) as error:
        return Reopened(conversation_id, "damaged", reason=str(error))
    return Reopened(conversation_id, outcome, state.status, reason)


async def reopen_all(client: Client) -> AsyncGenerator[Reopened, None]:
    """As `reopen`, with every conversation of the user, each told of when it is done."""
    working: set[asyncio.Task[Reopened | None]] = set()
    try:
        async for conversation_id in _ids(client):
            working.add(asyncio.create_task(_if_there(client, conversation_id)))
            if len(working) == AT_ONCE:
                done, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                for one in _told(done):
                    yield one
        while working:
            done, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for one in _told(done):
                yield one
    finally:
        for task in working:
            task.cancel()


def _told(done: set[asyncio.Task[Reopened | None]]) -> list[Reopened]:
    return [one for task in done if (one := task.result()) is not None]


async def _ids(client: Client) -> AsyncIterator[str]:
    """The ids of the user's conversations, also of purged ones that a store still names."""
    try:
        prefix = conversations_prefix(client.user_id)
    except ValueError as error:
        raise Invalid(str(error)) from error
    page = await client.store.folders(prefix, limit=PAGE)
    while page:
        for name in filter(is_conversation_id, page):
            yield name
        page = await client.store.folders(prefix, after=page[-1], limit=PAGE)


async def _if_there(client: Client, conversation_id: str) -> Reopened | None:
    try:
        return await reopen(client, conversation_id)
    except NotFound:
        return None


async def _brought_back(
    client: Client, conversation: Conversation, state: State
) -> tuple[Outcome, str | None]:
    if state.spec is None:
        return "damaged", NO_AGENT
    if state.status == "closed":
        return "closed", None
    if not has_to_go_on(state):
        return "at_rest", None
    if await _is_unbegun(conversation.log):
        return "at_rest", UNBEGUN
    if (batch := await _batch(conversation.log)) is not None:
        return "delegated", f"its batch goes on with it: perdure batch retry {batch}"
    if (parent := await _waiting_for(client, conversation.log)) is not None:
        return "delegated", f"{parent} goes on with it"
    return "reopened" if await conversation.remote.begin(state.title) else "running", None


def has_to_go_on(state: State) -> bool:
    """Whether a workflow is needed before anybody says something.

    A conversation without a title is none to go on with for the title's sake.
    """
    steps = decide(state, ())
    return state.status in IN_A_TURN or any(not isinstance(step, Entitle) for step in steps)


async def _is_unbegun(log: EventLog) -> bool:
    """Whether this is a fork that was never opened: nobody has asked its agent for anything."""
    first = (await log.lineage())[0].first
    if first == 0:
        return False
    return not any(_opening(entry.event) for entry in await log.read(first, OWN))


async def _waiting_for(client: Client, log: EventLog) -> str | None:
    """The conversation that delegated this one and will go on with it, as it waits for it."""
    parent = await _parent(log)
    if parent is None:
        return None
    try:
        state = await state_of(client.conversation(parent.conversation_id).log)
    except (Altered, Damaged, Missing):
        return None
    waits = any(one.seq == parent.action for one in state.pending)
    return parent.conversation_id if waits and has_to_go_on(state) else None


async def _parent(log: EventLog) -> Parent | None:
    if len(await log.lineage()) > 1:  # who forks is not who was delegated to
        return None
    opening = _opening((await log.at(0)).event)
    told = opening.value.get("parent") if opening else None
    return Parent(conversation_id=told["conversation_id"], action=told["action"]) if told else None


async def _batch(log: EventLog) -> str | None:
    """The batch whose sample this was when it was opened last; a fork is nobody's."""
    if len(await log.lineage()) > 1:
        return None
    opening = _opening((await log.at(0)).event)
    told = opening.value.get("trial") if opening else None
    return str(told["batch"]) if told else None


def _opening(event: AnyEvent) -> ConversationStateUpdateEvent | None:
    if isinstance(event, ConversationStateUpdateEvent) and event.key == "opened":
        return event
    return None

"""The recovery of conversations whose workflows Temporal has lost."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeGuard

from perdure.agent.loop.decide import decide
from perdure.agent.loop.state import UNFINISHED_STATUSES, State
from perdure.agent.loop.status import Status
from perdure.agent.loop.steps import GenerateTitle
from perdure.client.access import require_access
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.errors import Invalid, NotFound
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.event import AnyEvent
from perdure.operations.replacement import replace_workflow
from perdure.storage.errors import Altered, Damaged, Missing
from perdure.storage.keys import conversations_prefix, is_conversation_id
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state

MAX_CONCURRENT_REOPENS = 8
"""The number of concurrent reopenings: each may hold a log in memory."""

LIST_PAGE_SIZE = 1000

MAX_EVENTS_BEFORE_OPENING = 3
"""The number of a fork's own first events among which its first opening is."""

ReopenOutcome: TypeAlias = Literal[
    "reopened", "running", "at_rest", "closed", "delegated", "damaged"
]
"""The outcome of reopening a conversation.

* reopened: its workflow was started
* running: its workflow runs already
* at_rest: nothing is to be done until a message opens it
* closed: it was closed; a message that says `reopen` opens it again
* delegated: its parent conversation, or its batch, goes on with it
* damaged: its log cannot be read, so it was left alone
"""


@dataclass(frozen=True)
class ReopenResult:
    """The outcome of reopening a conversation; `status` is from the log, `reason` explains."""

    conversation_id: str
    outcome: ReopenOutcome
    status: Status | None = None
    reason: str | None = None


async def reopen(client: Client, conversation_id: str, owner: str | None = None) -> ReopenResult:
    """Start a conversation's workflow from its log, unless one runs.

    A conversation of another `owner` needs the grant `write`. Raises Invalid, NotFound, Forbidden,
    Unreachable, StoreError.
    """
    conversation = client.conversation(conversation_id, owner)
    await require_access(conversation.log.store, "write")
    try:
        state = await read_state(conversation.log)
        if state.next_seq == 0:
            raise NotFound.for_conversation(conversation_id)
        outcome, reason = await _reopen_workflow(client, conversation, state)
    except (Altered, Damaged, Missing) as error:
        return ReopenResult(conversation_id, "damaged", reason=str(error))
    return ReopenResult(conversation_id, outcome, state.status, reason)


async def reopen_all(client: Client) -> AsyncGenerator[ReopenResult, None]:
    """Reopen every conversation of the user, and yield each result as it is done."""
    ids = aiter(_list_ids(client))
    working: set[asyncio.Task[ReopenResult | None]] = set()
    try:
        while True:
            while len(working) < MAX_CONCURRENT_REOPENS and (name := await anext(ids, None)):
                working.add(asyncio.create_task(_reopen_if_present(client, name)))
            if not working:
                return
            done, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for result in filter(None, [task.result() for task in done]):
                yield result
    finally:
        for task in working:
            task.cancel()


async def _list_ids(client: Client) -> AsyncIterator[str]:
    """List the ids of the user's conversations, also purged ones that the store still lists."""
    try:
        prefix = conversations_prefix(client.user_id)
    except ValueError as error:
        raise Invalid(str(error)) from error
    page = await client.store.folders(prefix, limit=LIST_PAGE_SIZE)
    while page:
        for name in filter(is_conversation_id, page):
            yield name
        page = await client.store.folders(prefix, after=page[-1], limit=LIST_PAGE_SIZE)


async def _reopen_if_present(client: Client, conversation_id: str) -> ReopenResult | None:
    try:
        return await reopen(client, conversation_id)
    except NotFound:
        return None


async def _reopen_workflow(
    client: Client, conversation: Conversation, state: State
) -> tuple[ReopenOutcome, str | None]:
    if state.spec is None:
        return "damaged", "its log ends before it says which agent it is: start another one"
    if state.status == "closed":
        return "closed", None
    if not needs_workflow(state):
        return "at_rest", None
    opening = await _load_opening(conversation.log)
    if opening is None:
        return "at_rest", "a fork that nobody has begun"
    if attempt := opening.get("trial"):
        return "delegated", f"its batch goes on with it: perdure batch retry {attempt['batch']}"
    if (parent := opening.get("parent")) and await _is_waiting(client, parent):
        return "delegated", f"{parent['conversation_id']} goes on with it"
    if await conversation.workflow.start(state.title):
        return "reopened", None
    if await replace_workflow(client, conversation.log.user_id, conversation.log.conversation_id):
        return "reopened", "in place of a workflow that nobody could replay"
    return "running", None


def needs_workflow(state: State) -> bool:
    """Tell whether the conversation needs a workflow before the next message.

    A missing title alone is no reason for one.
    """
    kinds = {type(step) for step in decide(state, ())}
    return state.status in UNFINISHED_STATUSES or bool(kinds - {GenerateTitle})


async def _load_opening(log: EventLog) -> dict[str, Any] | None:
    """Load what the conversation was opened with; None for a fork that was never opened.

    A fork has neither the parent nor the batch of the conversation that it starts from.
    """
    first = (await log.lineage())[0].first
    count = MAX_EVENTS_BEFORE_OPENING if first > 0 else 1
    events = [entry.event for entry in await log.read(first, count)]
    openings = [event.value for event in events if _is_opening(event)]
    if first > 0:
        return {} if openings else None
    return openings[0] if openings else {}


def _is_opening(event: AnyEvent) -> TypeGuard[ConversationStateUpdateEvent]:
    return isinstance(event, ConversationStateUpdateEvent) and event.key == "opened"


async def _is_waiting(client: Client, parent: dict[str, Any]) -> bool:
    """Tell whether the parent waits for this conversation and will go on with it."""
    try:
        state = await read_state(client.conversation(parent["conversation_id"]).log)
    except (Altered, Damaged, Missing):
        return False
    return needs_workflow(state) and parent["action"] in {action.seq for action in state.pending}

"""Every public method of a conversation, called by a user whose it is not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from temporalio.service import RPCError

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import Start
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.description import describe_workflow
from perdure.client.ids import new_conversation_id
from perdure.errors import ClientError
from perdure.evaluation.messages import LimitsUpdate
from perdure.temporal.register_attributes import initial_attributes
from tests.harness import ConversationHarness

Call: TypeAlias = Callable[[Conversation], Awaitable[Any]]
Outcome: TypeAlias = tuple[str, str]

AGENT = Agent(model=ModelSpec(name="scripted:none.json"))
NOTHING = ("nothing", "")


async def first(items: AsyncIterator[Any]) -> Any:
    """Return the first item; raise TimeoutError if none comes."""
    async with asyncio.timeout(0.3):
        return await anext(items)


async def handle_status(conversation: Conversation) -> Any:
    return await conversation.handle.query("status")


async def workflow_id(conversation: Conversation) -> str:
    return conversation.workflow_id


READS: dict[str, Call] = {
    "describe": lambda it: it.describe(),
    "diagnose": lambda it: it.diagnose(),
    "changes": lambda it: it.changes(),
    "event_log": lambda it: it.event_log.length(),
    "events": lambda it: first(it.events()),
    "exists": lambda it: it.exists(),
    "require_open": lambda it: it.require_open(),
    "result": lambda it: it.result(),
    "state": lambda it: it.state(),
    "status": lambda it: it.status(),
    "text": lambda it: anext(it.text()),
    "turn": lambda it: anext(it.turn()),
    "values": lambda it: it.values(),
    "read_values": lambda it: it.read_values(),
    "wait_for_turn": lambda it: it.wait_for_turn(),
    "watch_running_steps": lambda it: first(it.watch_running_steps()),
    "statuses": lambda it: first(it.statuses()),
    "workflow_id": workflow_id,
}
"""The calls that read; `workflow_id` alone reaches nothing."""

WRITES: dict[str, Call] = {
    "send": lambda it: it.send("Hello?"),
    "submit": lambda it: it.submit("Hello?"),
    "start": lambda it: it.start("Hello?", AGENT),
    "pause": lambda it: it.pause(),
    "resume": lambda it: it.resume(),
    "interrupt": lambda it: it.interrupt(),
    "condense": lambda it: it.condense(),
    "respond": lambda it: it.respond(True, ["call"]),
    "signal": lambda it: it.signal("paid", {"amount": 12}),
    "answer": lambda it: it.answer("Blue."),
    "configure": lambda it: it.configure({"tags": ["mine"]}),
    "note": lambda it: it.note(title="Mine"),
    "close": lambda it: it.close(),
}

OWNERS: dict[str, Call] = {
    "grant": lambda it: it.grant("mallory", "write"),
    "revoke": lambda it: it.revoke("mallory"),
    "grants": lambda it: it.grants(),
    "delete": lambda it: it.delete(),
    "handle": handle_status,
}

CALLS = READS | WRITES | OWNERS
"""A call of every public method, and a use of every property."""

BATCH_READS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "count_progress": lambda it: it.count_progress(),
    "describe": lambda it: it.describe(),
    "diagnose": lambda it: it.diagnose(),
    "is_running": lambda it: it.is_running(),
    "load_record": lambda it: it.load_record(),
    "query_progress": lambda it: it.query_progress(),
    "status": lambda it: it.status(),
    "wait_until_finished": lambda it: it.wait_until_finished(),
}

BATCH_WRITES: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "pause": lambda it: it.pause(),
    "resume": lambda it: it.resume(),
    "update_limits": lambda it: it.update_limits(LimitsUpdate(concurrency=1)),
}

BATCH_OWNERS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "find_handle": lambda it: _describe_found(it),
    "handle": lambda it: it.handle.describe(),
    "grant": lambda it: it.grant("mallory", "write"),
    "revoke": lambda it: it.revoke("mallory"),
    "grants": lambda it: it.grants(),
}

BATCH_CALLS = BATCH_READS | BATCH_WRITES | BATCH_OWNERS


async def _describe_found(batch: Any) -> Any:
    return await (await batch.find_handle()).describe()


def client_of(harness: ConversationHarness, user_id: str) -> Client:
    """Return the client of another user of the same servers."""
    client = harness.client
    return Client(client.temporal, client.store, user_id, client.task_queue)


def as_user(harness: ConversationHarness, user_id: str) -> ConversationHarness:
    return replace(harness, client=client_of(harness, user_id))


async def start_as_before(client: Client, spec: Agent, searchable: bool = False) -> Conversation:
    """Start a conversation under an id without its user, and return its handle."""
    name = new_conversation_id()
    start = Start(
        conversation_id=name,
        user_id=client.user_id,
        spec=spec,
        searchable=searchable,
        inbox=(UserMessage(text="Hello?"),),
    )
    await client.temporal.start_workflow(
        "Conversation",
        start,
        id=f"conv-{name}",
        task_queue=client.task_queue,
        search_attributes=initial_attributes(start, datetime.now(UTC)),
    )
    return client.conversation(name)


async def outcome_of(call: Callable[[Any], Awaitable[Any]], target: Any, *names: str) -> Outcome:
    """Return what a call returns or raises, without the names of what it is about."""
    try:
        result = await call(target)
        kind, text = type(result).__name__, str(result)
    except TimeoutError:
        return NOTHING
    except (ClientError, RPCError) as error:
        kind, text = type(error).__name__, str(error)
    for name in names:
        text = text.replace(name, "NAME")
    return kind, text


async def all_that_is_known(client: Client, user_id: str, workflow_id: str) -> tuple[Any, ...]:
    """Return all objects of a user, and the length of a workflow's history, once it is idle.

    The index of lists is left out: a worker writes it when it has the time.
    """
    while (described := await describe_workflow(client.temporal, workflow_id)) and (
        described.pending_activities or described.HasField("pending_workflow_task")
    ):
        await asyncio.sleep(0.02)
    keys = await client.store.list(f"users/{user_id}/")
    objects = {key: await client.store.read(key) for key in keys if "/index/" not in key}
    history = await client.temporal.get_workflow_handle(workflow_id).fetch_history()
    return objects, len(history.events)

"""A conversation is its user's: nobody else reads or steers it, whoever knows its id."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
import temporalio.client
import temporalio.workflow
from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import Start
from perdure.client.ask import ask
from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.file_changes import diff_files, list_file_changes
from perdure.client.fork import fork
from perdure.client.ids import new_conversation_id
from perdure.client.sync import SyncConversation
from perdure.errors import Forbidden, Invalid, NotFound
from perdure.operations.purge import list_purge_targets
from perdure.operations.reopen import reopen, reopen_all
from perdure.temporal.names import batch_workflow_id, conversation_workflow_id
from perdure.workflows.batch.workflow import Batch
from perdure.workflows.conversation import Conversation as ConversationDefinition
from tests.client.strangers import (
    BATCH_CALLS,
    CALLS,
    NOTHING,
    OWNERS,
    READS,
    WRITES,
    all_that_is_known,
    as_user,
    client_of,
    outcome_of,
)
from tests.harness import ConversationHarness, event_kinds, text_answer

ANSWERS = [text_answer(f"This is answer {number}.") for number in range(20)]


@dataclass
class Scene:
    """A conversation of Anna's at rest, and clients of Anna and Ben; a worker runs."""

    harness: ConversationHarness
    anna: Client
    ben: Client
    conversation: Conversation

    @property
    def id(self) -> str:
        return self.conversation.id

    def shared(self) -> Conversation:
        return self.ben.conversation(self.id, owner="anna")

    async def known(self) -> tuple[Any, ...]:
        return await all_that_is_known(self.anna, "anna", self.conversation.workflow_id)


@pytest_asyncio.fixture
async def scene(harness: ConversationHarness) -> AsyncIterator[Scene]:
    annas = as_user(harness, "anna")
    async with annas.worker():
        conversation = await annas.client.start("What is the secret?", annas.spec(*ANSWERS))
        await conversation.result()
        yield Scene(harness, annas.client, client_of(harness, "ben"), conversation)


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_public_method_has_a_case() -> None:
    assert public_names(Conversation) == set(CALLS)
    assert public_names(BatchHandle) - {"name", "workflow_id", "attached"} == set(BATCH_CALLS)
    assert public_names(SyncConversation) <= set(CALLS), "they call those of `Conversation`"
    assert public_names(Client) == {
        *("conversation", "start", "list_conversations", "list_shared"),
        *("ask", "fork", "as_user", "with_session_limit", "find_conversations"),
        *("list_secrets", "put_secret", "remove_secret"),
        *("connect", "close", "has_search_attributes"),
    }
    assert public_names(Batches) == {
        *("batch", "get", "rerun", "run", "list_names", "list_shared"),
        *("client", "from_client", "task_queue", "user_id"),
    }


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"start"}))
async def test_a_stranger_meets_the_same_as_where_nothing_is(scene: Scene, name: str) -> None:
    before, unknown = await scene.known(), new_conversation_id()
    for owner in (None, "anna"):
        mine = scene.ben.conversation(scene.id, owner)
        other = scene.ben.conversation(unknown, owner)
        results = await asyncio.gather(
            outcome_of(CALLS[name], mine, scene.id), outcome_of(CALLS[name], other, unknown)
        )
        assert results[0] == results[1]
        assert "secret" not in str(results[0])
        expected = {"NotFound"} if name in WRITES or (owner and name in READS) else None
        if expected is not None and name not in ("workflow_id", "diagnose"):
            assert {results[0][0]} == expected
    assert await scene.known() == before
    assert await scene.ben.list_conversations() == []


async def test_a_conversation_of_the_same_id_is_another_one(scene: Scene) -> None:
    before = await scene.known()
    bens = as_user(scene.harness, "ben")
    spec = bens.spec(text_answer("Ben's answer."))
    conversation = await bens.client.start("Ben's question.", spec, conversation_id=scene.id)
    assert (await conversation.result()).text == "Ben's answer."
    assert conversation.workflow_id == f"conv-ben:{scene.id}"
    assert await scene.known() == before
    assert await scene.ben.list_conversations() == [scene.id]
    assert (await scene.conversation.result()).text == "This is answer 0."
    await conversation.close()
    await scene.conversation.send("And now?")
    assert (await scene.conversation.result()).text == "This is answer 1."
    assert scene.harness.resources.own_folder(scene.conversation.log).parent.name == "anna"
    with pytest.raises(NotFound):
        await scene.shared().start("Hello?", spec)


async def test_functions_on_a_conversation_reach_no_strangers(scene: Scene) -> None:
    before = await scene.known()
    calls: dict[str, Callable[[str], Awaitable[Any]]] = {
        "client.ask": lambda name: scene.ben.ask(name, "What is the secret?"),
        "client.fork": lambda name: scene.ben.fork(name),
        "client.fork of the owner's": lambda name: scene.ben.fork(name, owner="anna"),
        "ask": lambda name: ask(scene.ben, name, "What is the secret?"),
        "ask of the owner's": lambda name: ask(scene.ben, name, "What?", owner="anna"),
        "fork": lambda name: fork(scene.ben, name),
        "reopen": lambda name: reopen(scene.ben, name),
        "purge": lambda name: list_purge_targets(scene.ben, name),
    }
    for name, call in calls.items():
        kind, text = await outcome_of(call, scene.id, scene.id)
        assert (kind, text.replace("anna/", "")) == (
            "NotFound",
            "There is no conversation NAME.",
        ), name
    assert await list_file_changes(scene.ben.conversation(scene.id)) == []
    assert await diff_files(scene.ben.conversation(scene.id)) == ""
    with pytest.raises(NotFound):
        await list_file_changes(scene.shared())
    assert [result async for result in reopen_all(scene.ben)] == []
    assert await scene.known() == before


@pytest.mark.parametrize("definition", [ConversationDefinition, Batch])
async def test_no_signal_query_or_update_reaches_a_strangers_workflow(
    scene: Scene, definition: type
) -> None:
    defined = temporalio.workflow._Definition.must_from_class(definition)
    before = await scene.known()
    address = (batch_workflow_id if definition is Batch else conversation_workflow_id)(
        "ben", scene.id
    )
    handle = scene.ben.temporal.get_workflow_handle(address)
    for name in defined.signals:
        with pytest.raises(RPCError, match="not found"):
            await handle.signal(name or "unknown")
    for name in (*defined.queries, "__stack_trace"):
        with pytest.raises(RPCError, match="not found"):
            await handle.query(name or "unknown")
    for name in defined.updates:
        with pytest.raises((RPCError, WorkflowUpdateFailedError), match="not found"):
            await handle.execute_update(name or "unknown")
    assert await scene.known() == before


async def test_a_worker_refuses_a_workflow_that_asks_for_another_users_log(scene: Scene) -> None:
    before = await scene.known()
    start = Start(
        conversation_id=scene.id,
        user_id="anna",
        spec=scene.harness.spec(text_answer("Never said.")),
        inbox=(UserMessage(text="What is the secret?"),),
    )
    handle = await scene.ben.temporal.start_workflow(
        "Conversation",
        start,
        id=conversation_workflow_id("ben", scene.id),
        task_queue=scene.ben.task_queue,
    )
    with pytest.raises(temporalio.client.WorkflowFailureError) as caught:
        await handle.result()
    history = (await handle.fetch_history()).to_json()
    assert "OtherUser" in history, caught.value
    assert await scene.known() == before


async def test_a_bad_user_id_is_refused(harness: ConversationHarness) -> None:
    for user_id in ("", "a/b", "a:b", ".."):
        with pytest.raises(Invalid, match="is not a user id"):
            client_of(harness, user_id).conversation(new_conversation_id())
        with pytest.raises(Invalid, match="is not a user id"):
            harness.client.conversation(new_conversation_id(), owner=user_id)


async def test_a_grant_to_read_covers_every_way_to_read_and_no_other(scene: Scene) -> None:
    await scene.conversation.note(state={"color": "blue", "user:home": "here"})
    await scene.conversation.grant("ben")
    before = await scene.known()
    for name, call in (READS | WRITES | OWNERS).items():
        kind, text = await outcome_of(call, scene.shared(), scene.id)
        assert (kind == "Forbidden") == (name not in READS), (name, text)
        assert kind != "NotFound", (name, text)
    with pytest.raises(Forbidden, match="not steer"):
        await ask(scene.ben, scene.id, "What is the secret?", owner="anna")
    assert await scene.shared().values() == {"color": "blue"}
    assert (await scene.shared().result()).text == "This is answer 0."
    assert await scene.known() == before
    with pytest.raises(NotFound):
        await scene.ben.conversation(scene.id).status()
    with pytest.raises(NotFound):
        await client_of(scene.harness, "carl").conversation(scene.id, "anna").status()


@pytest.mark.long
async def test_a_grant_to_write_covers_steering_and_no_grants(scene: Scene) -> None:
    await scene.conversation.grant("ben", "write")
    for name, call in (READS | WRITES | OWNERS).items():
        kind, text = await outcome_of(call, scene.shared(), scene.id)
        assert (kind == "Forbidden") == (name in OWNERS), (name, text)
        assert kind != "NotFound", (name, text)
    assert [grant.user_id for grant in await scene.conversation.grants()] == ["ben"]
    answer = await ask(scene.ben, scene.id, "What is it about?", owner="anna")
    assert answer.text.startswith("ANSWER")
    entries = await scene.conversation.log.read(0, await scene.conversation.log.end())
    assert event_kinds(entries).count("MessageEvent") > 2


async def test_a_revocation_takes_effect_at_once(scene: Scene) -> None:
    await scene.conversation.grant("ben", "write")
    shared = scene.shared()
    events = shared.events()
    await anext(events)
    await shared.send("One.")
    await shared.result()
    await scene.conversation.revoke("ben")
    for name, call in CALLS.items():
        if name == "workflow_id":
            continue
        kind, text = await outcome_of(call, shared, scene.id)
        assert kind == ("Forbidden" if name == "handle" else "NotFound"), (name, text)
    with pytest.raises(NotFound):
        async for _ in events:
            pass
    assert await scene.conversation.grants() == []


async def test_only_what_exists_is_shared_and_with_another_user(scene: Scene) -> None:
    with pytest.raises(NotFound):
        await scene.anna.conversation(new_conversation_id()).grant("ben")
    with pytest.raises(Invalid, match="own"):
        await scene.conversation.grant("anna")
    with pytest.raises(Invalid, match="grant read or write"):
        await scene.conversation.grant("ben", "all")  # type: ignore[arg-type]
    for user_id in ("", "b/c"):
        with pytest.raises(Invalid, match="is not a user id"):
            await scene.conversation.grant(user_id)
        with pytest.raises(Invalid, match="is not a user id"):
            await scene.conversation.revoke(user_id)
    assert await outcome_of(CALLS["events"], scene.ben.conversation(scene.id)) == NOTHING

"""The store operations of a conversation: each is a request, and most of a step's time on S3."""

import dataclasses

import pytest

from perdure.storage.store import Store, Version
from tests.harness import ConversationHarness, text_answer
from tests.secrets.keys import key_ring
from tests.workflows.batches import FakeModel, make_sums, spec, start_batch, with_model
from tests.workflows.watching import wait_until


class RecordingStore:
    """Another store; `operations` are what was done, by the part of a key that has no id.

    What a worker writes into the index of lists, beside all steps, is counted apart.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.operations: list[str] = []
        self.index_writes = 0

    async def create(self, key: str, body: bytes) -> bool:
        self._record("create", key)
        return await self.store.create(key, body)

    async def read(self, key: str) -> bytes | None:
        body = await self.store.read(key)
        self._record("read" if body is not None else "read absent", key)
        return body

    async def replace(self, key: str, body: bytes) -> None:
        self._record("replace", key)
        await self.store.replace(key, body)

    async def read_version(self, key: str) -> Version | None:
        self._record("read version", key)
        return await self.store.read_version(key)

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        self._record("replace version", key)
        return await self.store.replace_version(key, body, tag)

    async def delete(self, key: str) -> None:
        self._record("delete", key)
        await self.store.delete(key)

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        self._record("folders", prefix)
        return await self.store.folders(prefix, after, limit)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        self._record("list", prefix)
        return await self.store.list(prefix, after, limit)

    async def close(self) -> None:
        await self.store.close()

    def _record(self, operation: str, key: str) -> None:
        if "/index/" in key:
            assert operation == "create"
            self.index_writes += 1
            return
        part = key.partition("/conversations/")[2].partition("/")[2]
        name = part.partition("_")[0] if part.startswith("events/") else part
        self.operations.append(f"{operation} {name}".rstrip())


async def record_conversation(harness: ConversationHarness, *texts: str) -> list[str]:
    """Return the operations of a conversation of one run that is sent these messages."""
    store = RecordingStore(harness.resources.store)
    recorded = dataclasses.replace(
        harness, resources=dataclasses.replace(harness.resources, store=store)
    )
    answers = [text_answer("Hello.") for _ in texts]
    async with recorded.worker():
        spec = harness.spec(*answers, idle_timeout=2.0)
        talk = await harness.client.start(texts[0], spec)
        for text in texts[1:]:
            await talk.wait_for_turn()
            await wait_until(lambda: store.operations[-1] == "replace segments/tail")
            await talk.send(text)
        await talk.handle.result()
    assert store.index_writes <= len(texts)
    return store.operations


@pytest.mark.long
async def test_a_new_conversation_reads_nothing_that_is_not_there(
    harness: ConversationHarness,
) -> None:
    assert await record_conversation(harness, "Hello?") == [
        "list",
        *(f"create events/{seq:06d}" for seq in range(5)),
        "replace llm_messages.json",
        "replace base_state.json",
        "replace segments/tail",
    ]


@pytest.mark.long
async def test_a_further_turn_reads_nothing_at_all(harness: ConversationHarness) -> None:
    operations = await record_conversation(harness, "Hello?", "Hello again?")
    assert operations[9:] == [
        *(f"create events/{seq:06d}" for seq in range(5, 7)),
        "replace llm_messages.json",
        "replace base_state.json",
        "replace segments/tail",
    ]


@pytest.mark.long
async def test_a_user_without_webhooks_costs_no_further_operation(
    harness: ConversationHarness,
) -> None:
    without_keys = await record_conversation(harness, "Hello?", "Hello again?")
    resources = dataclasses.replace(harness.resources, secret_keys=key_ring("first"))
    keyed = dataclasses.replace(harness, resources=resources)
    operations = await record_conversation(keyed, "Hello?", "Hello again?")
    listed = [name for name in operations if name != "list"]
    assert listed == [name for name in without_keys if name != "list"]
    assert operations.count("list") <= without_keys.count("list") + 3, "every five seconds at most"


async def test_a_sample_reads_its_batch_and_nothing_that_is_not_there(
    harness: ConversationHarness,
) -> None:
    harness = with_model(harness, FakeModel(lambda _: "1"))
    store = RecordingStore(harness.resources.store)
    recorded = dataclasses.replace(
        harness, resources=dataclasses.replace(harness.resources, store=store)
    )
    async with recorded.worker():
        await (await start_batch(harness, spec(), make_sums(1))).result()
    opened = store.operations.index("list")
    of_sample = [done for done in store.operations[opened:] if " " in done or done == "list"]
    assert of_sample == [
        "list",
        *(f"create events/{seq:06d}" for seq in range(5)),
        "replace base_state.json",
        "create segments/000000-000005.jsonl",
        "replace segments/tail",
        "replace llm_messages.json",
    ]
    assert store.operations[opened:].count("read") == 2, "the batch, to begin and to score"
    assert "read absent" not in store.operations[opened:]

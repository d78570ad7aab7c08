"""The counts of a store's operations."""

from pathlib import Path

import pytest

from bench.store_operations import CountingStore, describe_operation
from perdure.storage.files import FileStore

FOLDER = "users/local/conversations/01a20919-a76d-7126-a9de-d64044c780c6"


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (f"{FOLDER}/events/000012_0cf8678b-1868-5531-8157-d07e66734a07.json", "read events/N.json"),
        (f"{FOLDER}/responses/000004.json", "read responses/N.json"),
        (f"{FOLDER}/base_state.json", "read base_state.json"),
        ("", "read"),
    ],
)
def test_an_operation_is_named_by_its_key_within_the_conversation(key: str, shown: str) -> None:
    assert describe_operation("read", key) == shown


async def test_a_counting_store_counts_every_call_and_does_it(tmp_path: Path) -> None:
    store = CountingStore(FileStore(tmp_path))
    assert await store.create(f"{FOLDER}/a", b"1")
    assert not await store.create(f"{FOLDER}/a", b"2")
    assert await store.read(f"{FOLDER}/a") == b"1"
    assert await store.read(f"{FOLDER}/b") is None
    assert store.counts == {"create a": 2, "read a": 1, "read b": 1}

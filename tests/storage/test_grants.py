"""Grants on the store, and the store of whoever has one."""

from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pytest

from perdure.client.ids import new_conversation_id
from perdure.errors import Forbidden, NotFound
from perdure.storage.errors import Altered
from perdure.storage.files import FileStore
from perdure.storage.granted_store import GrantedStore
from perdure.storage.grants import (
    Grant,
    Shareable,
    delete_grant,
    list_grants,
    read_access,
    save_grant,
)
from perdure.storage.keys import conversation_prefix, event_key

ID = new_conversation_id()
PREFIX = conversation_prefix("anna", ID)
SHARED = Shareable("conversation", "anna", ID)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


async def test_a_grant_is_of_one_user_for_one_conversation(store: FileStore) -> None:
    await save_grant(store, SHARED, Grant(user_id="ben", access="read"))
    assert await read_access(store, SHARED, "ben") == "read"
    assert await read_access(store, SHARED, "be") is None
    assert (
        await read_access(store, Shareable("conversation", "anna", new_conversation_id()), "ben")
        is None
    )
    assert await read_access(store, Shareable("conversation", "ben", ID), "ben") is None
    await save_grant(store, SHARED, Grant(user_id="ben", access="write"))
    await save_grant(store, SHARED, Grant(user_id="carl", access="read"))
    assert await list_grants(store, SHARED) == [
        Grant(user_id="ben", access="write"),
        Grant(user_id="carl", access="read"),
    ]
    await delete_grant(store, SHARED, "ben")
    await delete_grant(store, SHARED, "ben")
    assert await read_access(store, SHARED, "ben") is None


@pytest.mark.parametrize("user_id", ["", "..", "a/b", "a:b", "a b", "x" * 129])
async def test_the_user_of_a_grant_is_a_user_id(store: FileStore, user_id: str) -> None:
    with pytest.raises(ValueError, match="is not a user id"):
        await save_grant(store, SHARED, Grant(user_id=user_id, access="read"))


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"user_id":"ben","access":"all"}', b'{"user_id":"carl","access":"read"}']
)
async def test_an_altered_grant_grants_nothing(store: FileStore, body: bytes) -> None:
    await store.replace(f"{PREFIX}grants/ben.json", body)
    with pytest.raises(Altered):
        await read_access(store, SHARED, "ben")


async def test_the_store_of_a_grant_reads_or_writes_conversations_and_deletes_nothing(
    store: FileStore,
) -> None:
    granted = GrantedStore(store, SHARED, "ben")
    await store.create(f"{PREFIX}events/a", b"event")
    await store.create("users/anna/state/secret.json", b"1")
    await store.create("app/state/shared.json", b"2")
    for request in (
        lambda: granted.read(f"{PREFIX}events/a"),
        lambda: granted.list(PREFIX),
        lambda: granted.folders(PREFIX),
        lambda: granted.create(f"{PREFIX}events/b", b""),
        lambda: granted.replace(f"{PREFIX}base_state.json", b""),
        lambda: granted.delete(f"{PREFIX}events/a"),
    ):
        with pytest.raises(NotFound, match=f"There is no conversation anna/{ID}"):
            await request()
    await save_grant(store, SHARED, Grant(user_id="ben", access="read"))
    assert await granted.read(f"{PREFIX}events/a") == b"event"
    assert await granted.list(f"{PREFIX}events/") == [f"{PREFIX}events/a"]
    assert await granted.read("app/state/shared.json") == b"2"
    assert await granted.read("users/anna/state/secret.json") is None
    assert await granted.list("users/anna/state/") == []
    assert await granted.folders("users/") == []
    with pytest.raises(Forbidden, match="may read"):
        await granted.create(f"{PREFIX}events/b", b"")
    await save_grant(store, SHARED, Grant(user_id="ben", access="write"))
    assert await granted.create(f"{PREFIX}blobs/b", b"")
    for request in (
        lambda: granted.create(f"{PREFIX}events/b", b""),
        lambda: granted.replace(f"{PREFIX}base_state.json", b"{}"),
        lambda: granted.delete(f"{PREFIX}events/a"),
        lambda: granted.replace("app/state/shared.json", b""),
        lambda: granted.create("users/anna/state/new.json", b""),
    ):
        with pytest.raises(Forbidden, match="Only anna"):
            await request()
    await granted.close()
    assert await store.read(f"{PREFIX}events/a") == b"event"


async def test_nobody_grants_himself_more(store: FileStore) -> None:
    """A grant `write` covers steering; grants are not written through it."""
    await save_grant(store, SHARED, Grant(user_id="ben", access="write"))
    granted = GrantedStore(store, SHARED, "ben")
    with pytest.raises(Forbidden, match="Only anna"):
        await save_grant(granted, SHARED, Grant(user_id="carl", access="read"))


async def test_a_stranger_makes_no_request_that_depends_on_what_there_is(store: FileStore) -> None:
    """The conversation of a sample is read by its batch's grant, and looked at for nobody else."""
    name = str(uuid5(NAMESPACE_URL, "sample"))
    of, batch = Shareable("conversation", "anna", name), Shareable("batch", "anna", "sums")
    await store.create(of.prefix + event_key(name, 0), b'{"value":{"trial":{"batch":"sums"}}}')
    read: list[str] = []

    class Recorded(FileStore):
        async def read(self, key: str) -> bytes | None:
            read.append(key)
            return await super().read(key)

    recorded = Recorded(store.root)
    granted = GrantedStore(recorded, of, "ben")
    assert await granted.find_access() is None
    assert read == [of.grant_key("ben")]
    await save_grant(store, batch, Grant(user_id="ben", access="write"))
    assert await granted.find_access() == "read"
    await delete_grant(store, batch, "ben")
    assert await granted.find_access() is None

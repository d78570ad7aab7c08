"""The work that requests have begun is noted on a store."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perdure.storage.errors import Altered
from perdure.storage.files import FileStore
from perdure.storage.foreign.begun_requests import (
    BegunRequest,
    BegunRequests,
    delete_old_requests,
)
from perdure.storage.store import list_keys

BEGUN = BegunRequest(conversation_id="a", message_id="m", is_new=True)
OTHER = BegunRequest(conversation_id="b", after_seq=7)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


async def test_a_request_of_a_user_is_found(store: FileStore) -> None:
    requests = BegunRequests(store, 900)
    await requests.note("anna", "one", BEGUN)
    assert await requests.find("anna", "one") == BEGUN
    assert await requests.find("anna", "two") is None
    assert await requests.find("ben", "one") is None


async def test_the_same_request_takes_the_place_of_an_earlier_one_unless_it_is_named(
    store: FileStore,
) -> None:
    requests = BegunRequests(store, 900)
    await requests.note("anna", "one", BEGUN)
    await requests.note("anna", "one", OTHER)
    assert await requests.find("anna", "one") == OTHER
    assert await requests.note_first("anna", "named", BEGUN) == BEGUN
    assert await requests.note_first("anna", "named", OTHER) == BEGUN


async def test_what_is_of_no_use_any_more_is_deleted(store: FileStore) -> None:
    requests, now = BegunRequests(store, 900), datetime.now(UTC)
    await requests.note("anna", "one", BEGUN)
    assert await delete_old_requests(store, now + timedelta(seconds=890)) == 0
    assert await requests.find("anna", "one") == BEGUN
    assert await delete_old_requests(store, now + timedelta(seconds=1801)) == 1
    assert await requests.find("anna", "one") is None


async def test_a_record_that_is_none_is_an_error(store: FileStore) -> None:
    requests = BegunRequests(store, 900)
    await requests.note("anna", "one", BEGUN)
    [key] = [key async for key in list_keys(store, "gateway/requests/")]
    await store.replace(key, b"{}")
    with pytest.raises(Altered):
        await requests.find("anna", "one")

"""A worker notes conversations that rest for the index of lists, and merges what it wrote."""

import logging

import pytest

from perdure.activities.support.list_notes import ListNotes
from perdure.agent.loop.state import State
from perdure.agent.loop.wait import Wait
from perdure.client.ids import new_conversation_id
from perdure.storage.errors import StoreRefused, StoreUnavailable
from perdure.storage.keys import index_prefix
from perdure.storage.list_index import load_index, remove_from_index
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from tests.builders import SPEC
from tests.storage.made import origin_by, user_message
from tests.storage.memory import MemoryStore

USER = "ann"
PREFIX = index_prefix(USER)


class UnreliableStore(MemoryStore):
    """A store that is away, or refuses to delete, when it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = self.keeps_all = False

    async def delete(self, key: str) -> None:
        if self.keeps_all:
            raise StoreRefused("This key deletes nothing.")
        await super().delete(key)

    async def create(self, key: str, body: bytes) -> bool:
        if self.is_away:
            raise StoreUnavailable("The store is away.")
        return await super().create(key, body)


async def note(notes: ListNotes, store: Store, state: State | None = None) -> str:
    """Write a conversation that rests, and note it; return its id."""
    name = new_conversation_id()
    log = EventLog(store, USER, name, EntryCache(1_000_000))
    await log.append([user_message("Hello.")], base=0, origin=origin_by("a"))
    state = state or State(status="finished", next_seq=1, first_user_seq=0, spec=SPEC)
    await notes.note(log, state)
    await notes.flush()
    return name


async def test_sixteen_objects_become_one_and_so_do_sixteen_of_these() -> None:
    store = MemoryStore()
    notes = ListNotes(store)
    names = []
    for count in range(1, 16 * 16 + 1):
        names.append(await note(notes, store))
        objects = await store.list(PREFIX)
        assert len(objects) == count // 256 + count % 256 // 16 + count % 16
    assert set((await load_index(store, USER)).merge()) == set(names)


async def test_what_is_purged_between_a_write_and_a_merge_does_not_return() -> None:
    store = MemoryStore()
    notes = ListNotes(store, merged_objects=3)
    purged, kept = await note(notes, store), await note(notes, store)
    await remove_from_index(store, USER, purged)
    last = await note(notes, store)
    assert len(await store.list(PREFIX)) == 1
    assert set((await load_index(store, USER)).merge()) == {kept, last}


async def test_what_others_have_merged_is_not_looked_for_again() -> None:
    store = MemoryStore()
    notes = ListNotes(store, merged_objects=2)
    await note(notes, store)
    for key in await store.list(PREFIX):
        await store.delete(key)
    last = await note(notes, store)
    assert set((await load_index(store, USER)).merge()) == {last}


async def test_a_store_that_is_away_is_logged_and_the_next_note_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = UnreliableStore()
    notes = ListNotes(store, merged_objects=2)
    first = await note(notes, store)
    with caplog.at_level(logging.WARNING):
        log = EventLog(store, USER, new_conversation_id(), EntryCache(1_000_000))
        await log.append([user_message("Hello.")], base=0, origin=origin_by("a"))
        await notes.note(log, State(status="finished", next_seq=1, first_user_seq=0, spec=SPEC))
        store.is_away = True
        await notes.flush()
    assert "the index of ann lacks conversations" in caplog.text
    store.is_away = False
    last = await note(notes, store)
    assert set((await load_index(store, USER)).merge()) == {first, last}


async def test_a_store_that_deletes_nothing_has_all_conversations(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = UnreliableStore()
    store.keeps_all = True
    notes = ListNotes(store, merged_objects=2)
    names = [await note(notes, store) for _ in range(4)]
    assert "the index of ann has more objects than it could" in caplog.text
    assert set((await load_index(store, USER)).merge()) == set(names)


async def test_a_wait_is_noted_with_what_it_waits_for() -> None:
    store = MemoryStore()
    wait = Wait(seq=0, action_id="a", tool_call_id="c", question="Which?", choices=("red", "blue"))
    state = State(
        status="waiting_for_answer", next_seq=1, first_user_seq=0, spec=SPEC, turn=1, wait=wait
    )
    name = await note(ListNotes(store), store, state)
    summary = (await load_index(store, USER)).merge()[name].decode()
    assert summary is not None
    assert summary.wait is not None
    assert summary.wait["question"] == "Which?"
    assert summary.wait["choices"] == ["red", "blue"]

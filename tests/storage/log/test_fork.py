"""Conversations that begin with another one's events, on every store."""

import asyncio
import json
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agent.calls.completion import Completion
from perdure.events.content import Message
from perdure.events.entry import Entry
from perdure.storage.conversations import conversation_exists, list_conversations
from perdure.storage.errors import Altered, Fenced, Missing, StoreRefused
from perdure.storage.keys import event_id
from perdure.storage.log.cached_state import parse_cached_state
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.fork import fork, forks_of
from perdure.storage.log.state import read_state, read_state_at
from perdure.storage.store import Store
from tests.storage.made import NOW, log_in, origin_by, texts, user_message
from tests.storage.memory import MemoryStore

MORE_THAN_TWO_BATCHES = 70  # more than are asked for at once, twice


async def fill(log: EventLog, count: int, first: int = 0, run: str = "run-1") -> list[Entry]:
    events = [user_message(f"{number}") for number in range(first, first + count)]
    return await log.append(events, base=first, origin=origin_by(f"from {first}", run))


async def make_fork(log: EventLog, at: int, *events: str) -> EventLog:
    """A reader of its own, which knows nothing but what the store says."""
    child = log_in(log.store, conversation=str(uuid4()))
    messages = [user_message(text) for text in events]
    await fork(log, child, await read_state_at(log, at + 1), messages)
    return log_in(log.store, conversation=child.conversation_id)


async def test_the_first_slots_of_a_fork_are_its_parents_and_the_next_are_its_own(
    store: Store,
) -> None:
    parent = log_in(store)
    written = await fill(parent, MORE_THAN_TWO_BATCHES)
    child = await make_fork(parent, 39)
    own = await fill(child, 40, first=40, run="run-2")
    assert await child.read(0, 1000) == [*written[:40], *own]
    assert await child.read(35, 10) == [*written[35:40], *own[:5]]
    assert await child.read_newest(2) == own[:-3:-1]
    assert [entry.event.id for entry in await child.read(39, 2)] == [
        event_id(parent.conversation_id, 39),
        event_id(child.conversation_id, 40),
    ]
    assert await parent.read(0, 1000) == written


@pytest.mark.parametrize("hint", [0, 3, 4, 5, 900])
async def test_the_end_of_a_fork_is_found_whatever_the_hint(hint: int) -> None:
    parent = log_in(MemoryStore())
    await fill(parent, 9)
    child = await make_fork(parent, 3)
    assert await child.end(hint) == 4
    await fill(child, 1, first=4)
    assert await child.end(hint) == 5


async def test_a_fork_with_no_event_of_its_own_is_a_conversation(store: Store) -> None:
    parent = log_in(store)
    await fill(parent, 9)
    child = await make_fork(parent, 3)
    assert texts(await child.read(0, 100)) == ["0", "1", "2", "3"]
    assert await conversation_exists(store, "somebody", child.conversation_id)
    assert child.conversation_id in await list_conversations(store, "somebody", 10)
    assert (await read_state(child)) == (await read_state_at(parent, 4))


async def test_the_first_events_of_a_fork_are_written_with_it(store: Store) -> None:
    parent = log_in(store)
    await fill(parent, 3)
    child = await make_fork(parent, 1, "a new beginning")
    assert texts(await child.read(0, 100)) == ["0", "1", "a new beginning"]
    state_bytes = await child.load_state()
    assert state_bytes is not None
    assert parse_cached_state(state_bytes).state == await read_state_at(child, 3)


@pytest.mark.parametrize(
    "state_bytes", [b"", b"{", b"[]", b'{"next_seq": 2, "from_the_future": 1}']
)
async def test_an_unreadable_cached_state_is_ignored(state_bytes: bytes) -> None:
    parent = log_in(MemoryStore())
    await fill(parent, 5)
    child = await make_fork(parent, 2)
    state = await read_state(child)
    await child.save_state(state_bytes)
    assert await read_state(child) == state


async def test_parent_and_fork_continue_side_by_side(store: Store) -> None:
    parent = log_in(store, EntryCache(1_000_000))
    await fill(parent, 5)
    child = await make_fork(parent, 2)
    tail = child.tail(after=1)
    assert texts([await anext(tail)]) == ["2"]
    coming = asyncio.ensure_future(anext(tail))
    await fill(parent, 3, first=5)
    assert not coming.done(), "what the parent does next is none of the fork's"
    await fill(child, 1, first=3, run="run-2")
    assert texts([await coming]) == ["3"]
    await tail.aclose()
    assert len(await parent.read(0, 100)) == 8
    assert len(await child.read(0, 100)) == 4


async def test_nobody_writes_into_the_slots_that_a_fork_refers_to(store: Store) -> None:
    parent = log_in(store)
    await fill(parent, 5)
    child = await make_fork(parent, 2)
    with pytest.raises(Fenced, match=parent.conversation_id):
        await child.append([user_message("mine")], base=1, origin=origin_by("late", "run-2"))
    assert texts(await child.read(0, 100)) == ["0", "1", "2"]


async def test_blobs_and_responses_of_the_parent_are_read_by_the_fork(store: Store) -> None:
    parent = log_in(store)
    await fill(parent, 5)
    old, new = await parent.store_blob(b"long output"), await parent.store_blob(b"another")
    answer = Completion(id="c", model="m", message=Message(role="assistant"), received=NOW)
    for seq in (2, 3):
        await parent.record_response(seq, answer, origin_by(f"think {seq}"))
    grandchild = await make_fork(await make_fork(parent, 2), 2)
    assert await grandchild.read_blob(old) == b"long output"
    assert await grandchild.store_blob(b"of my own")
    assert await grandchild.read_response(2) == answer
    assert await grandchild.read_response(3) is None, "that one belongs to what came after the fork"
    [place] = [key for key in await store.list("users/") if key.endswith(new)]
    await store.replace(place, b"what was never said")
    with pytest.raises(Altered):
        await grandchild.read_blob(new)


async def test_a_fork_is_known_to_the_holder_of_its_slots(store: Store) -> None:
    first = log_in(store)
    await fill(first, 9)
    second = await make_fork(first, 6)
    await fill(second, 5, first=7)
    third, fourth = await make_fork(second, 3), await make_fork(second, 8)
    assert set(await forks_of(first)) == {second.conversation_id, third.conversation_id}
    assert await forks_of(second) == [fourth.conversation_id]
    assert [holder.first for holder in await fourth.lineage()] == [9, 7, 0]
    assert texts(await fourth.read(0, 100)) == [str(number) for number in range(9)]


async def test_a_mark_of_a_fork_that_never_began_is_ignored(store: Store) -> None:
    parent = log_in(store)
    await fill(parent, 2)
    place = f"users/somebody/conversations/{parent.conversation_id}/forks/{uuid4()}.json"
    await store.create(place, b"{}")
    assert await forks_of(parent) == []


async def test_a_taken_id_is_refused_for_a_fork(store: Store) -> None:
    parent, other = log_in(store), log_in(store)
    await fill(parent, 3)
    await fill(other, 1)
    with pytest.raises(StoreRefused, match="use a new id"):
        await fork(parent, other, await read_state_at(parent, 2), [])
    assert texts(await log_in(store, conversation=other.conversation_id).read(0, 9)) == ["0"]
    assert await forks_of(parent) == []


@pytest.mark.long
async def test_repeating_a_fork_changes_nothing(store: Store) -> None:
    """A crash may come before the answer; a fork with events of its own is another's."""
    parent, child = log_in(store), log_in(store, conversation=str(uuid4()))
    await fill(parent, 3)
    state = await read_state_at(parent, 2)
    assert await fork(parent, child, state, [user_message("on")]) == await fork(
        parent, child, state, [user_message("on")]
    )


async def test_a_slot_that_the_parent_lost_is_named_with_the_parents_key(store: Store) -> None:
    parent = log_in(store)
    await fill(parent, 3)
    child = await make_fork(parent, 2)
    [key] = [key for key in await store.list("users/") if "/events/000001_" in key]
    await store.delete(key)
    with pytest.raises(Missing, match=parent.conversation_id):
        await child.read(0, 10)
    assert len(await child.read_slots(0, 10)) == 3


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"at": 1}'])
async def test_a_fork_with_an_unreadable_origin_is_refused(body: bytes) -> None:
    store = MemoryStore()
    log = log_in(store)
    prefix = f"users/somebody/conversations/{log.conversation_id}/"
    await store.create(f"{prefix}fork.json", body)
    for read in (log.end(), log.read_slots(0, 10), log.find(0)):
        with pytest.raises(Altered, match=r"fork\.json is not what was written"):
            await read


async def test_forks_that_go_in_circles_are_not_followed(store: Store) -> None:
    first, second = str(uuid4()), str(uuid4())
    for name, parent in ((first, second), (second, first)):
        body = {"user_id": "somebody", "conversation_id": parent, "at": 5, "sha": ""}
        prefix = f"users/somebody/conversations/{name}/"
        await store.create(f"{prefix}fork.json", json.dumps(body).encode())
    with pytest.raises(Altered):
        await log_in(store, conversation=first).find(0)


@dataclass
class Model:
    """The expected contents of a conversation."""

    log: EventLog
    texts: list[str] = field(default_factory=list)


@given(st.data())
@settings(max_examples=40)
def test_every_range_of_any_fork_reads_as_a_copy_would(
    data: st.DataObject,
) -> None:
    asyncio.run(_grow(data))


async def _grow(data: st.DataObject) -> None:
    store, cache = MemoryStore(), EntryCache(100_000)
    family = [Model(log_in(store))]
    for step in range(data.draw(st.integers(2, 8))):
        known = data.draw(st.sampled_from(family))
        if data.draw(st.booleans()) and known.texts:
            at = data.draw(st.integers(0, len(known.texts) - 1))
            log = await make_fork(known.log, at)
            family.append(Model(log, known.texts[: at + 1]))
        else:
            more = [f"{step}.{number}" for number in range(data.draw(st.integers(1, 4)))]
            base = len(known.texts)
            await known.log.append(
                [user_message(text) for text in more], base=base, origin=origin_by(f"{step}")
            )
            known.texts += more
    for known in family:
        log = log_in(store, cache, known.log.conversation_id)
        first, limit = data.draw(st.integers(0, 12)), data.draw(st.integers(1, 40))
        assert texts(await log.read(first, limit)) == known.texts[first : first + limit]
        assert await log.end(hint=data.draw(st.integers(0, 20))) == len(known.texts)

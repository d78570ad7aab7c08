"""The index of lists: a hint beside the logs, which can be lost."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.client.ids import new_conversation_id
from perdure.events.usage import Usage
from perdure.storage.keys import index_prefix
from perdure.storage.list_index import (
    IndexCache,
    ListIndex,
    _encode,
    add_to_index,
    compact_index,
    is_current,
    load_index,
    reindex,
    remove_from_index,
)
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from perdure.storage.summaries import Summary, summarize
from tests.storage.made import origin_by, user_message
from tests.storage.memory import MemoryStore

USER = "ann"
PREFIX = index_prefix(USER)


def make_summary(name: str, events: int = 1, title: str = "A title") -> Summary:
    return Summary(
        id=name,
        status="finished",
        phase="finished",
        turn=1,
        events=events,
        model="m",
        begun=None,
        last_event="2026-11-26T10:00:00.000000+00:00",
        title=title,
        tags=("one", "two"),
        trouble=None,
        asks=({"seq": 3, "tool_name": "terminal", "tool_call_id": "a", "risk": "LOW"},),
        tokens=3,
        cost=0.5,
        usage=Usage(prompt_tokens=2, completion_tokens=1, cost=0.5),
        first_message=None,
        agent="helper",
        app="shop",
    )


async def start_log(store: Store, text: str) -> str:
    name = new_conversation_id()
    log = EventLog(store, USER, name)
    await log.append([user_message(text)], base=0, origin=origin_by("a"))
    return name


async def test_a_summary_is_read_back_as_it_was_added(store: Store) -> None:
    name = new_conversation_id()
    assert (await load_index(store, USER)).merge() == {}
    await add_to_index(store, USER, [make_summary(name)])
    assert (await load_index(store, USER)).merge() == {name: make_summary(name)}
    assert (await load_index(store, "bob")).merge() == {}


@given(st.permutations([1, 5, 3]))
async def test_of_two_summaries_that_of_more_events_counts(order: list[int]) -> None:
    store, name = MemoryStore(), str(UUID(int=7))
    for events in order:
        await add_to_index(store, USER, [make_summary(name, events)])
    assert (await load_index(store, USER)).merge()[name].events == 5


async def test_a_damaged_line_is_left_out_and_others_are_read() -> None:
    store, name = MemoryStore(), new_conversation_id()
    await add_to_index(store, USER, [make_summary(name)])
    [key] = store.objects
    store.objects[key] += b'{"id": 1}\nno json\n[1]\n{"id":"x","tags":5}\n'
    assert list((await load_index(store, USER)).merge()) == [name]


async def test_many_objects_become_one_that_lacks_what_is_purged() -> None:
    store, names = MemoryStore(), [new_conversation_id() for _ in range(20)]
    for name in names:
        await add_to_index(store, USER, [make_summary(name)])
    cache = IndexCache()
    index = await load_index(store, USER, cache)
    await compact_index(store, USER, index, names[1:])
    assert len(await store.list(PREFIX)) == 1
    assert set((await load_index(store, USER, cache)).merge()) == set(names[1:])


async def test_few_objects_are_left_alone_until_most_of_them_is_superseded() -> None:
    store, name = MemoryStore(), new_conversation_id()
    await add_to_index(store, USER, [make_summary(name)])
    await compact_index(store, USER, await load_index(store, USER), [name])
    [key] = await store.list(PREFIX)
    many = tuple(make_summary(name, number) for number in range(1, 1200))
    await compact_index(store, USER, ListIndex({key: many}), [name])
    [merged] = (await load_index(store, USER)).objects.values()
    assert merged == (make_summary(name, 1199),)


async def test_a_lost_index_is_made_anew_from_the_logs(store: Store) -> None:
    first, second = await start_log(store, "first"), await start_log(store, "second")
    await add_to_index(store, USER, [make_summary(first), make_summary(new_conversation_id())])
    assert await reindex(store, USER) == 2
    index = (await load_index(store, USER)).merge()
    assert index == {
        name: replace(found, first_message=index[name].first_message)
        for name in (first, second)
        if (found := await summarize(store, USER, name))
    }
    assert {summary.title for summary in index.values()} == {"first", "second"}
    assert len(await store.list(PREFIX)) == 1


@pytest.mark.parametrize("later", [False, True])
async def test_what_rests_counts_before_what_was_read_just_before_its_state_was_saved(
    later: bool,
) -> None:
    store, rests = MemoryStore(), make_summary("a", 3)
    works = replace(rests, status="running", phase="running")
    for summary in (works, rests) if later else (rests, works):
        await store.create(f"{PREFIX}{len(store.objects)}.jsonl", _encode(summary))
    assert (await load_index(store, USER)).merge() == {"a": rests}


async def test_nothing_is_left_of_a_purged_conversation(store: Store) -> None:
    purged, other = new_conversation_id(), new_conversation_id()
    await add_to_index(store, USER, [make_summary(purged, title="secret"), make_summary(other)])
    await add_to_index(store, USER, [make_summary(purged, 2, title="secret")])
    await remove_from_index(store, USER, purged)
    assert list((await load_index(store, USER)).merge()) == [other]
    bodies = [await store.read(key) or b"" for key in await store.list(PREFIX)]
    assert b"secret" not in b"".join(bodies)


async def test_a_summary_is_current_until_an_event_follows() -> None:
    store = MemoryStore()
    name = await start_log(store, "hello")
    summary = await summarize(store, USER, name)
    assert summary is not None
    assert await is_current(store, USER, summary)
    log = EventLog(store, USER, name)
    await log.append([user_message("more")], base=1, origin=origin_by("b"))
    assert not await is_current(store, USER, summary)
    assert not await is_current(store, USER, make_summary(new_conversation_id()))

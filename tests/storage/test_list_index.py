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
    IndexLine,
    ListIndex,
    add_to_index,
    compact_index,
    encode_summary,
    is_current,
    load_index,
    parse_line,
    remove_from_index,
)
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from perdure.storage.log.trouble import save_trouble
from perdure.storage.reindex import reindex
from perdure.storage.store import Store
from perdure.storage.summaries import summarize
from perdure.storage.summary import Summary
from tests.storage.made import origin_by, user_message
from tests.storage.memory import MemoryStore

USER = "ann"
PREFIX = index_prefix(USER)
NOW = "2026-11-28T10:00:00.000000"


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


def parse_all(summaries: list[Summary]) -> tuple[IndexLine, ...]:
    lines = tuple(map(parse_line, map(encode_summary, summaries)))
    assert None not in lines
    return tuple(filter(None, lines))


async def load_summaries(store: Store, user_id: str = USER) -> dict[str, Summary | None]:
    """Load the newest summaries of an index."""
    lines = (await load_index(store, user_id)).merge()
    return {name: line.decode() for name, line in lines.items()}


async def start_log(store: Store, text: str) -> str:
    name = new_conversation_id()
    log = EventLog(store, USER, name)
    await log.append([user_message(text)], base=0, origin=origin_by("a"))
    return name


async def test_a_summary_is_read_back_as_it_was_added(store: Store) -> None:
    name = new_conversation_id()
    assert await load_summaries(store) == {}
    await add_to_index(store, USER, [make_summary(name)])
    assert await load_summaries(store) == {name: make_summary(name)}
    assert await load_summaries(store, "bob") == {}


@given(st.permutations([1, 5, 3]))
async def test_of_two_summaries_that_of_more_events_counts(order: list[int]) -> None:
    store, name = MemoryStore(), str(UUID(int=7))
    for events in order:
        await add_to_index(store, USER, [make_summary(name, events)])
    summary = (await load_summaries(store))[name]
    assert summary is not None
    assert summary.events == 5


async def test_a_damaged_line_is_left_out_and_others_are_read() -> None:
    store, name = MemoryStore(), new_conversation_id()
    await add_to_index(store, USER, [make_summary(name)])
    [key] = store.objects
    store.objects[key] += b'{"id": 1}\nno json\n[1]\n{"id":"x","tags":5}\n'
    assert list((await load_index(store, USER)).merge()) == [name]


async def test_a_summary_that_lacks_a_field_is_read_from_the_log() -> None:
    store, name = MemoryStore(), await start_log(MemoryStore(), "hello")
    await add_to_index(store, USER, [make_summary(name)])
    [key] = store.objects
    store.objects[key] = store.objects[key].replace(b'"usage"', b'"use"')
    assert await load_summaries(store) == {name: None}


async def test_a_line_that_is_damaged_in_the_middle_gives_way_to_any_other() -> None:
    store, name = MemoryStore(), await start_log(MemoryStore(), "hello")
    await add_to_index(store, USER, [make_summary(name, 7)])
    [key] = store.objects
    store.objects[key] = store.objects[key].replace(b'"events": 7', b'"events": "many"')
    [line] = (await load_index(store, USER)).merge().values()
    assert (line.fields, line.is_lasting) == (None, False)
    await add_to_index(store, USER, [make_summary(name, 1)])
    assert await load_summaries(store) == {name: make_summary(name, 1)}


async def test_an_index_of_more_objects_than_a_reader_wants_is_not_read(store: Store) -> None:
    names = [new_conversation_id() for _ in range(3)]
    for name in names:
        await add_to_index(store, USER, [make_summary(name)])
    assert (await load_index(store, USER, max_objects=2)).objects == {}
    assert len((await load_index(store, USER, max_objects=3)).objects) == 3


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
    many = parse_all([make_summary(name, number) for number in range(1, 1200)])
    await compact_index(store, USER, ListIndex({key: many}), [name])
    assert await load_summaries(store) == {name: make_summary(name, 1199)}
    assert len(await store.list(PREFIX)) == 1


async def test_a_lost_index_is_made_anew_from_the_logs(store: Store) -> None:
    first, second = await start_log(store, "first"), await start_log(store, "second")
    await add_to_index(store, USER, [make_summary(first), make_summary(new_conversation_id())])
    assert await reindex(store, USER) == 2
    found = {name: await summarize(store, USER, name) for name in (first, second)}
    assert await load_summaries(store) == found
    assert {summary and summary.title for summary in found.values()} == {"first", "second"}
    assert len(await store.list(PREFIX)) == 1


@pytest.mark.parametrize("later", [False, True])
async def test_what_rests_counts_before_what_was_read_just_before_its_state_was_saved(
    later: bool,
) -> None:
    store, name = MemoryStore(), new_conversation_id()
    rests = make_summary(name, 3)
    works = replace(rests, status="running", phase="running")
    for summary in (works, rests) if later else (rests, works):
        await store.create(f"{PREFIX}{len(store.objects)}.jsonl", encode_summary(summary))
    assert await load_summaries(store) == {name: rests}


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


async def test_a_summary_from_before_a_trouble_is_not_current() -> None:
    store = MemoryStore()
    name = await start_log(store, "hello")
    summary, log = await summarize(store, USER, name), LogReader(store, USER, name)
    assert summary is not None
    await save_trouble(log, "No worker is there.", NOW)
    assert not await is_current(store, USER, summary)
    found = await summarize(store, USER, name)
    assert found is not None
    assert found.trouble == "No worker is there."
    await save_trouble(log, None, NOW)
    assert await is_current(store, USER, summary)

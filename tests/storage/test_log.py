"""The laws of a log, on every store there is."""

import asyncio
import hashlib
from uuid import UUID, uuid5

import pytest

from agent.completion import Completion
from events.content import Message, TextContent
from events.entry import Entry
from events.event import AnyEvent
from events.usage import Usage
from storage.cache import EntryCache
from storage.errors import Damaged, Fenced, StoreUnavailable, Superseded
from storage.log import EventLog
from storage.store import Store
from tests.storage.made import (
    LATER,
    NOW,
    by,
    called,
    failed,
    from_the_future,
    log_in,
    opened,
    returned,
    said,
    texts,
)
from tests.storage.memory import MemoryStore


def seqs(entries: list[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


async def test_events_are_written_into_the_slots_from_the_base_on(store: Store) -> None:
    log = log_in(store)
    first = await log.append([said("one"), said("two")], base=0, origin=by("a"))
    second = await log.append([said("three")], base=2, origin=by("b"))
    assert seqs(first + second) == [0, 1, 2]
    assert await log.read(0, 10) == first + second
    assert texts(await log.read(0, 10)) == ["one", "two", "three"]


async def test_a_slot_has_one_key_and_its_event_one_id(store: Store) -> None:
    log = log_in(store)
    [entry] = await log.append([said("one")], base=0, origin=by("a"))
    wanted = str(uuid5(UUID(log.conversation_id), "0"))
    assert entry.event.id == wanted
    prefix = f"users/somebody/conversations/{log.conversation_id}/events/"
    assert await store.list("users/") == [f"{prefix}000000_{wanted}.json"]
    assert await store.read(f"{prefix}000000_{wanted}.json") == entry.body


async def test_usage_rides_with_the_first_event(store: Store) -> None:
    usage = Usage(prompt_tokens=7, cost=0.25)
    log = log_in(store)
    await log.append([called("1"), called("2")], base=0, origin=by("a"), usage=usage)
    assert [entry.usage for entry in await log.read(0, 10)] == [usage, None]


async def test_every_event_of_an_activity_has_its_position(store: Store) -> None:
    log = log_in(store)
    await log.append([said("one"), said("two")], base=0, origin=by("a"))
    assert [entry.origin.position for entry in await log.read(0, 10)] == [0, 1]


async def test_a_retry_adopts_what_is_stored_even_where_its_bytes_differ(store: Store) -> None:
    log = log_in(store)
    first = await log.append([said("one", NOW)], base=0, origin=by("a"))
    again = await log.append([said("one", LATER), said("two")], base=0, origin=by("a"))
    assert again[:1] == first
    assert texts(await log.read(0, 10)) == ["one", "two"]


async def test_another_run_is_fenced(store: Store) -> None:
    log = log_in(store)
    await log.append([opened("run-2")], base=0, origin=by("a", "run-2"))
    with pytest.raises(Fenced, match=r"by the workflow run run-2: .* re-opened, or .*fork"):
        await log.append([said("late")], base=0, origin=by("a", "run-1"))
    assert texts(await log.read(0, 10)) == ["ConversationStateUpdateEvent"]


async def test_another_run_is_fenced_though_it_answers_the_same_action(store: Store) -> None:
    log = log_in(store)
    await log.append([returned("action")], base=0, origin=by("a", "run-1"))
    with pytest.raises(Fenced):
        await log.append([failed("action")], base=0, origin=by("a", "run-2"), shared=True)


async def test_siblings_that_share_a_base_walk_past_each_other(store: Store) -> None:
    log = log_in(store)
    walks = await asyncio.gather(
        *(
            log.append([returned(f"{n}")], base=0, origin=by(f"tool-{n}"), shared=True)
            for n in range(4)
        )
    )
    whole = await log.read(0, 10)
    assert sorted(entry.origin.activity for entry in whole) == [f"tool-{n}" for n in range(4)]
    for number, walk in enumerate(walks):
        assert walk == whole[: len(walk)]
        assert walk[-1].origin == by(f"tool-{number}")


async def test_a_retried_sibling_finds_its_own_events_between_those_of_others(store: Store) -> None:
    log = log_in(store)
    mine, other = by("mine"), by("other")
    await log.append([said("mine 0")], base=0, origin=mine, shared=True)
    await log.append([said("other")], base=0, origin=other, shared=True)
    whole = await log.append([said("mine 0"), said("mine 1")], base=0, origin=mine, shared=True)
    again = await log.append([said("mine 0"), said("mine 1")], base=0, origin=mine, shared=True)
    assert texts(whole) == ["mine 0", "other", "mine 1"]
    assert again == whole == await log.read(0, 10)


async def test_a_step_that_does_not_share_its_base_is_superseded(store: Store) -> None:
    log = log_in(store)
    await log.append([said("one")], base=0, origin=by("a"))
    with pytest.raises(Superseded, match="held by the activity a of the same workflow run"):
        await log.append([said("two")], base=0, origin=by("b"))


@pytest.mark.parametrize("shared", [True, False])
async def test_an_action_is_answered_once(store: Store, shared: bool) -> None:
    log = log_in(store)
    answer = await log.append([failed("action")], base=0, origin=by("workflow"))
    late: list[AnyEvent] = [returned("action"), said("more")]
    assert await log.append(late, base=0, origin=by("tool"), shared=shared) == answer
    assert await log.read(0, 10) == answer


async def test_the_answer_of_a_newer_writer_counts_as_well(store: Store) -> None:
    log = log_in(store)
    answer = from_the_future(kind="ObservationEvent", action_id="action", light="blue")
    written = await log.append([answer], base=0, origin=by("newer"))
    found = await log.append([failed("action")], base=0, origin=by("older"), shared=True)
    assert [entry.body for entry in found] == [entry.body for entry in written]


async def test_answers_to_nothing_do_not_settle_each_other(store: Store) -> None:
    log = log_in(store)
    nothing = failed("x").model_copy(update={"action_id": None})
    await log.append([nothing], base=0, origin=by("a"))
    assert len(await log.append([nothing], base=0, origin=by("b"), shared=True)) == 2


async def test_a_settled_action_is_found_behind_its_siblings(store: Store) -> None:
    log = log_in(store)
    await log.append([said("before")], base=0, origin=by("a"))
    for number in range(3):
        await log.append([returned(f"{number}")], base=1, origin=by(f"{number}"), shared=True)
    assert await log.settled("1", base=1) == await log.read(1, 2)
    assert await log.settled("3", base=1) is None
    assert await log.settled("1", base=4) is None


async def test_an_event_of_an_unknown_kind_is_stored_as_it_is(store: Store) -> None:
    log = log_in(store)
    event = from_the_future(id="its own", light="blue")
    await log.append([event, said("two")], base=0, origin=by("a"))
    [unknown, known] = await log.read(0, 10)
    assert unknown.event.model_dump()["raw"] == {
        "kind": "HologramEvent",
        "id": "its own",
        "light": "blue",
    }
    assert texts([unknown, known]) == ["HologramEvent", "two"]


async def test_what_was_written_is_remembered(store: Store) -> None:
    cache = EntryCache(1_000_000)
    log = log_in(store, cache)
    [entry] = await log.append([said("one")], base=0, origin=by("a"))
    assert await log.find(0) is entry


async def test_nothing_is_written_for_no_events(store: Store) -> None:
    log = log_in(store)
    assert await log.append([], base=0, origin=by("a")) == []
    assert await log.end() == 0


async def test_a_store_that_cannot_show_what_it_refuses_is_asked_again_later() -> None:
    class Forgetful(MemoryStore):
        async def create(self, key: str, body: bytes) -> bool:
            await super().create(key, body)
            self.objects.clear()
            return False

    log = log_in(Forgetful())
    with pytest.raises(StoreUnavailable, match="is taken, and yet it cannot be read"):
        await log.append([said("one")], base=0, origin=by("a"))
    with pytest.raises(StoreUnavailable, match="is taken, and yet it cannot be read"):
        await log.record(0, completion("one"), by("a"))


async def test_a_log_ends_where_its_digits_do(store: Store) -> None:
    with pytest.raises(ValueError, match=r"slots 0 to 999,999, not 1,000,000: fork"):
        await log_in(store).append([said("one")], base=1_000_000, origin=by("a"))


def completion(text: str) -> Completion:
    message = Message(role="assistant", content=(TextContent(text=text),))
    return Completion(id=text, model="scripted", message=message, received=NOW)


async def test_a_completion_is_recorded_once_in_a_run(store: Store) -> None:
    log = log_in(store)
    assert await log.recorded(3) is None
    first = await log.record(3, completion("first"), by("think"))
    assert await log.record(3, completion("second"), by("think")) == first
    assert await log.record(3, completion("third"), by("think again")) == first
    assert await log.recorded(3) == first == completion("first")
    assert (await store.list("users/"))[0].endswith("/responses/000003.json")


async def test_a_completion_of_another_run_is_not_ours(store: Store) -> None:
    log = log_in(store)
    await log.record(3, completion("first"), by("think", "run-2"))
    with pytest.raises(Fenced, match=r"responses/000003\.json is held by the workflow run run-2"):
        await log.record(3, completion("second"), by("think", "run-1"))


async def test_a_completion_survives_letters_that_no_encoding_has(store: Store) -> None:
    log = log_in(store)
    await log.record(3, completion("half a pair: \ud83d"), by("think"))
    assert await log.recorded(3) == completion("half a pair: \ud83d")


async def test_a_damaged_completion_is_named(store: Store) -> None:
    log = log_in(store)
    await log.record(3, completion("first"), by("think"))
    [key] = await store.list("users/")
    await store.replace(key, b'{"half": ')
    with pytest.raises(Damaged, match=r"seq 3 is damaged: restore .*responses/000003\.json"):
        await log.recorded(3)


async def test_bytes_are_kept_under_their_hash(store: Store) -> None:
    log = log_in(store)
    body = b"long " * 100_000
    key = await log.keep(body)
    assert key == f"blobs/{hashlib.sha256(body).hexdigest()}"
    assert await log.keep(body) == key
    assert await log.kept(key) == body
    assert await log.kept(f"blobs/{'0' * 64}") is None


async def test_the_state_is_the_one_that_was_saved_last(store: Store) -> None:
    log = log_in(store)
    assert await log.load_state() is None
    await log.save_state(b"{}")
    await log.save_state(b'{"next_seq": 2}')
    assert await log.load_state() == b'{"next_seq": 2}'


async def test_conversations_do_not_meet(store: Store) -> None:
    one, other = log_in(store), log_in(store)
    await one.append([said("one")], base=0, origin=by("a"))
    await other.append([said("other")], base=0, origin=by("a"))
    await EventLog(store, "another", one.conversation_id).append(
        [said("another's")], base=0, origin=by("a")
    )
    assert texts(await one.read(0, 10)) == ["one"]
    assert texts(await other.read(0, 10)) == ["other"]

"""The contract of the log, on every store."""

import asyncio
import hashlib
from uuid import UUID, uuid5

import pytest

from perdure.agent.calls.completion import Completion
from perdure.events.content import Message, TextContent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.usage import Usage
from perdure.storage.errors import Damaged, Fenced, StoreUnavailable, Superseded
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from tests.storage.made import (
    LATER,
    NOW,
    action_event,
    error_event,
    log_in,
    newer_event,
    observation_event,
    opened_event,
    origin_by,
    texts,
    user_message,
)
from tests.storage.memory import MemoryStore


def seqs(entries: list[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


async def test_events_are_written_into_the_slots_from_the_base_on(store: Store) -> None:
    log = log_in(store)
    first = await log.append(
        [user_message("one"), user_message("two")], base=0, origin=origin_by("a")
    )
    second = await log.append([user_message("three")], base=2, origin=origin_by("b"))
    assert seqs(first + second) == [0, 1, 2]
    assert await log.read(0, 10) == first + second
    assert texts(await log.read(0, 10)) == ["one", "two", "three"]


async def test_a_slot_has_one_key_and_its_event_one_id(store: Store) -> None:
    log = log_in(store)
    [entry] = await log.append([user_message("one")], base=0, origin=origin_by("a"))
    wanted = str(uuid5(UUID(log.conversation_id), "0"))
    assert entry.event.id == wanted
    prefix = f"users/somebody/conversations/{log.conversation_id}/events/"
    assert await store.list("users/") == [f"{prefix}000000_{wanted}.json"]
    assert await store.read(f"{prefix}000000_{wanted}.json") == entry.body


async def test_usage_rides_with_the_first_event(store: Store) -> None:
    usage = Usage(prompt_tokens=7, cost=0.25)
    log = log_in(store)
    await log.append(
        [action_event("1"), action_event("2")], base=0, origin=origin_by("a"), usage=usage
    )
    assert [entry.usage for entry in await log.read(0, 10)] == [usage, None]


async def test_every_event_of_an_activity_has_its_position(store: Store) -> None:
    log = log_in(store)
    await log.append([user_message("one"), user_message("two")], base=0, origin=origin_by("a"))
    assert [entry.origin.position for entry in await log.read(0, 10)] == [0, 1]


async def test_a_retry_adopts_what_is_stored_even_where_its_bytes_differ(store: Store) -> None:
    log = log_in(store)
    first = await log.append([user_message("one", NOW)], base=0, origin=origin_by("a"))
    again = await log.append(
        [user_message("one", LATER), user_message("two")], base=0, origin=origin_by("a")
    )
    assert again[:1] == first
    assert texts(await log.read(0, 10)) == ["one", "two"]


async def test_another_run_is_fenced(store: Store) -> None:
    log = log_in(store)
    await log.append([opened_event("run-2")], base=0, origin=origin_by("a", "run-2"))
    with pytest.raises(Fenced, match=r"by the workflow run run-2: .* re-opened, or .*fork"):
        await log.append([user_message("late")], base=0, origin=origin_by("a", "run-1"))
    assert texts(await log.read(0, 10)) == ["ConversationStateUpdateEvent"]


async def test_another_run_is_fenced_though_it_answers_the_same_action(store: Store) -> None:
    log = log_in(store)
    await log.append([observation_event("action")], base=0, origin=origin_by("a", "run-1"))
    with pytest.raises(Fenced):
        await log.append(
            [error_event("action")], base=0, origin=origin_by("a", "run-2"), shared=True
        )


async def test_siblings_that_share_a_base_walk_past_each_other(store: Store) -> None:
    log = log_in(store)
    walks = await asyncio.gather(
        *(
            log.append(
                [observation_event(f"{n}")], base=0, origin=origin_by(f"tool-{n}"), shared=True
            )
            for n in range(4)
        )
    )
    whole = await log.read(0, 10)
    assert sorted(entry.origin.activity for entry in whole) == [f"tool-{n}" for n in range(4)]
    for number, walk in enumerate(walks):
        assert walk == whole[: len(walk)]
        assert walk[-1].origin == origin_by(f"tool-{number}")


async def test_a_retried_sibling_finds_its_own_events_between_those_of_others(store: Store) -> None:
    log = log_in(store)
    mine, other = origin_by("mine"), origin_by("other")
    await log.append([user_message("mine 0")], base=0, origin=mine, shared=True)
    await log.append([user_message("other")], base=0, origin=other, shared=True)
    whole = await log.append(
        [user_message("mine 0"), user_message("mine 1")], base=0, origin=mine, shared=True
    )
    again = await log.append(
        [user_message("mine 0"), user_message("mine 1")], base=0, origin=mine, shared=True
    )
    assert texts(whole) == ["mine 0", "other", "mine 1"]
    assert again == whole == await log.read(0, 10)


async def test_a_step_that_does_not_share_its_base_is_superseded(store: Store) -> None:
    log = log_in(store)
    await log.append([user_message("one")], base=0, origin=origin_by("a"))
    with pytest.raises(Superseded, match="held by the activity a of the same workflow run"):
        await log.append([user_message("two")], base=0, origin=origin_by("b"))


@pytest.mark.parametrize("shared", [True, False])
async def test_an_action_is_answered_once(store: Store, shared: bool) -> None:
    log = log_in(store)
    answer = await log.append([error_event("action")], base=0, origin=origin_by("workflow"))
    late: list[AnyEvent] = [observation_event("action"), user_message("more")]
    assert await log.append(late, base=0, origin=origin_by("tool"), shared=shared) == answer
    assert await log.read(0, 10) == answer


async def test_the_answer_of_a_newer_writer_counts_as_well(store: Store) -> None:
    log = log_in(store)
    answer = newer_event(kind="ObservationEvent", action_id="action", light="blue")
    written = await log.append([answer], base=0, origin=origin_by("newer"))
    entries = await log.append(
        [error_event("action")], base=0, origin=origin_by("older"), shared=True
    )
    assert [entry.body for entry in entries] == [entry.body for entry in written]


async def test_answers_without_an_action_do_not_exclude_each_other(store: Store) -> None:
    log = log_in(store)
    nothing = error_event("x").model_copy(update={"action_id": None})
    await log.append([nothing], base=0, origin=origin_by("a"))
    assert len(await log.append([nothing], base=0, origin=origin_by("b"), shared=True)) == 2


async def test_an_answer_is_found_behind_those_of_its_siblings(store: Store) -> None:
    log = log_in(store)
    await log.append([user_message("before")], base=0, origin=origin_by("a"))
    for number in range(3):
        await log.append(
            [observation_event(f"{number}")], base=1, origin=origin_by(f"{number}"), shared=True
        )
    assert await log.find_answer("1", 1, "run-1") == await log.read(1, 2)
    assert await log.find_answer("3", 1, "run-1") is None
    assert await log.find_answer("1", 4, "run-1") is None
    with pytest.raises(Fenced):
        await log.find_answer("1", 1, "run-2")


async def test_an_event_of_an_unknown_kind_is_stored_as_it_is(store: Store) -> None:
    log = log_in(store)
    event = newer_event(id="its own", light="blue")
    await log.append([event, user_message("two")], base=0, origin=origin_by("a"))
    [unknown, known] = await log.read(0, 10)
    assert unknown.event.model_dump()["raw"] == {
        "kind": "HologramEvent",
        "id": "its own",
        "light": "blue",
    }
    assert texts([unknown, known]) == ["HologramEvent", "two"]


async def test_written_entries_are_cached(store: Store) -> None:
    cache = EntryCache(1_000_000)
    log = log_in(store, cache)
    [entry] = await log.append([user_message("one")], base=0, origin=origin_by("a"))
    assert await log.find(0) is entry


async def test_appending_no_events_writes_nothing(store: Store) -> None:
    log = log_in(store)
    assert await log.append([], base=0, origin=origin_by("a")) == []
    assert await log.end() == 0


async def test_a_taken_key_that_cannot_be_read_is_retried_later() -> None:
    class Forgetful(MemoryStore):
        async def create(self, key: str, body: bytes) -> bool:
            await super().create(key, body)
            self.objects.clear()
            return False

    log = log_in(Forgetful())
    with pytest.raises(StoreUnavailable, match="is taken, and yet it cannot be read"):
        await log.append([user_message("one")], base=0, origin=origin_by("a"))
    with pytest.raises(StoreUnavailable, match="is taken, and yet it cannot be read"):
        await log.record_response(0, completion("one"), origin_by("a"))


async def test_a_log_ends_at_its_last_six_digit_slot(store: Store) -> None:
    with pytest.raises(ValueError, match=r"slots 0 to 999,999, not 1,000,000: fork"):
        await log_in(store).append([user_message("one")], base=1_000_000, origin=origin_by("a"))


def completion(text: str) -> Completion:
    message = Message(role="assistant", content=(TextContent(text=text),))
    return Completion(id=text, model="scripted", message=message, received=NOW)


async def test_a_completion_is_recorded_once_in_a_run(store: Store) -> None:
    log = log_in(store)
    assert await log.read_response(3) is None
    first = await log.record_response(3, completion("first"), origin_by("think"))
    assert await log.record_response(3, completion("second"), origin_by("think")) == first
    assert await log.record_response(3, completion("third"), origin_by("think again")) == first
    assert await log.read_response(3) == first == completion("first")
    assert (await store.list("users/"))[0].endswith("/responses/000003.json")


async def test_a_completion_of_another_run_is_fenced(store: Store) -> None:
    log = log_in(store)
    await log.record_response(3, completion("first"), origin_by("think", "run-2"))
    with pytest.raises(Fenced, match=r"responses/000003\.json is held by the workflow run run-2"):
        await log.record_response(3, completion("second"), origin_by("think", "run-1"))


async def test_a_completion_with_lone_surrogates_is_stored(store: Store) -> None:
    log = log_in(store)
    await log.record_response(3, completion("half a pair: \ud83d"), origin_by("think"))
    assert await log.read_response(3) == completion("half a pair: \ud83d")


async def test_a_damaged_completion_is_named(store: Store) -> None:
    log = log_in(store)
    await log.record_response(3, completion("first"), origin_by("think"))
    [key] = await store.list("users/")
    await store.replace(key, b'{"half": ')
    with pytest.raises(Damaged, match=r"seq 3 is damaged: restore .*responses/000003\.json"):
        await log.read_response(3)


async def test_a_blob_is_stored_under_its_hash(store: Store) -> None:
    log = log_in(store)
    body = b"long " * 100_000
    key = await log.store_blob(body)
    assert key == f"blobs/{hashlib.sha256(body).hexdigest()}"
    assert await log.store_blob(body) == key
    assert await log.read_blob(key) == body
    assert await log.read_blob(f"blobs/{'0' * 64}") is None


async def test_the_state_is_the_one_that_was_saved_last(store: Store) -> None:
    log = log_in(store)
    assert await log.load_state() is None
    await log.save_state(b"{}")
    await log.save_state(b'{"next_seq": 2}')
    assert await log.load_state() == b'{"next_seq": 2}'


async def test_conversations_do_not_share_objects(store: Store) -> None:
    log, other = log_in(store), log_in(store)
    await log.append([user_message("one")], base=0, origin=origin_by("a"))
    await other.append([user_message("other")], base=0, origin=origin_by("a"))
    await EventLog(store, "another", log.conversation_id).append(
        [user_message("another's")], base=0, origin=origin_by("a")
    )
    assert texts(await log.read(0, 10)) == ["one"]
    assert texts(await other.read(0, 10)) == ["other"]

"""Session state, on every store."""

from typing import Any

from perdure.agent.loop.scopes import MAX_NAMED_KEYS, parse_key
from perdure.events.control import ConversationStateUpdateEvent
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.noted_values import load_session_state, load_session_values
from perdure.storage.shared_values import ANY, write_shared_value
from perdure.storage.store import Store
from tests.storage.log.test_fork import make_fork
from tests.storage.made import NOW, log_in, origin_by, user_message
from tests.storage.memory import MemoryStore


async def note(log: EventLog, base: int, values: dict[str, Any]) -> None:
    """Record values as the step does."""
    event = ConversationStateUpdateEvent(timestamp=NOW, key="state", value=values)
    await log.append([event], base=base, origin=origin_by(f"note {base}"))
    for key, value in values.items():
        if parse_key(key).scope != "own":
            await write_shared_value(
                log.store, log.user_id, key, value, ANY, f"{log.conversation_id} {base}"
            )


async def test_a_conversation_without_values_has_no_session_state(store: Store) -> None:
    log = log_in(store)
    assert await load_session_state(log) == {}
    await log.append([user_message("hello")], base=0, origin=origin_by("a"))
    assert await load_session_state(log) == {}


async def test_each_value_is_visible_in_its_scope(store: Store) -> None:
    mine, same_user = log_in(store), log_in(store)
    stranger = EventLog(store, "stranger", mine.conversation_id)
    await note(mine, 0, {"step": 1, "user:language": "Ä", "app:motd": {"text": "hi"}})
    assert await load_session_state(mine) == {
        "step": 1,
        "user:language": "Ä",
        "app:motd": {"text": "hi"},
    }
    assert await load_session_state(same_user) == {"user:language": "Ä", "app:motd": {"text": "hi"}}
    assert await load_session_state(stranger) == {"app:motd": {"text": "hi"}}


async def test_the_last_value_wins_and_none_deletes_it(store: Store) -> None:
    log, other = log_in(store), log_in(store)
    await note(log, 0, {"a": 1, "b": 1, "user:c": 1, "user:d": 1})
    await note(log, 1, {"a": 2, "b": None, "user:d": None})
    await note(other, 0, {"user:c": 3})
    assert await load_session_state(log) == {"a": 2, "user:c": 3}


async def test_a_fork_has_the_values_of_its_fork_point(store: Store) -> None:
    log = log_in(store)
    await note(log, 0, {"a": 1})
    await note(log, 1, {"a": 2})
    child = await make_fork(log, 0)
    assert await load_session_state(child) == {"a": 1}
    await note(child, 1, {"b": 1})
    assert await load_session_state(child) == {"a": 1, "b": 1}
    assert await load_session_state(log) == {"a": 2}


async def test_a_state_with_more_keys_than_it_can_name_is_read_from_the_whole_log(
    store: Store,
) -> None:
    log = log_in(store)
    many = {f"key {number}": number for number in range(MAX_NAMED_KEYS + 1)}
    await note(log, 0, {"x" * 300: 1})
    await note(log, 1, many)
    await note(log, 2, {"key 0": None, "key 1": "new"})
    state = await read_state(log)
    assert state.has_unnamed_values
    assert state.value_seqs == {}
    expected = {"x" * 300: 1, **many, "key 1": "new"}
    del expected["key 0"]
    assert await load_session_state(log) == expected


async def test_the_state_names_the_slots_of_its_values(store: Store) -> None:
    log = log_in(store)
    await note(log, 0, {"a": 1, "b": 1})
    await note(log, 1, {"a": 2, "user:c": 1})
    await note(log, 2, {"b": None})
    assert (await read_state(log)).value_seqs == {"a": 1}


async def test_versions_are_those_of_the_shared_values(store: Store) -> None:
    log = log_in(store)
    await note(log, 0, {"a": 1, "user:b": 2})
    found = await load_session_values(log)
    assert found.values == {"a": 1, "user:b": 2}
    assert list(found.versions) == ["user:b"]
    key, version = "user:b", found.versions["user:b"]
    await write_shared_value(log.store, log.user_id, key, 3, version, "somebody")
    assert (await load_session_values(log)).versions[key] != version


class CountingStore(MemoryStore):
    """A store that counts the events that are read."""

    reads = 0

    async def read(self, key: str) -> bytes | None:
        self.reads += "/events/" in key
        return await super().read(key)


async def test_values_are_read_from_their_events_alone_but_of_an_older_state_from_all() -> None:
    store = CountingStore()
    log = log_in(store)
    await note(log, 0, {"a": 1})
    for seq in range(1, 40):
        await log.append([user_message("hello")], base=seq, origin=origin_by(f"{seq}"))
    state = await read_state(log)
    await log.save_state(encode_cached_state(state))
    store.reads = 0
    assert await load_session_state(log) == {"a": 1}
    assert store.reads < 5
    older = state.model_copy(update={"fold_version": 1, "value_seqs": {}})
    await log.save_state(encode_cached_state(older))
    store.reads = 0
    assert await load_session_state(log) == {"a": 1}
    assert store.reads >= 40

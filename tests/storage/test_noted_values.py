"""Session state, on every store."""

from typing import Any

import pytest

from perdure.events.control import ConversationStateUpdateEvent
from perdure.storage.log.event_log import EventLog
from perdure.storage.noted_values import load_session_state, save_shared_values
from perdure.storage.store import Store
from tests.storage.log.test_fork import make_fork
from tests.storage.made import NOW, log_in, origin_by, user_message
from tests.storage.memory import MemoryStore


async def note(log: EventLog, base: int, values: dict[str, Any]) -> None:
    """Record values as the step does."""
    event = ConversationStateUpdateEvent(timestamp=NOW, key="state", value=values)
    await log.append([event], base=base, origin=origin_by(f"note {base}"))
    await save_shared_values(log.store, log.user_id, values)


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


@pytest.mark.parametrize(
    "key", ["user:", "user:a/b", "app:../x", "app:a b", "user:" + "x" * 129, ""]
)
async def test_an_invalid_shared_key_writes_nothing(key: str) -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match=r"cannot be shared|needs a key"):
        await save_shared_values(store, "somebody", {"fine": 1, "user:fine": 1, key: 1})
    assert await store.list("") == []


@pytest.mark.parametrize("key", ["user:..", "app:.", "user:a.json"])
async def test_odd_names_of_values_are_allowed(store: Store, key: str) -> None:
    await save_shared_values(store, "somebody", {key: 1})
    assert await load_session_state(log_in(store)) == {key: 1}

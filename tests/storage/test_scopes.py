"""Values noted beside a conversation, on every store there is."""

from typing import Any

import pytest

from events.control import ConversationStateUpdateEvent
from storage.log import EventLog
from storage.scopes import session_state, share
from storage.store import Store
from tests.storage.made import NOW, by, log_in, said
from tests.storage.memory import MemoryStore
from tests.storage.test_fork import forked


async def note(log: EventLog, base: int, values: dict[str, Any]) -> None:
    """As the step does that records it."""
    event = ConversationStateUpdateEvent(timestamp=NOW, key="state", value=values)
    await log.append([event], base=base, origin=by(f"note {base}"))
    await share(log.store, log.user_id, values)


async def test_a_conversation_with_nothing_noted_has_no_state(store: Store) -> None:
    log = log_in(store)
    assert await session_state(log) == {}
    await log.append([said("hello")], base=0, origin=by("a"))
    assert await session_state(log) == {}


async def test_each_value_is_seen_as_far_as_its_scope_goes(store: Store) -> None:
    mine, same_user = log_in(store), log_in(store)
    stranger = EventLog(store, "stranger", mine.conversation_id)
    await note(mine, 0, {"step": 1, "user:language": "Ä", "app:motd": {"text": "hi"}})
    assert await session_state(mine) == {
        "step": 1,
        "user:language": "Ä",
        "app:motd": {"text": "hi"},
    }
    assert await session_state(same_user) == {"user:language": "Ä", "app:motd": {"text": "hi"}}
    assert await session_state(stranger) == {"app:motd": {"text": "hi"}}


async def test_the_last_value_counts_and_none_takes_it_away(store: Store) -> None:
    log, other = log_in(store), log_in(store)
    await note(log, 0, {"a": 1, "b": 1, "user:c": 1, "user:d": 1})
    await note(log, 1, {"a": 2, "b": None, "user:d": None})
    await note(other, 0, {"user:c": 3})
    assert await session_state(log) == {"a": 2, "user:c": 3}


async def test_a_fork_has_the_values_of_its_point_and_goes_its_own_way(store: Store) -> None:
    log = log_in(store)
    await note(log, 0, {"a": 1})
    await note(log, 1, {"a": 2})
    child = await forked(log, 0)
    assert await session_state(child) == {"a": 1}
    await note(child, 1, {"b": 1})
    assert await session_state(child) == {"a": 1, "b": 1}
    assert await session_state(log) == {"a": 2}


@pytest.mark.parametrize(
    "key", ["user:", "user:a/b", "app:../x", "app:a b", "user:" + "x" * 129, ""]
)
async def test_no_shared_key_leaves_its_place(key: str) -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match=r"cannot be shared|needs a key"):
        await share(store, "somebody", {"fine": 1, "user:fine": 1, key: 1})
    assert await store.list("") == []


@pytest.mark.parametrize("key", ["user:..", "app:.", "user:a.json"])
async def test_odd_names_are_names(store: Store, key: str) -> None:
    await share(store, "somebody", {key: 1})
    assert await session_state(log_in(store)) == {key: 1}

"""A cache that forgets in time."""

import tracemalloc

from events.entry import Entry, entry, entry_from
from storage.cache import EntryCache
from tests.storage.made import by, said


def made(seq: int, letters: int = 1000) -> Entry:
    return entry(seq, said("x" * letters), by("a"))


def slot(seq: int, conversation: str = "c") -> tuple[str, str, int]:
    return ("ada", conversation, seq)


def test_an_entry_is_found_by_user_conversation_and_seq() -> None:
    cache = EntryCache(1_000_000)
    one = made(1)
    cache.put(slot(1), one)
    assert cache.get(slot(1)) is one
    assert cache.get(slot(2)) is None
    assert cache.get(slot(1, "another")) is None
    assert cache.get(("eve", "c", 1)) is None


def test_the_entry_that_was_used_longest_ago_goes_first() -> None:
    cache = EntryCache(20_000)
    for seq in range(3):
        cache.put(slot(seq), made(seq))
        cache.get(slot(0))
    cache.put(slot(3), made(3))
    assert cache.get(slot(0)) is not None
    assert cache.get(slot(1)) is None


def test_putting_an_entry_again_takes_no_more_room() -> None:
    cache = EntryCache(1_000_000)
    cache.put(slot(1), made(1))
    once = cache.size
    cache.put(slot(1), made(1))
    assert cache.size == once > 0


def test_an_entry_larger_than_the_cache_is_not_kept() -> None:
    cache = EntryCache(10_000)
    cache.put(slot(1), made(1, letters=100_000))
    assert cache.get(slot(1)) is None
    assert cache.size == 0


def test_the_bound_is_one_of_memory() -> None:
    bodies = [made(seq, letters=seq * 20).body for seq in range(500)]
    cache = EntryCache(1_000_000)
    tracemalloc.start()
    for seq, body in enumerate(bodies):
        cache.put(slot(seq), entry_from(seq, bytes(bytearray(body))))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cache.size <= cache.max_bytes
    assert used < 1.3 * cache.max_bytes


def test_a_conversation_that_is_forgotten_leaves_its_room_to_others() -> None:
    cache = EntryCache(1_000_000)
    cache.put(slot(0, "another"), made(0))
    alone = cache.size
    for seq in range(3):
        cache.put(slot(seq), made(seq))
    cache.forget("ada", "c", 3)
    assert [cache.get(slot(seq)) for seq in range(3)] == [None, None, None]
    assert cache.get(slot(0, "another")) is not None
    assert cache.size == alone

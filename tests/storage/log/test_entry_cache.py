"""The memory cache of entries."""

import tracemalloc

from perdure.events.entry import Entry, make_entry, parse_entry
from perdure.storage.log.entry_cache import EntryCache
from tests.storage.made import origin_by, user_message


def build_entry(seq: int, letters: int = 1000) -> Entry:
    return make_entry(seq, user_message("x" * letters), origin_by("a"))


def key_of(seq: int, conversation: str = "c") -> tuple[str, str, int]:
    return ("ada", conversation, seq)


def test_an_entry_is_found_by_user_conversation_and_seq() -> None:
    cache = EntryCache(1_000_000)
    entry = build_entry(1)
    cache.put(key_of(1), entry)
    assert cache.get(key_of(1)) is entry
    assert cache.get(key_of(2)) is None
    assert cache.get(key_of(1, "another")) is None
    assert cache.get(("eve", "c", 1)) is None


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    cache = EntryCache(20_000)
    for seq in range(3):
        cache.put(key_of(seq), build_entry(seq))
        cache.get(key_of(0))
    cache.put(key_of(3), build_entry(3))
    assert cache.get(key_of(0)) is not None
    assert cache.get(key_of(1)) is None


def test_an_entry_put_twice_takes_memory_once() -> None:
    cache = EntryCache(1_000_000)
    cache.put(key_of(1), build_entry(1))
    once = cache.size
    cache.put(key_of(1), build_entry(1))
    assert cache.size == once > 0


def test_an_entry_larger_than_the_cache_is_not_cached() -> None:
    cache = EntryCache(10_000)
    cache.put(key_of(1), build_entry(1, letters=100_000))
    assert cache.get(key_of(1)) is None
    assert cache.size == 0


def test_the_limit_of_the_cache_is_in_bytes_of_memory() -> None:
    bodies = [build_entry(seq, letters=seq * 20).body for seq in range(500)]
    cache = EntryCache(1_000_000)
    tracemalloc.start()
    for seq, body in enumerate(bodies):
        cache.put(key_of(seq), parse_entry(seq, bytes(bytearray(body))))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cache.size <= cache.max_size
    assert used < 1.3 * cache.max_size


def test_an_evicted_conversation_frees_its_memory() -> None:
    cache = EntryCache(1_000_000)
    cache.put(key_of(0, "another"), build_entry(0))
    alone = cache.size
    for seq in range(3):
        cache.put(key_of(seq), build_entry(seq))
    cache.evict_log("ada", "c", 3)
    assert [cache.get(key_of(seq)) for seq in range(3)] == [None, None, None]
    assert cache.get(key_of(0, "another")) is not None
    assert cache.size == alone

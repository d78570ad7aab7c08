"""The slots of a log are listed in pages at once, whatever stands between them."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.storage.keys import event_key
from perdure.storage.log.lineage import Holder
from perdure.storage.log.listing import list_seqs
from tests.builders import CONVERSATION
from tests.storage.memory import MemoryStore


class CountingStore(MemoryStore):
    """Counts its listings, and how many are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.lists = self.at_once = self.most = 0

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        self.lists += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return await super().list(prefix, after, limit)


HOLDER = Holder("somebody", CONVERSATION, 0)
JUNK = ["events/000999_junk.json", "events/001000_", "events/zzz", "events/notes/000001_a.json"]


def make_store(seqs: set[int], junk: list[str]) -> CountingStore:
    store = CountingStore()
    names = [*(event_key(CONVERSATION, seq) for seq in seqs), *junk]
    store.objects = dict.fromkeys((HOLDER.prefix + name for name in names), b"")
    return store


@pytest.mark.long
@given(
    st.sets(st.integers(0, 2200), max_size=20),
    st.lists(st.sampled_from(JUNK), unique=True),
    st.integers(0, 2300),
    st.integers(0, 2_000_000),
)
@settings(max_examples=30, deadline=None)
def test_all_slots_but_the_lost_ones_are_listed_whatever_the_known_end(
    lost: set[int], junk: list[str], first: int, known_end: int
) -> None:
    there = set(range(2100)) - lost
    store = make_store(there, junk)
    seqs = asyncio.run(list_seqs(store, HOLDER, first, known_end))
    assert seqs == sorted(seq for seq in there if seq >= first)


@pytest.mark.parametrize(("known_end", "at_once"), [(0, 1), (2100, 3), (999_999, 4)])
async def test_pages_that_are_known_of_are_listed_at_once(known_end: int, at_once: int) -> None:
    store = make_store(set(range(2100)), [])
    assert await list_seqs(store, HOLDER, 0, known_end) == list(range(2100))
    assert store.most == at_once
    assert known_end > 2100 or store.lists == 3


@pytest.mark.parametrize("first", [999_998, 999_999, 1_000_000])
async def test_the_last_slots_of_the_longest_log_are_listed(first: int) -> None:
    store = make_store({0, 999_998, 999_999}, [])
    assert await list_seqs(store, HOLDER, first, 7_000_000) == list(range(first, 1_000_000))

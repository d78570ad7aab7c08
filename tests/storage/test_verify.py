"""Whatever is done to a log, the slot is named, and all others are read."""

import asyncio
import json

import pytest

from agent.completion import Completion
from agent.evolve import fold
from agent.state import State
from events.content import Message
from events.entry import Entry
from events.projection import digest
from storage.errors import Damaged, Missing
from storage.inspection import Finding
from storage.keys import STATE, TAIL, segment_key
from storage.lineage import Holder
from storage.log import EventLog
from storage.sealing import seal
from storage.segments import segment_in, tail_of
from storage.state import legible_state
from storage.store import Store
from storage.verify import must_be_whole, verify
from tests.damage import HARMS, Victim, everywhere, forged, named, victim, written
from tests.storage.made import NOW, by, log_in, said
from tests.storage.memory import MemoryStore
from tests.storage.test_fork import forked

EVENTS = 120
SEQS = (0, 1, 6, 7, 8, 60, 118, 119)

UNTOLD = {"forged", "unchecked", "cut_off"}
"""What nobody can tell of the newest events before anything was kept of them."""


@pytest.mark.parametrize("harm", HARMS)
async def test_every_kind_of_damage_is_named_wherever_it_is(harm: str) -> None:
    hurt = await victim(MemoryStore(), EVENTS)
    assert await named(hurt) == set()
    for seq in SEQS:
        damage = HARMS[harm](hurt, seq)
        await hurt.put(damage)
        assert await named(hurt) == set(damage), seq
        await hurt.mend(damage)
    assert await named(hurt) == set()


@pytest.mark.parametrize("harm", sorted(HARMS.keys() - UNTOLD))
async def test_an_event_of_which_nothing_was_kept_yet_speaks_for_itself(harm: str) -> None:
    hurt = await victim(MemoryStore(), 20, kept=False)
    for seq in range(19 if harm == "deleted" else 20):
        damage = HARMS[harm](hurt, seq)
        await hurt.put(damage)
        if damage.get(19, b"") is not None:
            assert await named(hurt) == set(damage), seq
        await hurt.mend(damage)


@pytest.mark.parametrize("harm", ["forged", "unchecked"])
async def test_an_event_that_was_forged_well_is_named_by_the_one_behind_it(harm: str) -> None:
    hurt = await victim(MemoryStore(), 20, kept=False)
    for seq in range(19):
        damage = HARMS[harm](hurt, seq)
        await hurt.put(damage)
        assert seq in await named(hurt)
        await hurt.mend(damage)


@pytest.mark.parametrize("harm", HARMS)
async def test_a_damaged_conversation_is_not_opened_and_its_other_events_are_read(
    harm: str,
) -> None:
    hurt = await victim(MemoryStore(), EVENTS)
    await must_be_whole(hurt.log)
    damage = HARMS[harm](hurt, 60)
    await hurt.put(damage)
    with pytest.raises((Missing, Damaged)) as caught:
        await must_be_whole(hurt.log)
    assert getattr(caught.value, "seq", None) in damage
    slots = await log_in(hurt.log.store, conversation=hurt.log.conversation_id).readable(0, 1000)
    for slot in slots:
        assert slot.seq in damage or (
            isinstance(slot, Entry) and slot.body == hurt.bodies[slot.seq]
        )


async def test_a_log_that_is_being_written_is_whole(store: Store) -> None:
    log = log_in(store)

    async def write() -> None:
        for base in range(0, 30, 3):
            await log.append([said("on")] * 3, base=base, origin=by(f"{base}"))
            await seal(log, base + 3)
            await asyncio.sleep(0)

    writing = asyncio.create_task(write())
    while not writing.done():
        await asyncio.sleep(0)
        await must_be_whole(log)
        assert await named(Victim(log, [], [], None)) == set()  # type: ignore[arg-type]
    await writing


async def closed(events: int = 1150) -> EventLog:
    log = await written(MemoryStore(), events)
    await keep(log, events, closing=True)
    return log


async def keep(log: EventLog, end: int, closing: bool = False) -> None:
    state = fold(State(), [digest(one) for one in await log.read(0, end)])
    await log.save_state(state.model_dump_json().encode())
    await seal(log, end, closing)


def place(log: EventLog, name: str) -> str:
    return f"users/somebody/conversations/{log.conversation_id}/{name}"


async def found(log: EventLog) -> list[Finding]:
    return [finding async for finding in verify(log)]


class Counting(MemoryStore):
    """Counts what is read of it."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        super().__init__()
        self.objects = objects
        self.reads = 0

    async def read(self, key: str) -> bytes | None:
        self.reads += 1
        return await super().read(key)


async def test_a_cold_reader_asks_for_segments_and_not_for_slots() -> None:
    log = await closed()
    assert isinstance(log.store, MemoryStore)
    store = Counting(log.store.objects)
    cold = log_in(store, conversation=log.conversation_id)
    assert await cold.read(0, 2000) == await log.read(0, 2000)
    assert store.reads < 50
    assert [one.seq for one in await cold.read(900, 200)] == list(range(900, 1100))


@pytest.mark.parametrize("name", [segment_key(0, 1000), segment_key(1000, 1150)])
@pytest.mark.parametrize("body", [b"", b"{}\n", None])
async def test_a_damaged_segment_is_named_and_hides_nothing(name: str, body: bytes | None) -> None:
    log = await closed()
    whole = await log.read(0, 2000)
    key = place(log, name)
    spoilt = body if body is not None else (await log.store.read(key) or b"").replace(b"9", b"8")
    await log.store.replace(key, spoilt)
    [finding] = await found(log)
    assert (finding.kind, finding.key) == ("beside", key)
    assert await log_in(log.store, conversation=log.conversation_id).read(0, 2000) == whole
    await must_be_whole(log)


async def test_a_segment_is_a_pure_function_of_its_slots_and_written_once() -> None:
    log = await closed()
    holder = Holder("somebody", log.conversation_id, 0)
    before = dict(log.store.objects)  # type: ignore[attr-defined]
    await log.store.delete(place(log, segment_key(0, 1000)))
    await log.store.delete(place(log, TAIL))
    assert (tail := await tail_of(log.store, holder)) is None
    await seal(log, 1150, closing=True)
    await log.store.delete(place(log, segment_key(1000, 1150)))
    await log.store.delete(place(log, TAIL))
    await seal(log, 1150, closing=True)
    assert dict(log.store.objects) == before  # type: ignore[attr-defined]
    assert tail is None
    segment = await segment_in(log.store, holder, 1000, 1150)
    assert segment is not None
    assert segment.bodies[7] == (await log.at(1007)).body


async def test_a_conversation_that_goes_on_after_it_was_closed_seals_on_where_it_ended() -> None:
    log = await closed(50)
    await log.append([said("on")] * 1000, base=50, origin=by("later"))
    await keep(log, 1050)
    listed = await log.store.list(place(log, "segments/"))
    assert [key.rpartition("/")[2] for key in listed] == [
        "000000-000050.jsonl",
        "000050-001000.jsonl",
        "tail",
    ]
    assert await found(log) == []


async def test_what_was_altered_before_it_was_sealed_is_not_copied() -> None:
    hurt = await victim(MemoryStore(), 40)
    await hurt.put(forged(hurt, 7))
    log = log_in(hurt.log.store, conversation=hurt.log.conversation_id)
    with pytest.raises(Damaged, match="seq 7"):
        await seal(log, 40, closing=True)


async def test_an_altered_state_is_told_and_a_lost_one_is_made_anew() -> None:
    hurt = await victim(MemoryStore(), 30)
    key = place(hurt.log, STATE)
    state = json.loads(await hurt.log.load_state() or b"")
    await hurt.log.save_state(json.dumps({**state, "sha": "0" * 32}).encode())
    [finding] = await found(hurt.log)
    assert (finding.kind, finding.key) == ("beside", key)
    assert "running hash" in finding.what
    await hurt.log.save_state(b"{")
    [finding] = await found(hurt.log)
    assert (finding.kind, finding.key) == ("beside", key)
    await hurt.log.store.delete(key)
    [finding] = await found(hurt.log)
    assert finding.kind == "note"
    await hurt.put(dict.fromkeys((28, 29)))
    assert await named(hurt) == {28, 29}, "the tail tells of them too"


async def test_an_altered_tail_is_told_and_accuses_nobody() -> None:
    hurt = await victim(MemoryStore(), 30)
    key = place(hurt.log, TAIL)
    body = await hurt.log.store.read(key) or b""
    await hurt.log.store.replace(key, body.replace(b"a", b"b"))
    [finding] = await found(hurt.log)
    assert (finding.kind, finding.key) == ("beside", key)


async def test_what_the_events_refer_to_is_checked() -> None:
    log = log_in(MemoryStore())
    lost, altered = await log.keep(b"lost"), await log.keep(b"altered")
    await log.append([said(lost), said(altered), said("none")], base=0, origin=by("a"))
    answer = Completion(id="c", model="m", message=Message(role="assistant"), received=NOW)
    await log.record(2, answer, by("think"))
    await keep(log, 3)
    assert await found(log) == []
    await log.store.delete(place(log, lost))
    await log.store.replace(place(log, altered), b"what was never said")
    await log.store.replace(place(log, "responses/000002.json"), b"{")
    told = [(one.kind, one.seq) for one in await found(log)]
    assert told == [("blob", 0), ("blob", 1), ("response", 2)]


async def test_a_fork_is_verified_down_to_the_first_event_of_its_lineage() -> None:
    hurt = await victim(MemoryStore(), 40)
    child = await forked(hurt.log, 20, "on")
    assert await found(child) == []
    await hurt.put(forged(hurt, 5))
    told = await found(child)
    assert [(one.kind, one.seq) for one in told] == [("altered", 5)]
    assert hurt.log.conversation_id in told[0].key
    before = await forked(hurt.log, 4, "on")
    await must_be_whole(before)
    assert await found(before) == []
    with pytest.raises(Damaged, match="seq 5"):
        await must_be_whole(child)


async def test_the_point_of_a_fork_tells_that_its_parent_had_as_many_events() -> None:
    hurt = await victim(MemoryStore(), 20, kept=False)
    await forked(hurt.log, 19)
    await hurt.put({19: None})
    assert await named(hurt) == {19}


async def test_what_the_workflow_knows_of_is_missed() -> None:
    hurt = await victim(MemoryStore(), 20, kept=False)
    assert [one.seq async for one in verify(hurt.log, known=21) if one.is_slot] == [20]


async def test_a_damaged_log_still_tells_where_it_stood() -> None:
    hurt = await victim(MemoryStore(), 20)
    await hurt.log.append([said("one"), said("two")], base=20, origin=by("on"))
    await hurt.log.store.replace(hurt.key(21), b"{")
    state, damage = await legible_state(
        log_in(hurt.log.store, conversation=hurt.log.conversation_id)
    )
    assert state.next_seq == 21
    assert isinstance(damage, Damaged)


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_each_of_ten_thousand_events_is_named_whatever_is_done_to_it() -> None:
    await everywhere(10_000, 50, 5)

"""Verification finds any damage to a log, and all other events are read."""

import asyncio
import json

import pytest

from perdure.agent.calls.completion import Completion
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.events.content import Message
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.storage.errors import Damaged, Missing
from perdure.storage.keys import STATE, TAIL, segment_key
from perdure.storage.log.cached_state import encode_cached_state, parse_cached_state
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.inspection import Finding
from perdure.storage.log.lineage import Holder
from perdure.storage.log.segments import read_segment, read_tail
from perdure.storage.log.state import read_state_until_damage
from perdure.storage.log.verify import check_integrity, verify
from perdure.storage.store import Store
from reliability.damage.__main__ import (
    HARMS,
    DamagedLog,
    damage_every_slot,
    forge,
    make_log,
    verified_seqs,
    write_log,
)
from tests.storage.log.test_fork import make_fork
from tests.storage.made import NOW, log_in, origin_by, user_message
from tests.storage.memory import MemoryStore

EVENTS = 120
SEQS = (0, 1, 6, 7, 8, 60, 118, 119)

UNDETECTABLE = {"forge", "remove_checksum", "cut_off"}
"""Harms to the newest events that nothing reveals before they are sealed."""


@pytest.mark.parametrize("harm", HARMS)
async def test_every_kind_of_damage_is_found_in_any_slot(harm: str) -> None:
    hurt = await make_log(MemoryStore(), EVENTS)
    assert await verified_seqs(hurt) == set()
    for seq in SEQS:
        damage = HARMS[harm](hurt, seq)
        await hurt.put(damage)
        assert await verified_seqs(hurt) == set(damage), seq
        await hurt.restore(damage)
    assert await verified_seqs(hurt) == set()


@pytest.mark.parametrize("harm", sorted(HARMS.keys() - UNDETECTABLE))
async def test_an_unsealed_event_is_checked_by_its_own_checksum(harm: str) -> None:
    hurt = await make_log(MemoryStore(), 20, kept=False)
    for seq in range(19 if harm == "deleted" else 20):
        damage = HARMS[harm](hurt, seq)
        await hurt.put(damage)
        if damage.get(19, b"") is not None:
            assert await verified_seqs(hurt) == set(damage), seq
        await hurt.restore(damage)


@pytest.mark.parametrize("harm", ["forge", "remove_checksum"])
async def test_an_event_with_a_forged_checksum_is_found_by_its_successor(harm: str) -> None:
    hurt = await make_log(MemoryStore(), 20, kept=False)
    for seq in range(19):
        damage = HARMS[harm](hurt, seq)
        await hurt.put(damage)
        assert seq in await verified_seqs(hurt)
        await hurt.restore(damage)


@pytest.mark.parametrize("harm", HARMS)
async def test_a_damaged_conversation_is_not_opened_and_its_other_events_are_read(
    harm: str,
) -> None:
    hurt = await make_log(MemoryStore(), EVENTS)
    await check_integrity(hurt.log)
    damage = HARMS[harm](hurt, 60)
    await hurt.put(damage)
    with pytest.raises((Missing, Damaged)) as caught:
        await check_integrity(hurt.log)
    assert getattr(caught.value, "seq", None) in damage
    slots = await log_in(hurt.log.store, conversation=hurt.log.conversation_id).read_slots(0, 1000)
    for slot in slots:
        assert slot.seq in damage or (
            isinstance(slot, Entry) and slot.body == hurt.bodies[slot.seq]
        )


@pytest.mark.parametrize(
    "harm",
    [
        name if name == "change_byte" else pytest.param(name, marks=pytest.mark.long)
        for name in HARMS
    ],
)
async def test_an_opening_checks_the_newest_slots_and_older_ones_while_it_is_quick(
    harm: str,
) -> None:
    hurt = await make_log(MemoryStore(), 2200)
    for seq, seconds in ((1600, 0.0), (1201, 0.0), (5, 600.0), (1190, 600.0)):
        damage = HARMS[harm](hurt, seq)
        await hurt.put(damage)
        with pytest.raises((Missing, Damaged)) as caught:
            await check_integrity(hurt.log, seconds)
        assert getattr(caught.value, "seq", None) in damage
        await hurt.restore(damage)
    await check_integrity(hurt.log, 600.0)


@pytest.mark.long
async def test_an_opening_leaves_altered_older_slots_to_verify_once_its_time_is_over() -> None:
    hurt = await make_log(MemoryStore(), 2200)
    await hurt.put(forge(hurt, 1100))
    await check_integrity(hurt.log, 0.0)
    assert await verified_seqs(hurt) == {1100}


@pytest.mark.long
async def test_a_log_that_is_being_written_is_whole(store: Store) -> None:
    log = log_in(store)

    async def write() -> None:
        for base in range(0, 30, 3):
            await log.append([user_message("on")] * 3, base=base, origin=origin_by(f"{base}"))
            await log.seal(base + 3)
            await asyncio.sleep(0)

    writing = asyncio.create_task(write())
    while not writing.done():
        await asyncio.sleep(0)
        await check_integrity(log)
        assert await verified_seqs(DamagedLog(log, [], [], None)) == set()  # type: ignore[arg-type]
    await writing


async def closed_log(events: int = 1150) -> EventLog:
    log = await write_log(MemoryStore(), events)
    await save(log, events, closing=True)
    return log


async def save(log: EventLog, end: int, closing: bool = False) -> None:
    state = fold(State(), [summarize(entry) for entry in await log.read(0, end)])
    await log.save_state(encode_cached_state(state))
    await log.seal(end, closing)


def full_key(log: EventLog, name: str) -> str:
    return f"users/somebody/conversations/{log.conversation_id}/{name}"


async def find_all(log: EventLog) -> list[Finding]:
    return [finding async for finding in verify(log)]


class CountingStore(MemoryStore):
    """Counts its reads."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        super().__init__()
        self.objects = objects
        self.reads = 0

    async def read(self, key: str) -> bytes | None:
        self.reads += 1
        return await super().read(key)


async def test_a_cold_reader_reads_segments_and_not_slots() -> None:
    log = await closed_log()
    assert isinstance(log.store, MemoryStore)
    store = CountingStore(log.store.objects)
    cold = log_in(store, conversation=log.conversation_id)
    assert await cold.read(0, 2000) == await log.read(0, 2000)
    assert store.reads < 50
    assert [entry.seq for entry in await cold.read(900, 200)] == list(range(900, 1100))


@pytest.mark.parametrize("name", [segment_key(0, 1000), segment_key(1000, 1150)])
@pytest.mark.parametrize("body", [b"", b"{}\n", None])
async def test_a_damaged_segment_is_named_and_hides_nothing(name: str, body: bytes | None) -> None:
    log = await closed_log()
    whole = await log.read(0, 2000)
    key = full_key(log, name)
    spoilt = body if body is not None else (await log.store.read(key) or b"").replace(b"9", b"8")
    await log.store.replace(key, spoilt)
    [finding] = await find_all(log)
    assert (finding.kind, finding.key) == ("beside", key)
    assert await log_in(log.store, conversation=log.conversation_id).read(0, 2000) == whole
    await check_integrity(log)


async def test_a_segment_is_a_pure_function_of_its_slots_and_written_once() -> None:
    log = await closed_log()
    holder = Holder("somebody", log.conversation_id, 0)
    before = dict(log.store.objects)  # type: ignore[attr-defined]
    await log.store.delete(full_key(log, segment_key(0, 1000)))
    await log.store.delete(full_key(log, TAIL))
    assert (tail := await read_tail(log.store, holder)) is None
    await log.seal(1150, closing=True)
    await log.store.delete(full_key(log, segment_key(1000, 1150)))
    await log.store.delete(full_key(log, TAIL))
    await log.seal(1150, closing=True)
    assert dict(log.store.objects) == before  # type: ignore[attr-defined]
    assert tail is None
    bodies = await read_segment(log.store, holder, 1000, 1150)
    assert bodies[7] == (await log.get(1007)).body


async def test_a_reopened_conversation_seals_from_where_it_was_closed() -> None:
    log = await closed_log(50)
    await log.append([user_message("on")] * 1000, base=50, origin=origin_by("later"))
    await save(log, 1050)
    listed = await log.store.list(full_key(log, "segments/"))
    assert [key.rpartition("/")[2] for key in listed] == [
        "000000-000050.jsonl",
        "000050-001000.jsonl",
        "tail",
    ]
    assert await find_all(log) == []


async def test_an_event_altered_before_sealing_is_not_copied() -> None:
    hurt = await make_log(MemoryStore(), 40)
    await hurt.put(forge(hurt, 7))
    log = log_in(hurt.log.store, conversation=hurt.log.conversation_id)
    with pytest.raises(Damaged, match="seq 7"):
        await log.seal(40, closing=True)


async def test_an_altered_state_is_reported_and_a_lost_one_is_rebuilt() -> None:
    hurt = await make_log(MemoryStore(), 30)
    key = full_key(hurt.log, STATE)
    body = await hurt.log.load_state() or b""
    state = parse_cached_state(body).state
    await hurt.log.save_state(encode_cached_state(state.model_copy(update={"sha": "0" * 32})))
    [finding] = await find_all(hurt.log)
    assert (finding.kind, finding.key) == ("beside", key)
    assert "running hash" in finding.detail
    altered = json.dumps({**json.loads(body), "turn": 7}).encode()
    for spoilt in (b"{", b"[]", body[:-1], body.replace(b'"turn":1', b'"turn":7'), altered):
        await hurt.log.save_state(spoilt)
        [finding] = await find_all(hurt.log)
        assert (finding.kind, finding.key) == ("beside", key), spoilt
        assert "the kept state was altered" in finding.detail
    await hurt.log.store.delete(key)
    [finding] = await find_all(hurt.log)
    assert finding.kind == "note"
    await hurt.put(dict.fromkeys((28, 29)))
    assert await verified_seqs(hurt) == {28, 29}, "the tail tells of them too"


async def test_an_altered_tail_is_reported_and_accuses_no_event() -> None:
    hurt = await make_log(MemoryStore(), 30)
    key = full_key(hurt.log, TAIL)
    body = await hurt.log.store.read(key) or b""
    await hurt.log.store.replace(key, body.replace(b"a", b"b"))
    [finding] = await find_all(hurt.log)
    assert (finding.kind, finding.key) == ("beside", key)


async def test_blobs_and_responses_are_checked() -> None:
    log = log_in(MemoryStore())
    lost, altered = await log.store_blob(b"lost"), await log.store_blob(b"altered")
    await log.append(
        [user_message(lost), user_message(altered), user_message("none")],
        base=0,
        origin=origin_by("a"),
    )
    answer = Completion(id="c", model="m", message=Message(role="assistant"), received=NOW)
    await log.record_response(2, answer, origin_by("think"))
    await save(log, 3)
    assert await find_all(log) == []
    await log.store.delete(full_key(log, lost))
    await log.store.replace(full_key(log, altered), b"what was never said")
    await log.store.replace(full_key(log, "responses/000002.json"), b"{")
    findings = [(item.kind, item.seq) for item in await find_all(log)]
    assert findings == [("blob", 0), ("blob", 1), ("response", 2)]


async def test_a_fork_is_verified_down_to_the_first_event_of_its_lineage() -> None:
    hurt = await make_log(MemoryStore(), 40)
    child = await make_fork(hurt.log, 20, "on")
    assert await find_all(child) == []
    await hurt.put(forge(hurt, 5))
    findings = await find_all(child)
    assert [(item.kind, item.seq) for item in findings] == [("altered", 5)]
    assert hurt.log.conversation_id in findings[0].key
    before = await make_fork(hurt.log, 4, "on")
    await check_integrity(before)
    assert await find_all(before) == []
    with pytest.raises(Damaged, match="seq 5"):
        await check_integrity(child)


async def test_a_fork_point_proves_how_many_events_its_parent_had() -> None:
    hurt = await make_log(MemoryStore(), 20, kept=False)
    await make_fork(hurt.log, 19)
    await hurt.put({19: None})
    assert await verified_seqs(hurt) == {19}


async def test_events_that_the_workflow_knows_of_are_missed() -> None:
    hurt = await make_log(MemoryStore(), 20, kept=False)
    assert [item.seq async for item in verify(hurt.log, known_end=21) if item.is_slot] == [20]


async def test_a_damaged_log_still_has_a_state() -> None:
    hurt = await make_log(MemoryStore(), 20)
    await hurt.log.append(
        [user_message("one"), user_message("two")], base=20, origin=origin_by("on")
    )
    await hurt.log.store.replace(hurt.key(21), b"{")
    state, damage = await read_state_until_damage(
        log_in(hurt.log.store, conversation=hurt.log.conversation_id)
    )
    assert state.next_seq == 21
    assert isinstance(damage, Damaged)


@pytest.mark.longest
@pytest.mark.timeout(1800)
async def test_any_damage_to_each_of_ten_thousand_events_is_found() -> None:
    await damage_every_slot(10_000, 50, 5)

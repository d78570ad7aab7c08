"""Damage a log in every way at every slot, and check that `verify` names the slot.

    python -m reliability.damage --events 10000 --full 500 --files 20

Each slot is damaged in each way and looked at again with its neighbours; as many as `--full` says
of these cases, chosen by chance, are met by a whole verification, and `--files` of them on disk.
"""

import argparse
import asyncio
import json
import random
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.events.entry import add_checksum, make_entry, parse_entry
from perdure.events.projection import summarize
from perdure.storage.files import FileStore
from perdure.storage.keys import event_key
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.inspection import Inspector
from perdure.storage.log.verify import verify
from perdure.storage.store import Store
from tests.storage.made import log_in, origin_by, user_message
from tests.storage.memory import MemoryStore

EVENTS_PER_STEP = 7
"""Events that one step writes."""


@dataclass
class DamagedLog:
    """A log, the bodies that it should have, and those of another conversation."""

    log: EventLog
    bodies: list[bytes]
    others: list[bytes]
    random: random.Random

    def key(self, seq: int) -> str:
        place = f"users/{self.log.user_id}/conversations/{self.log.conversation_id}/"
        return place + event_key(self.log.conversation_id, seq)

    async def put(self, bodies: Mapping[int, bytes | None]) -> None:
        """Have the store hold these in their slots; None: nothing."""
        for seq, body in bodies.items():
            if body is None:
                await self.log.store.delete(self.key(seq))
            else:
                await self.log.store.replace(self.key(seq), body)

    async def restore(self, bodies: Mapping[int, bytes | None]) -> None:
        await self.put({seq: self.bodies[seq] for seq in bodies})


Harm: TypeAlias = Callable[[DamagedLog, int], dict[int, bytes | None]]
"""What is to stand in which slots instead, so that each of them must be named."""


async def make_log(store: Store, events: int, kept: bool = True, seed: int = 0) -> DamagedLog:
    """A log of messages; with `kept`, saved as at the end of a turn."""
    log, other = await write_log(store, events), await write_log(store, events)
    if kept:
        entries = await log.read(0, events)
        state = fold(State(), [summarize(entry) for entry in entries])
        await log.save_state(encode_cached_state(state))
        await log.seal(events)
    bodies = [entry.body for entry in await log.read(0, events)]
    others = [entry.body for entry in await other.read(0, events)]
    return DamagedLog(log, bodies, others, random.Random(seed))


async def write_log(store: Store, events: int) -> EventLog:
    log = log_in(store, EntryCache(64 * 1024 * 1024))
    for base in range(0, events, EVENTS_PER_STEP):
        numbers = range(base, min(base + EVENTS_PER_STEP, events))
        made = [user_message(f"There are {number} of them.") for number in numbers]
        await log.append(made, base=base, origin=origin_by(f"step {base}"))
    return log


def change_byte(victim: DamagedLog, seq: int) -> dict[int, bytes | None]:
    body = bytearray(victim.bodies[seq])
    body[victim.random.randrange(len(body))] ^= 1 << victim.random.randrange(8)
    return {seq: bytes(body)}


def change_number(victim: DamagedLog, seq: int) -> dict[int, bytes | None]:
    """Another event of the same form, which says something else."""
    return {seq: re.sub(rb"There are \d+", b"There are 77777", victim.bodies[seq])}


def forge(victim: DamagedLog, seq: int) -> dict[int, bytes | None]:
    """The same, with a checksum that holds."""
    false = parse_entry(seq, victim.bodies[seq])
    event = user_message("There are none of them.").model_copy(update={"id": false.event.id})
    return {seq: add_checksum(make_entry(seq, event, false.origin), false.previous_sha).body}


def remove_checksum(victim: DamagedLog, seq: int) -> dict[int, bytes | None]:
    """The same, as an older version wrote its entries: without a checksum."""
    fields = json.loads(victim.bodies[seq])
    del fields["origin"]["checksum"], fields["origin"]["after"]
    return {seq: json.dumps(fields).replace("There are", "Here are").encode()}


def delete(_: DamagedLog, seq: int) -> dict[int, bytes | None]:
    return {seq: None}


def swap(victim: DamagedLog, seq: int) -> dict[int, bytes | None]:
    other = victim.random.choice([number for number in range(len(victim.bodies)) if number != seq])
    return {seq: victim.bodies[other], other: victim.bodies[seq]}


def truncate(victim: DamagedLog, seq: int) -> dict[int, bytes | None]:
    body = victim.bodies[seq]
    return {seq: body[: victim.random.randrange(len(body))]}


def copy_from_other(victim: DamagedLog, seq: int) -> dict[int, bytes | None]:
    return {seq: victim.others[seq]}


def cut_off(victim: DamagedLog, seq: int) -> dict[int, bytes | None]:
    """The slot and all behind it, twenty at most: else it is another kind of damage."""
    end = len(victim.bodies)
    return dict.fromkeys(range(max(seq, end - 20), end))


HARMS: dict[str, Harm] = {
    harm.__name__: harm
    for harm in (
        change_byte,
        change_number,
        forge,
        remove_checksum,
        delete,
        swap,
        truncate,
        copy_from_other,
        cut_off,
    )
}


async def verified_seqs(victim: DamagedLog) -> set[int]:
    """The slots that a whole verification names."""
    return {item.seq async for item in verify(victim.log) if item.is_slot and item.seq is not None}


async def inspected_seqs(
    inspector: Inspector, victim: DamagedLog, seqs: Mapping[int, object]
) -> set[int]:
    """The slots that are named by those who look at these slots and at their neighbours."""
    end = len(victim.bodies)
    slots: set[int] = set()
    for seq in seqs:
        page = await inspector.inspect_slots(seq, min(seq + 2, end), end)
        slots |= {
            finding.seq for finding in page.findings if finding.is_slot and finding.seq is not None
        }
    return slots


async def damage_every_slot(events: int, full: int, files: int) -> int:
    """Carry it out; how many cases there were. Raises AssertionError for the first one missed."""
    hurt = await make_log(MemoryStore(), events)
    assert await verified_seqs(hurt) == set()
    inspector = Inspector(EventLog(hurt.log.store, hurt.log.user_id, hurt.log.conversation_id))
    cases = 0
    for name, harm in HARMS.items():
        for seq in range(events):
            damage = harm(hurt, seq)
            await hurt.put(damage)
            assert await inspected_seqs(inspector, hurt, damage) == set(damage), (name, seq)
            await hurt.restore(damage)
            cases += 1
    await verify_whole_log(hurt, full)
    with tempfile.TemporaryDirectory() as folder:
        store = FileStore(Path(folder))
        await verify_whole_log(await make_log(store, events if files else 0), files)
        await store.close()
    return cases + full + files


async def verify_whole_log(hurt: DamagedLog, times: int) -> None:
    for nth in range(times):
        name = list(HARMS)[nth % len(HARMS)]
        seq = hurt.random.randrange(len(hurt.bodies))
        damage = HARMS[name](hurt, seq)
        await hurt.put(damage)
        assert await verified_seqs(hurt) == set(damage), (name, seq)
        await hurt.restore(damage)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--full", type=int, default=500)
    parser.add_argument("--files", type=int, default=20)
    options = parser.parse_args()
    started = time.monotonic()
    cases = asyncio.run(damage_every_slot(options.events, options.full, options.files))
    print(f"{cases:,} damages, every slot named, in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()

"""Every way to damage a log, at every one of its slots: does `verify` name the slot each time?

    python -m tests.damage --events 10000 --full 500 --files 20

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

from agent.evolve import fold
from agent.state import State
from events.entry import checked, entry, entry_from
from events.projection import digest
from storage.cache import EntryCache
from storage.files import FileStore
from storage.inspection import Inspector
from storage.keys import event_key
from storage.log import EventLog
from storage.sealing import seal
from storage.store import Store
from storage.verify import verify
from tests.storage.made import by, log_in, said
from tests.storage.memory import MemoryStore

TOGETHER = 7
"""Events that one step writes."""


@dataclass
class Victim:
    """A log, the bodies that it should have, and those of another conversation."""

    log: EventLog
    bodies: list[bytes]
    others: list[bytes]
    chance: random.Random

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

    async def mend(self, bodies: Mapping[int, bytes | None]) -> None:
        await self.put({seq: self.bodies[seq] for seq in bodies})


Harm: TypeAlias = Callable[[Victim, int], dict[int, bytes | None]]
"""What is to stand in which slots instead, so that each of them must be named."""


async def victim(store: Store, events: int, kept: bool = True, seed: int = 0) -> Victim:
    """A log of messages; with `kept`, saved as at the end of a turn."""
    log, other = await written(store, events), await written(store, events)
    if kept:
        entries = await log.read(0, events)
        state = fold(State(), [digest(one) for one in entries])
        await log.save_state(state.model_dump_json().encode())
        await seal(log, events)
    bodies = [one.body for one in await log.read(0, events)]
    others = [one.body for one in await other.read(0, events)]
    return Victim(log, bodies, others, random.Random(seed))


async def written(store: Store, events: int) -> EventLog:
    log = log_in(store, EntryCache(64 * 1024 * 1024))
    for base in range(0, events, TOGETHER):
        numbers = range(base, min(base + TOGETHER, events))
        made = [said(f"There are {number} of them.") for number in numbers]
        await log.append(made, base=base, origin=by(f"step {base}"))
    return log


def a_byte(victim: Victim, seq: int) -> dict[int, bytes | None]:
    body = bytearray(victim.bodies[seq])
    body[victim.chance.randrange(len(body))] ^= 1 << victim.chance.randrange(8)
    return {seq: bytes(body)}


def a_number(victim: Victim, seq: int) -> dict[int, bytes | None]:
    """Another event of the same form, which says something else."""
    return {seq: re.sub(rb"There are \d+", b"There are 77777", victim.bodies[seq])}


def forged(victim: Victim, seq: int) -> dict[int, bytes | None]:
    """The same, with a checksum that holds."""
    false = entry_from(seq, victim.bodies[seq])
    event = said("There are none of them.").model_copy(update={"id": false.event.id})
    return {seq: checked(entry(seq, event, false.origin), false.after).body}


def unchecked(victim: Victim, seq: int) -> dict[int, bytes | None]:
    """The same, as an older version wrote its entries: without a checksum."""
    fields = json.loads(victim.bodies[seq])
    del fields["origin"]["checksum"], fields["origin"]["after"]
    return {seq: json.dumps(fields).replace("There are", "Here are").encode()}


def deleted(_: Victim, seq: int) -> dict[int, bytes | None]:
    return {seq: None}


def swapped(victim: Victim, seq: int) -> dict[int, bytes | None]:
    other = victim.chance.choice([one for one in range(len(victim.bodies)) if one != seq])
    return {seq: victim.bodies[other], other: victim.bodies[seq]}


def truncated(victim: Victim, seq: int) -> dict[int, bytes | None]:
    body = victim.bodies[seq]
    return {seq: body[: victim.chance.randrange(len(body))]}


def of_another(victim: Victim, seq: int) -> dict[int, bytes | None]:
    return {seq: victim.others[seq]}


def cut_off(victim: Victim, seq: int) -> dict[int, bytes | None]:
    """The slot and all behind it, twenty at most: else it is another kind of damage."""
    end = len(victim.bodies)
    return dict.fromkeys(range(max(seq, end - 20), end))


HARMS: dict[str, Harm] = {
    harm.__name__: harm
    for harm in (
        a_byte,
        a_number,
        forged,
        unchecked,
        deleted,
        swapped,
        truncated,
        of_another,
        cut_off,
    )
}


async def named(victim: Victim) -> set[int]:
    """The slots that a whole verification names."""
    return {one.seq async for one in verify(victim.log) if one.is_slot and one.seq is not None}


async def near(inspector: Inspector, victim: Victim, seqs: Mapping[int, object]) -> set[int]:
    """The slots that are named by those who look at these slots and at their neighbours."""
    end = len(victim.bodies)
    found: set[int] = set()
    for seq in seqs:
        page = await inspector.page(max(0, seq - 1), min(seq + 2, end), end)
        found |= {one.seq for one in page.findings if one.is_slot and one.seq is not None}
    return found


async def everywhere(events: int, full: int, files: int) -> int:
    """Carry it out; how many cases there were. Raises AssertionError for the first one missed."""
    hurt = await victim(MemoryStore(), events)
    assert await named(hurt) == set()
    inspector = Inspector(EventLog(hurt.log.store, hurt.log.user_id, hurt.log.conversation_id))
    cases = 0
    for name, harm in HARMS.items():
        for seq in range(events):
            damage = harm(hurt, seq)
            await hurt.put(damage)
            assert await near(inspector, hurt, damage) == set(damage), (name, seq)
            await hurt.mend(damage)
            cases += 1
    await _whole(hurt, full)
    with tempfile.TemporaryDirectory() as folder:
        store = FileStore(Path(folder))
        await _whole(await victim(store, events if files else 0), files)
        await store.close()
    return cases + full + files


async def _whole(hurt: Victim, times: int) -> None:
    for nth in range(times):
        name = list(HARMS)[nth % len(HARMS)]
        seq = hurt.chance.randrange(len(hurt.bodies))
        damage = HARMS[name](hurt, seq)
        await hurt.put(damage)
        assert await named(hurt) == set(damage), (name, seq)
        await hurt.mend(damage)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--full", type=int, default=500)
    parser.add_argument("--files", type=int, default=20)
    told = parser.parse_args()
    started = time.monotonic()
    cases = asyncio.run(everywhere(told.events, told.full, told.files))
    print(f"{cases:,} damages, every slot named, in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()

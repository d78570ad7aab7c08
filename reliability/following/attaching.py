"""`python -m reliability.following.attaching`: clients attach at random moments of a turn.

Each is one of three kinds: server-sent events, a socket, or `HttpClient`. It has to get each event
after its cursor once and in order, and the text that grew has to be that of the event.
"""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.client.turn import spoken_text
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.entry import Entry
from reliability.chaos.command_line import new_parser, parse_options, run_harness
from reliability.chaos.load.conversations import make_agent
from reliability.following.attached_client import KINDS, AttachedClient, attach
from reliability.following.scripts import VARIANTS
from reliability.following.stage import Stage, open_stage

SHORT, FULL = 90, 1000

CLIENTS = 20
"""Clients that attach during one turn."""

TURNS_AT_ONCE = 3

WORKERS = 2

ATTACH_WITHIN = 5.0
"""Seconds from the first message within which clients attach: a turn takes about as long."""

TURN_TIMEOUT = 180.0
"""Seconds after which a turn counts as one that does not end; undisturbed it takes five."""

LEAST_MIDWAY = 0.1
"""The least share of the clients that have to attach while an answer grows: else nothing was
tried."""


@dataclass
class Attaching:
    """The counts and the findings of clients that attach."""

    stage: Stage
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    async def run(self, clients: int, seed: int) -> None:
        """Run as many turns as it takes for so many clients."""
        sizes = [CLIENTS] * (clients // CLIENTS) + [clients % CLIENTS] * bool(clients % CLIENTS)
        turns = asyncio.Semaphore(TURNS_AT_ONCE)
        kinds = count()

        async def run(nth: int, size: int) -> None:
            async with turns:
                own_kinds = [KINDS[next(kinds) % len(KINDS)] for _ in range(size)]
                await self._run_turn(own_kinds, f"{seed} {nth}")

        async with asyncio.TaskGroup() as running:
            for nth, size in enumerate(sizes):
                running.create_task(run(nth, size))
        if self.counts["while an answer grew"] < LEAST_MIDWAY * clients:
            self.findings.append("Too few clients attached while an answer grew.")

    async def _run_turn(self, kinds: list[str], seed: str) -> None:
        """Run a turn, attach a client of each of the kinds, and check what each of them got."""
        chance = random.Random(seed)
        model = f"following-{chance.randrange(VARIANTS)}"
        conversation = self.stage.client.conversation(new_conversation_id())
        await conversation.start("Begin.", make_agent(model, self.stage.model), "first")
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        attaching = [
            asyncio.create_task(self._attach(kind, conversation, ended, f"{seed} {nth}"))
            for nth, kind in enumerate(kinds)
        ]
        try:
            async with asyncio.timeout(TURN_TIMEOUT):
                await conversation.result()
            ended.set_result(await conversation.log.end())
        except Exception as error:
            self.findings.append(f"{conversation.id}: the turn does not end: {error!r}")
            ended.cancel()
        attached = await asyncio.gather(*attaching, return_exceptions=True)
        if ended.cancelled():
            return
        self.counts["turns"] += 1
        entries = await conversation.log.read(0, ended.result())
        for kind, client in zip(kinds, attached, strict=True):
            self._check(conversation.id, kind, client, entries)

    async def _attach(
        self, kind: str, conversation: Conversation, ended: asyncio.Future[int], seed: str
    ) -> AttachedClient:
        """Attach a client at a random moment, with a cursor that may be anywhere before it."""
        chance = random.Random(seed)
        await asyncio.sleep(chance.uniform(0, ATTACH_WITHIN))
        end = await conversation.log.end()
        after_seq = chance.choice([-1, chance.randrange(-1, max(end, 1))])
        gateway = chance.choice(self.stage.gateways)
        moment = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
        client = AttachedClient(kind, after_seq, moment)
        again = await attach(client, gateway.url, self.stage.key, conversation.id, ended)
        self.counts["connections that failed"] += again
        return client

    def _check(
        self, name: str, kind: str, client: AttachedClient | BaseException, entries: list[Entry]
    ) -> None:
        self.counts[f"{kind} attached"] += 1
        if isinstance(client, BaseException):
            self.findings.append(f"{name}: {kind}: {client!r}")
            return
        where = f"{name}: {kind} after slot {client.after_seq}"
        due = [entry.event.id for entry in entries[client.after_seq + 1 :]]
        if client.event_ids != due:
            got = len(client.event_ids)
            self.findings.append(f"{where}: {got} events, other than the {len(due)} of the log")
        self.findings += [f"{where}: {fault}" for fault in client.find_wrong_texts(entries)]
        self.counts["events"] += len(client.event_ids)
        self.counts["texts that grew"] += client.grown_texts
        behind = (entry for entry in entries if entry.event.timestamp > client.attached_at)
        if (following := next(behind, None)) is not None and spoken_text(following):
            self.counts["while an answer grew"] += 1


async def run(clients: int, seed: int, folder: Path) -> dict[str, Any]:
    """Attach all clients; return the report."""
    async with open_stage(folder, seed, WORKERS) as stage:
        attaching, began = Attaching(stage), monotonic()
        await attaching.run(clients, seed)
        return {
            "seed": seed,
            "seconds": round(monotonic() - began),
            "counts": dict(sorted(attaching.counts.items())),
            "findings": attaching.findings,
        }


def main() -> None:
    """Exit code 0 means that each client got each event once, and the text of each."""
    parser = new_parser("reliability.following.attaching", __doc__)
    parser.add_argument("--clients", type=int, help=f"by default {FULL}")
    options = parse_options(parser)
    clients = options.clients or (SHORT if options.short else FULL)
    run_harness(lambda folder: run(clients, options.seed, folder), options.keep)


if __name__ == "__main__":
    main()

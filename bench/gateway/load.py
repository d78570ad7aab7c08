"""Clients on conversations of which some work."""

import asyncio
import random
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from bench.gateway.conversations import list_slots, run_turns, start_conversations
from bench.gateway.deliveries import compare_deliveries
from bench.gateway.ending import note_failure
from bench.gateway.measuring import measure_while
from bench.gateway.processes import open_stage
from bench.gateway.progress import tell

WORDS = 25
"""Words of an answer, each a piece of its own."""

IDLE_SECONDS = 20.0
"""Seconds for which an attached server is measured before anything happens."""

LAST_FRAMES_SECONDS = 5.0
"""Seconds for which clients stay after the last turn: the last frames are on their way."""


@dataclass(frozen=True)
class LoadPlan:
    """`clients` of each kind attach to each of the conversations.

    `working` of these have a turn of `steps` steps, each of which takes about `pace` seconds.
    """

    conversations: int
    working: int
    clients: Mapping[str, int]
    steps: int
    pace: float

    @property
    def client_count(self) -> int:
        return sum(self.clients.values()) * self.conversations

    @property
    def turn_seconds(self) -> float:
        return self.steps * self.pace

    def describe(self) -> dict[str, Any]:
        return {
            "clients": self.client_count,
            "clients_of_a_conversation": dict(self.clients),
            "conversations": self.conversations,
            "working": self.working,
            "steps": self.steps,
            "seconds_of_an_answer": self.pace,
        }

    def make_answers(self, tool: str, argument_sets: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Make a script: a word first, and then a turn of steps with words that grow."""
        chance = random.Random(1)
        steps = [
            {
                "content": " ".join(str(chance.randrange(10**8)) for _ in range(WORDS)),
                "chunk_delay": self.pace / WORDS,
                "tool_calls": [{"name": tool, "arguments": dict(arguments)}],
            }
            for _, arguments in zip(range(self.steps), argument_sets, strict=False)
        ]
        return {"load": {"answers": [{"content": "Hello."}, *steps, {"content": "Done."}]}}


async def run_load(plan: LoadPlan) -> dict[str, Any]:
    """Run the plan; return its figures, with what was lost or came twice. Raises BenchFailed."""
    scripts = plan.make_answers("add", ({"a": nth, "b": 2} for nth in range(plan.steps)))
    faults: list[str] = []
    async with open_stage(scripts) as stage:
        tell(f"starting {plan.conversations} conversations")
        conversations = await start_conversations(stage, plan.conversations)
        bare = await stage.measure_warm(conversations[0].id)
        ids = [conversation.id for conversation in conversations]
        tell(f"attaching {plan.client_count} clients")
        async with AsyncExitStack() as attaching:
            began = monotonic()
            attached = [
                await attaching.enter_async_context(stage.attach(kind, each, ids))
                for kind, each in plan.clients.items()
            ]
            attach_seconds = monotonic() - began
            measure = stage.gateway.measure
            idle = await measure_while(measure, asyncio.sleep(IDLE_SECONDS))
            tell(f"{plan.working} conversations work")
            turns = run_turns(stage, conversations[: plan.working], plan.turn_seconds)
            busy = await measure_while(measure, note_failure(turns, faults))
            await asyncio.sleep(LAST_FRAMES_SECONDS)
        stored = await list_slots(conversations)
        received = [client for clients in attached for client in clients.received]
        phases = {"idle": idle, "working": busy}
        return {
            **plan.describe(),
            "attach_seconds": round(attach_seconds, 1),
            "memory_mb_without_clients": round(bare.memory / 1e6, 1),
            "phases": {
                name: phase.describe(plan.client_count, bare.memory)
                for name, phase in phases.items()
            },
            **compare_deliveries(received, stored, read_times(stage.appended), faults),
        }


def read_times(appended: Path) -> dict[tuple[str, int | str], float]:
    """Read when each event was appended, by its conversation and slot."""
    lines = (line.split() for line in appended.read_text().splitlines())
    return {(name, int(seq)): float(at) for name, seq, at in lines}

"""The load of the gateway's bench, on an agent-server of OpenHands.

All clients are sockets: it has no server-sent events. Its agents work in the server's own process.
"""

import asyncio
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

from bench.gateway.attached_clients import attach_clients
from bench.gateway.deliveries import compare_deliveries
from bench.gateway.ending import note_failure, within
from bench.gateway.load import IDLE_SECONDS, LAST_FRAMES_SECONDS, LoadPlan
from bench.gateway.measuring import measure_while
from bench.gateway.openhands.agent_server import KEY, AgentServer, open_agent_server
from bench.gateway.openhands.environment import find_obstacle
from bench.gateway.progress import tell
from bench.model import model_server, write_scripts

STARTS_AT_ONCE = 4

START_SECONDS = 120.0
START_SECONDS_EACH = 5.0

TURN_FACTOR = 3.0


async def run_openhands(plan: LoadPlan) -> dict[str, Any]:
    """Run the plan; return its figures, or why it could not be run. Raises BenchFailed."""
    tell("an environment for openhands-agent-server")
    if obstacle := await asyncio.to_thread(find_obstacle):
        return {"not_checked": obstacle}
    plan = LoadPlan(
        plan.conversations,
        plan.working,
        {"openhands": sum(plan.clients.values())},
        plan.steps,
        plan.pace,
    )
    scripts = plan.make_answers("think", ({"thought": str(nth)} for nth in range(plan.steps)))
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        file = write_scripts(folder / "script.json", scripts)
        async with model_server(file) as api_base, open_agent_server(folder) as server:
            return await measure_load(plan, server, api_base)


async def measure_load(plan: LoadPlan, server: AgentServer, api_base: str) -> dict[str, Any]:
    ids = await start_conversations(server, api_base, plan.conversations)
    [(kind, each)] = plan.clients.items()
    file = server.folder / "clients.json"
    async with attach_clients(server.url, KEY, kind, 1, ids[:1], file):
        pass
    bare = await server.measure()
    tell(f"attaching {plan.client_count} clients")
    began, faults = monotonic(), list[str]()
    async with attach_clients(server.url, KEY, kind, each, ids, file) as clients:
        attach_seconds = monotonic() - began
        idle = await measure_while(server.measure, asyncio.sleep(IDLE_SECONDS))
        tell(f"{plan.working} conversations work")
        turns = run_turns(server, plan, ids[: plan.working])
        busy = await measure_while(server.measure, note_failure(turns, faults))
        await asyncio.sleep(LAST_FRAMES_SECONDS)
    phases = {"idle": idle, "working": busy}
    return {
        **plan.describe(),
        "attach_seconds": round(attach_seconds, 1),
        "memory_mb_without_clients": round(bare.memory / 1e6, 1),
        "phases": {
            name: phase.describe(plan.client_count, bare.memory) for name, phase in phases.items()
        },
        **compare_deliveries(
            clients.received, server.list_events(ids), server.list_times(ids), faults
        ),
    }


async def start_conversations(server: AgentServer, api_base: str, count: int) -> list[str]:
    """Start conversations, each of which answers once; return their ids. Raises BenchFailed."""
    tell(f"starting {count} conversations")
    turns = asyncio.Semaphore(STARTS_AT_ONCE)

    async def start() -> str:
        async with turns:
            return await server.start_conversation(api_base, "load")

    longest = START_SECONDS + START_SECONDS_EACH * count
    async with within(longest, f"Starting {count} conversations of the agent-server"):
        return list(await asyncio.gather(*(start() for _ in range(count))))


async def run_turns(server: AgentServer, plan: LoadPlan, ids: list[str]) -> None:
    longest = START_SECONDS + TURN_FACTOR * plan.turn_seconds
    async with within(longest, f"The turns of {len(ids)} conversations of the agent-server"):
        await asyncio.gather(*(server.run_turn(name, "Go.") for name in ids))

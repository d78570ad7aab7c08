"""Conversations at rest that are watched."""

import asyncio
from typing import Any

from bench.gateway.conversations import list_slots, start_conversations, wait_for_workflows
from bench.gateway.deliveries import MAX_FAULTS
from bench.gateway.ending import within
from bench.gateway.measuring import measure_while
from bench.gateway.processes import open_stage
from bench.gateway.progress import tell

SETTLE_SECONDS = 20.0

RESTS = {"ended": 0.2, "open": 3600.0}
"""The ways to rest, with the seconds after which a workflow without work ends: those of one have
ended when the clients come, and those of the other wait for a person."""

MOST_REQUESTS = 10.0
"""Requests a second to the store and Temporal together that are too many."""


async def run_idle(conversations: int, seconds: float, rest: str) -> dict[str, Any]:
    """Measure a gateway with one client on each of the conversations. Raises BenchFailed."""
    script = {"idle": {"answers": [{"content": "Hello."}]}}
    async with open_stage(script) as stage:
        tell(f"starting {conversations} conversations")
        started = await start_conversations(stage, conversations, "idle", RESTS[rest])
        if rest == "ended":
            await wait_for_workflows(stage, started)
        bare = await stage.measure_warm(started[0].id)
        ids = [conversation.id for conversation in started]
        tell(f"attaching {conversations} clients")
        async with stage.attach("socket", 1, ids) as clients:
            await asyncio.sleep(SETTLE_SECONDS)
            tell(f"measuring for {seconds:.0f} s")
            idle = await measure_while(stage.gateway.measure, asyncio.sleep(seconds))
        async with within(120 + conversations, "Reading the logs"):
            stored = await list_slots(started)
        figures = idle.describe(conversations, bare.memory)
        requests = figures["store_requests_a_second"] + figures["temporal_requests_a_second"]
        faults = [
            f"{client['conversation_id']}: {client['fault'] or 'other events than its log has'}"
            for client in clients.received
            if client["fault"]
            or [event for event, _ in client["received"]] != list(stored[client["conversation_id"]])
        ]
        if requests >= MOST_REQUESTS:
            faults.append(f"{requests:.1f} requests a second: {MOST_REQUESTS:.0f} are too many.")
        return {
            "clients": conversations,
            "conversations": conversations,
            "memory_mb_without_clients": round(bare.memory / 1e6, 1),
            "phases": {"idle": figures},
            "requests_a_second": round(requests, 2),
            "fault_count": len(faults),
            "faults": faults[:MAX_FAULTS],
        }

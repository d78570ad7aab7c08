"""Discussions for tests and pictures of the page."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tests.gateway.stage import GatewayStage
from tests.workflows.discussion.debate import PASS, ballot, script, wants

ADAS = "It costs us *nothing*:\n\n- the meetings were too long\n- nobody works on Friday afternoons"

VOTING = {"name": "decision", "end": "vote", "question": "Do we try it for half a year?"}


async def start_discussion(
    stage: GatewayStage,
    session_id: str,
    agents: Mapping[str, Sequence[Any]],
    **more: Any,
) -> None:
    """Start a discussion of Anna's whose agents give these answers."""
    folder = stage.harness.folder
    table = {
        "topic": "Should the team work four days a week?",
        "agents": [
            {"id": name, "model": script(folder, answers)} for name, answers in agents.items()
        ],
        **more,
    }
    body = {"discussion": table, "id": session_id}
    started = await stage.anna.post("/v1/discussions", json=body)
    assert started.status_code == 201, started.text


async def discuss_four_days(stage: GatewayStage, session_id: str) -> None:
    """Have a discussion of two phases in which two speak and three vote, to its end."""
    ada = [wants(7, "Money."), ADAS, wants(3, "Once more."), "As I said.", ballot("yes", "it pays")]
    bob = [wants(5, "Rest."), "People are *tired*.", wants(2, "Rest."), "Rest!", ballot("yes")]
    cyd = [PASS, PASS, ballot("no", "customers call")]
    phases = [{"name": "opening"}, VOTING]
    agents: Mapping[str, Sequence[Any]] = {"ada": ada, "bob": bob, "cyd": cyd}
    await start_discussion(stage, session_id, agents, phases=phases)
    await wait_for_discussion(stage, session_id, "finished")


async def wait_for_discussion(stage: GatewayStage, session_id: str, *statuses: str) -> None:
    async with asyncio.timeout(60):
        while True:
            shown = (await stage.anna.get(f"/v1/discussions/{session_id}")).json()
            if shown["status"]["status"] in statuses:
                return
            await asyncio.sleep(0.1)

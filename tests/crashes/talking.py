"""The conversation that is disturbed: what the model says in it, and what its user does."""

import asyncio
import json
from pathlib import Path

from temporalio.client import WorkflowUpdateStage

from agent.spec import ModelSpec, Spec, SummaryCondenser
from agent.start import Recorded
from client.client import Client
from client.conversation import Conversation
from tests.house import calls

PATIENCE = 300.0
"""Seconds after which a conversation counts as lost."""

PAUSE = 0.1

ANSWERS = (
    calls(("look", {}), ("pay", {"amount": 5})),
    calls(("jot", {"line": "one"})),
    calls(
        ("file_editor", {"command": "create", "path": "a/plan", "file_text": "the plan"}),
        failures=[{"status": 503}],
    ),
    calls(("jot", {"line": "two"})),
    calls(("pay", {"amount": 7})),
    calls(("finish", {"message": "All is done."})),
)
SUMMARIES = ("There was much ado.",)

DEEDS = {"paid": ("5", "7"), "jotted": ("one", "two")}
"""What is done outside when all goes well."""


def spec_in(folder: Path, heartbeat: float) -> Spec:
    """The agent; its model reads its lines from a file in `folder`.

    A worker that has been silent for `heartbeat` seconds is taken for lost.
    """
    script = folder / "script.json"
    script.write_text(json.dumps({"answers": ANSWERS, "summaries": SUMMARIES}))
    return Spec(
        model=ModelSpec(name=f"scripted:{script}"),
        tools=("tests.crashes.deeds:TOOLS", "file_editor", "finish"),
        condenser=SummaryCondenser(max_size=10, keep_first=2),
        heartbeat_timeout=heartbeat,
    )


async def talk_to(client: Client, conversation_id: str, spec: Spec, outside: Path) -> None:
    """Begin it, say one thing more while tools are at work, and close it once all is done."""
    async with asyncio.timeout(PATIENCE):
        talk = await client.start("Pay.", spec, conversation_id, message_id="first")
        while not (outside / "looking").exists():
            await asyncio.sleep(PAUSE)
        await _say(talk, outside)
        await talk.finished("second")
        await talk.handle.signal("close")
        await talk.handle.result()


async def _say(talk: Conversation, outside: Path) -> None:
    """The tools go on once the message is Temporal's, so that it always stands behind them."""
    update = await talk.handle.start_update(
        "submit_message",
        {"text": "And plan.", "message_id": "second"},
        id="second",
        wait_for_stage=WorkflowUpdateStage.ACCEPTED,
        result_type=Recorded,
    )
    (outside / "said").touch()
    await update.result()

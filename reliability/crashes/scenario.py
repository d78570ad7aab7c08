"""The scenario of every case: the model's script and the user's messages."""

import asyncio
import json
from pathlib import Path

from temporalio.client import WorkflowUpdateStage

from perdure.agent.loop.start import RecordedMessage
from perdure.agent.spec import Agent, ModelSpec, SummaryCondenser
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from tests.harness import tool_call_answer

CONVERSATION_TIMEOUT = 300.0
"""Seconds after which a conversation counts as lost."""

POLL_INTERVAL = 0.1

ANSWERS = (
    tool_call_answer(("look", {}), ("pay", {"amount": 5})),
    tool_call_answer(("jot", {"line": "one"})),
    tool_call_answer(
        ("file_editor", {"command": "create", "path": "a/plan", "file_text": "the plan"}),
        failures=[{"status": 503}],
    ),
    tool_call_answer(("jot", {"line": "two"})),
    tool_call_answer(("pay", {"amount": 7})),
    tool_call_answer(("finish", {"message": "All is done."})),
)
LOCAL_ANSWERS = (
    ANSWERS[0],
    tool_call_answer(("peek", {"at": "the sea"}), ("peek", {"at": "the sky"})),
    tool_call_answer(("ponder", {})),
    tool_call_answer(("jot", {"line": "one"})),
    tool_call_answer(("peek", {"at": "the sun"})),
    tool_call_answer(("finish", {"message": "All is done."})),
)
"""Those of an agent whose brief steps are local activities; the one that ponders is not brief."""
SUMMARIES = ("There was much ado.",)

EXPECTED_EFFECTS = {"paid": ("5", "7"), "jotted": ("one", "two")}
"""What is done outside when all goes well."""


def make_agent(folder: Path, heartbeat: float, local: bool) -> Agent:
    """The agent; its model reads its lines from a file in `folder`.

    A worker that has been silent for `heartbeat` seconds is taken for lost.
    """
    script = folder / "script.json"
    answers = LOCAL_ANSWERS if local else ANSWERS
    script.write_text(json.dumps({"answers": answers, "summaries": SUMMARIES}))
    return Agent(
        model=ModelSpec(name=f"scripted:{script}"),
        tools=("reliability.crashes.tools:TOOLS", "file_editor", "finish"),
        condenser=SummaryCondenser(max_size=10, keep_first=2),
        heartbeat_timeout=heartbeat,
        local_activities=local,
    )


async def run_conversation(
    client: Client, conversation_id: str, spec: Agent, outside: Path
) -> None:
    """Begin it, say one thing more while tools are at work, and close it once all is done."""
    async with asyncio.timeout(CONVERSATION_TIMEOUT):
        talk = await client.start("Pay.", spec, conversation_id, message_id="first")
        while not (outside / "looking").exists():
            await asyncio.sleep(POLL_INTERVAL)
        await send_message(talk, outside)
        await talk.wait_for_turn("second")
        await talk.handle.signal("close")
        await talk.handle.result()


async def send_message(talk: Conversation, outside: Path) -> None:
    """The tools go on once the message is Temporal's, so that it always stands behind them."""
    update = await talk.handle.start_update(
        "submit_message",
        {"text": "And plan.", "message_id": "second"},
        id="second",
        wait_for_stage=WorkflowUpdateStage.ACCEPTED,
        result_type=RecordedMessage,
    )
    (outside / "said").touch()
    await update.result()

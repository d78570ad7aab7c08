"""The scenario of every case: the model's script and the user's messages."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Literal, TypeAlias

from temporalio.client import WorkflowUpdateStage

from perdure.agent.extensions import McpServer
from perdure.agent.loop.start import RecordedMessage
from perdure.agent.memory import MemoryAccess
from perdure.agent.spec import Agent, ModelSpec, SummaryCondenser
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from reliability.crashes import mcp_server
from tests.git_server import TOKEN
from tests.harness import tool_call_answer

CONVERSATION_TIMEOUT = 300.0
"""Seconds after which a conversation counts as lost."""

POLL_INTERVAL = 0.1

BUDGET_KEY, BUDGET = "user:budget", 12
"""A value that the conversations of a user share, as it is before this one."""

RULE = "Pay only what was asked for."
"""A memory that the user has put before: their first message recalls it."""

SEARCH = "pay paid pays euros crowns"
"""Words that all memories have which a conversation may leave, and those that it may not."""

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
START_ANSWERS = (
    ANSWERS[0],
    tool_call_answer(("terminal", {"command": "cat project/README; echo ${#SECRET_1}"})),
    tool_call_answer(
        ("one__add", {"a": 2}),
        ("two__add", {"a": 3}),
        ("state", {"command": "set", "key": "plan", "value": ["jot", "pay"]}),
    ),
    tool_call_answer(
        ("jot", {"line": "one"}),
        ("remember", {"text": "The user pays in euros.", "key": "currency"}),
        ("remember", {"text": "Five was paid at the sea."}),
    ),
    tool_call_answer(
        ("state", {"command": "set", "key": BUDGET_KEY, "value": 7, "before": BUDGET}),
        ("recall", {"query": "euros"}),
    ),
    tool_call_answer(
        ("pay", {"amount": 7}),
        ("remember", {"text": "The user pays in crowns.", "key": "currency"}),
    ),
    tool_call_answer(("finish", {"message": "All is done."})),
)
"""Those of an agent that starts with a clone, two MCP servers and five secrets of its user.

It notes a value of its own and replaces one that its user's conversations share; it puts memories,
of which one takes the place of another, and searches them.
"""
SUMMARIES = ("There was much ado.",)

SECRETS = {"SECRET_1": TOKEN, **{f"SECRET_{n}": f"value-number-{n}" for n in range(2, 6)}}
"""The secrets that the user of an agent that starts so has handed in."""

Shape: TypeAlias = Literal["ordinary", "local", "start"]
"""With activities alone; with local ones; and with all that a start takes."""

EXPECTED_EFFECTS = {"paid": ("5", "7"), "jotted": ("one", "two")}
"""What is done outside when all goes well."""


def make_agent(
    folder: Path, heartbeat: float, shape: Shape, repository: str | None = None
) -> Agent:
    """The agent; its model reads its lines from a file in `folder`.

    A worker that has been silent for `heartbeat` seconds is taken for lost.
    """
    script = folder / "script.json"
    answers = {"ordinary": ANSWERS, "local": LOCAL_ANSWERS, "start": START_ANSWERS}[shape]
    script.write_text(json.dumps({"answers": answers, "summaries": SUMMARIES}))
    agent = Agent(
        model=ModelSpec(name=f"scripted:{script}"),
        tools=("reliability.crashes.tools:TOOLS", "file_editor", "finish"),
        condenser=SummaryCondenser(max_size=60 if shape == "start" else 10, keep_first=2),
        heartbeat_timeout=heartbeat,
        local_activities=shape == "local",
    )
    return agent if repository is None else _with_start(agent, repository)


def _with_start(agent: Agent, repository: str) -> Agent:
    command = {"command": sys.executable, "args": ("-I", mcp_server.__file__), "trusted": True}
    changes = {
        "tools": (*agent.tools, "terminal", "state", "remember", "recall"),
        "memory": MemoryAccess(recall=2, ingest=True),
        "mcp": tuple(McpServer(name=name, include=("add",), **command) for name in ("one", "two")),
        "secrets": tuple(SECRETS),
        "repository": repository,
        "repository_token": "SECRET_1",
    }
    return agent.model_copy(update=changes)


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

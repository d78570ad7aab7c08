"""Records logs of every shape as this version writes them: `python -m tests.record_logs`.

They go to `tests/released/{version}`, a file a log: its stored objects, and what its state and its
prompt were. What was ever recorded is never recorded anew: a log must be readable for ever, so a
version whose folder is there is refused.
"""

import asyncio
import json
import os
import sys
import tempfile
import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any

from perdure.activities.support.resources import Resources
from perdure.agent.view.transcript import Transcript
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.fork import fork as fork_of
from perdure.embedded.temporal import TemporalServer
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.temporal.connect import connect
from tests import record_histories
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.logs import add_events
from tests.record_histories import Shape
from tests.workflows.watching import wait_for_status

RELEASED = Path(__file__).with_name("released")


async def built_in_tools(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        tool_call_answer(("terminal", {"command": "echo hello > greeting; cat greeting"})),
        tool_call_answer(
            ("file_editor", {"command": "create", "path": "a.txt", "file_text": "one\n"})
        ),
        tool_call_answer(("file_editor", {"command": "view", "path": "a.txt"})),
        tool_call_answer(("task_tracker", {"command": "view"})),
        tool_call_answer(("think", {"thought": "That was it."})),
        tool_call_answer(("finish", {"message": "done"})),
        tools=("terminal", "file_editor", "task_tracker", "think", "finish"),
    )
    talk = await harness.client.start("Greet me in a file.", spec)
    await talk.wait_for_turn()
    return talk


async def forked(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        tool_call_answer(("add", {"a": 1, "b": 1})), text_answer("two"), text_answer("three")
    )
    talk = await harness.client.start("1 + 1?", spec)
    await talk.wait_for_turn()
    fork = (await fork_of(harness.client, talk.id)).conversation
    await fork.submit("And one more?", "m")
    await fork.wait_for_turn("m")
    return fork


async def refused_by_the_model(harness: ConversationHarness) -> Conversation:
    talk = await harness.client.start("go", harness.spec({"failures": [{"status": 401}]}))
    await talk.wait_for_turn()
    await wait_for_status(talk, "error")
    return talk


NAMES = (
    "a-turn-with-tools",
    "side-by-side",
    "paused-resumed-closed",
    "confirmed-and-rejected",
    "interrupted",
    "configured-after-a-limit",
    "nudged-and-stuck",
    "condensed",
    "overflowed",
    "delegated",
    "titled",
    "cancelled",
    "reopened",
)

SHAPES: dict[str, Shape] = {name: record_histories.SHAPES[name] for name in NAMES} | {
    shape.__name__.replace("_", "-"): shape
    for shape in (built_in_tools, forked, refused_by_the_model)
}


async def record(shape: Shape, server: TemporalServer, folder: Path) -> dict[str, Any]:
    """Play it in `folder`, from where the scripts are named: no log tells of this machine."""
    folder.mkdir()
    os.chdir(folder)
    temporal = await connect(server.address)
    client = Client(temporal, FileStore(folder / "store"), task_queue=f"q-{uuid.uuid4()}")
    harness = ConversationHarness(
        client, Resources(client.store, ModelRouter(), folder / "workspaces"), Path()
    )
    async with harness.worker():
        talk = await shape(harness)
        assert isinstance(talk, Conversation), "what is recorded here is a log"
        await asyncio.sleep(0.5)  # what is saved at rest belongs to the log
    return {
        "conversation": talk.id,
        "state": json.loads((await read_state(talk.log)).model_dump_json()),
        "prompt": await prompt_of(talk.log),
        "objects": objects(folder / "store"),
    }


def objects(root: Path) -> dict[str, str]:
    """Every object of the store as text."""
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    named = {path.relative_to(root).as_posix(): path for path in paths}
    return {key: path.read_text() for key, path in named.items() if not key.startswith(".")}


async def prompt_of(log: EventLog) -> list[dict[str, Any]]:
    """Return the messages for the model from the whole log."""
    transcript = Transcript()
    add_events(transcript.view, [entry.event for entry in await log.read(0, await log.end())])
    return transcript.messages()


async def main() -> None:
    folder = RELEASED / version("perdure")
    if folder.exists():
        sys.exit(f"{folder.name} is recorded already, and what was recorded stays as it is.")
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        server = await TemporalServer.start(Path(name) / "server", ui=False)
        os.environ["PATH"] = os.defpath  # a terminal tells where its programs are
        try:
            for shape, play in SHAPES.items():
                recording = await record(play, server, Path(name) / shape)
                (folder / f"{shape}.json").write_text(json.dumps(recording, indent=1) + "\n")
                print(shape, len(recording["objects"]))
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main())

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

from activities.world import World
from agent.transcript import Transcript
from client.client import Client
from client.connect import connect
from client.conversation import Conversation
from client.fork import fork as fork_of
from embedded.temporal import TemporalServer
from models.models import Models
from storage.files import FileStore
from storage.log import EventLog
from storage.state import state_of
from tests import record_histories
from tests.house import House, calls, says
from tests.record_histories import Shape
from tests.workflows.watching import until

RELEASED = Path(__file__).with_name("released")


async def built_in_tools(house: House) -> Conversation:
    spec = house.spec(
        calls(("terminal", {"command": "echo hello > greeting; cat greeting"})),
        calls(("file_editor", {"command": "create", "path": "a.txt", "file_text": "one\n"})),
        calls(("file_editor", {"command": "view", "path": "a.txt"})),
        calls(("task_tracker", {"command": "view"})),
        calls(("think", {"thought": "That was it."})),
        calls(("finish", {"message": "done"})),
        tools=("terminal", "file_editor", "task_tracker", "think", "finish"),
    )
    talk = await house.client.start("Greet me in a file.", spec)
    await talk.finished()
    return talk


async def forked(house: House) -> Conversation:
    spec = house.spec(calls(("add", {"a": 1, "b": 1})), says("two"), says("three"))
    talk = await house.client.start("1 + 1?", spec)
    await talk.finished()
    fork = (await fork_of(house.client, talk.id)).conversation
    await fork.submit("And one more?", "m")
    await fork.finished("m")
    return fork


async def refused_by_the_model(house: House) -> Conversation:
    talk = await house.client.start("go", house.spec({"failures": [{"status": 401}]}))
    await talk.finished()
    await until(talk, "error")
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
    house = House(client, World(client.store, Models(), folder / "workspaces"), Path())
    async with house.worker():
        talk = await shape(house)
        assert isinstance(talk, Conversation), "what is recorded here is a log"
        await asyncio.sleep(0.5)  # what is saved at rest belongs to the log
    return {
        "conversation": talk.id,
        "state": json.loads((await state_of(talk.log)).model_dump_json()),
        "prompt": await prompt_of(talk.log),
        "objects": objects(folder / "store"),
    }


def objects(root: Path) -> dict[str, str]:
    """Every object of the store as text."""
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    named = {path.relative_to(root).as_posix(): path for path in paths}
    return {key: path.read_text() for key, path in named.items() if not key.startswith(".")}


async def prompt_of(log: EventLog) -> list[dict[str, Any]]:
    """What the model is shown of the whole log."""
    transcript = Transcript()
    transcript.extend([one.event for one in await log.read(0, await log.end())])
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
                told = await record(play, server, Path(name) / shape)
                (folder / f"{shape}.json").write_text(json.dumps(told, indent=1) + "\n")
                print(shape, len(told["objects"]))
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main())

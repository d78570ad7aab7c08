"""Twenty secrets go through a conversation in every way, and are found nowhere after it."""

import asyncio
import contextlib
import io
import logging
import sys
import uuid
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from activities.masking import MaskingFilter
from activities.world import World
from agent.completion import Completion
from agent.spec import McpServer, Spec
from client.client import Client
from client.connect import connect
from client.conversation import Conversation
from embedded.temporal import TemporalServer
from events.files import Files
from events.messages import SystemPromptEvent
from models.model import OnText, Request
from models.models import Models
from storage.files import FileStore
from tests import canaries
from tests.canaries import CANARIES, COPY, LEAK, NAMES, VALUES, found_in
from tests.house import House, calls, says
from tests.workflows.watching import events, growing, observed, until, workspace
from tools.secrets.registry import Secrets
from worker import home_of

TOOLS = ("terminal", "file_editor", "grep", "think", "finish", "tests.canaries:TOOLS")

NAMED = " ".join(NAMES)

TYPED = "typed-by-the-user-4711"
"""A secret in what a user says: Temporal gets that before anybody can mask it.

Only encryption keeps it from there: `tests/client/test_encryption.py`.
"""


class Blabbing(Models):
    """Fails once before it answers, in words that hold every value; sees what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.asked.append(repr(request.messages))
        if len(self.asked) == 1:
            cause = ValueError("\n".join(VALUES))
            raise RuntimeError(f"no answer for {VALUES}") from cause
        return await super().complete(request, on_text)


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name, value in {**CANARIES, "TYPED": TYPED}.items():
        (folder / name).write_text(value)
    return Secrets(folder)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[TemporalServer]:
    """A server of the test's own, so that its database can be searched."""
    server = await TemporalServer.start(tmp_path / "temporal", ui=False)
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def searched(server: TemporalServer, secrets: Secrets, tmp_path: Path) -> House:
    store, queue = FileStore(tmp_path / "store"), f"test-{uuid.uuid4()}"
    temporal, disk = await connect(server.address), tmp_path / "workspaces"
    home = home_of(disk, queue)
    world = World(store, Blabbing(), disk, home=home, secrets=secrets)
    return House(Client(temporal, store, task_queue=queue), world, tmp_path)


@pytest.fixture
def lending(house: House, secrets: Secrets) -> House:
    return replace(house, world=replace(house.world, secrets=secrets))


@contextlib.contextmanager
def logged(secrets: Secrets) -> Iterator[io.StringIO]:
    """What a worker writes to its log, each and every line."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.addFilter(MaskingFilter(secrets))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def spilling(house: House) -> Spec:
    everything = "\n".join(VALUES)
    server = McpServer(name="spilling", command=sys.executable, args=(canaries.__file__,))
    leak = f"python3 leak.py {NAMED}"
    return house.spec(
        calls(("terminal", {"command": f"cat > leak.py <<'END'\n{LEAK}\nEND"})),
        calls(("terminal", {"command": f"{leak} | tee {COPY}"})),
        calls(("terminal", {"command": f"printf 'lent: %s' ${{#{NAMES[1]}}}; {leak} >&2"})),
        calls(("file_editor", {"command": "view", "path": COPY})),
        calls(("grep", {"pattern": ".", "path": COPY})),
        calls(("raise_them", {})),
        calls(("keep_them", {})),
        calls(("spilling__echo", {})),
        calls(("spilling__refuse", {})),
        calls(("think", {"thought": everything}), content=everything),
        {"content": f"they are {everything}", "chunk_delay": 0.02},
        calls(("terminal", {"command": f"{leak}; sleep 1000"})),
        says("stopped"),
        says("heard"),
        tools=TOOLS,
        mcp=(server,),
        secrets=(*NAMES, "TYPED"),
    )


async def heartbeats(talk: Conversation, into: set[bytes]) -> None:
    """All that Temporal tells of the steps at work, for as long as this is let."""
    while True:
        with contextlib.suppress(Exception):
            told = await talk.handle.describe()
            into.add(told.raw_description.SerializeToString())
        await asyncio.sleep(0.05)


async def history(talk: Conversation) -> bytes:
    told = await talk.handle.fetch_history()
    return told.to_json().encode() + b"".join(one.SerializeToString() for one in told.events)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def readable(body: bytes) -> bytes:
    """What is stored, and what it is where it is compressed."""
    with contextlib.suppress(zlib.error):
        return body + zlib.decompress(body)
    return body


@pytest.mark.long
async def test_no_secret_is_found_anywhere_but_where_it_belongs(
    searched: House, secrets: Secrets, server: TemporalServer, tmp_path: Path
) -> None:
    told: set[bytes] = set()
    with logged(secrets) as log:
        async with searched.worker():
            talk = await searched.client.start("spill them", spilling(searched))
            watching = asyncio.create_task(heartbeats(talk, told))
            await talk.finished()
            await talk.send("now slowly", message_id="slowly")
            await growing(talk, "tool.call", "<secret:CANARY_19>")
            await talk.handle.signal("interrupt")
            await until(talk, "idle")
            watching.cancel()
            await talk.send(f"that was it: {TYPED}", message_id="it")
            await talk.finished("it")
            past = await history(talk)
    await server.stop()

    place = workspace(searched, talk)
    assert found_in((place / COPY).read_bytes()) == set(NAMES), "the search finds what is there"
    assert f"lent: {len(VALUES[1])}" in (await everything_of(talk))
    stored = {name: readable(body) for name, body in files_in(tmp_path / "store").items()}
    database = {
        name: body for name, body in files_in(tmp_path / "temporal").items() if "sqlite" in name
    }
    sinks = {"log": log.getvalue().encode(), "history": past, "told": b"".join(told)}
    for sink, data in {**sinks, **stored, **database}.items():
        assert found_in(data) == set(), sink
    assert database
    assert b"<secret:CANARY_19>" in sinks["told"]
    assert any(COPY in files.left_out for files in await kept_files(talk))
    assert any(b"leak.py" in body for name, body in stored.items() if "/workspace/" in name)
    whole = b"".join(stored.values())
    assert all(f"<secret:{name}>".encode() in whole for name in (*NAMES, "TYPED"))
    assert TYPED.encode() not in whole
    assert TYPED not in log.getvalue()
    assert all(f"<secret:{name}>" in log.getvalue() for name in NAMES)
    model = searched.world.model
    assert isinstance(model, Blabbing)
    assert found_in("\n".join(model.asked).encode()) == set()
    [prompt] = await events(talk, SystemPromptEvent)
    assert prompt.dynamic_context is not None
    assert NAMES[7] in prompt.dynamic_context.text


async def test_an_agent_is_told_of_secrets_that_it_gets_later(lending: House) -> None:
    spec = lending.spec(
        says("none yet"), calls(("terminal", {"command": "echo ${#CANARY_00}"})), says("done")
    )
    spec = spec.model_copy(update={"tools": ("terminal",)})
    async with lending.worker():
        talk = await lending.client.start("wait", spec)
        await talk.finished()
        await talk.configure({"secrets": ["CANARY_00"]})
        await talk.send("now", message_id="now")
        await talk.finished("now")
    before, after = await events(talk, SystemPromptEvent)
    assert before.dynamic_context is None
    assert "CANARY_00" in after.dynamic_context.text
    assert before.tools == after.tools
    [shown] = await observed(talk)
    assert shown.startswith(f"{len(VALUES[0])}\n")


async def kept_files(talk: Conversation) -> list[Files]:
    return [entry.files for entry in await talk.log.read(0, await talk.log.end()) if entry.files]


async def everything_of(talk: Conversation) -> str:
    entries = await talk.log.read(0, await talk.log.end())
    return b"".join(entry.body for entry in entries).decode()

"""Twenty secrets pass through a conversation in every way, and leak nowhere."""

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

from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.agent.extensions import McpServer
from perdure.agent.spec import Agent
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.events.entry import Files
from perdure.events.messages import SystemPromptEvent
from perdure.models.model import OnText, Request
from perdure.models.router import ModelRouter
from perdure.operations.worker.process import workspace_queue
from perdure.secrets.masking import MaskingFilter
from perdure.secrets.registry import Secrets
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect
from tests import secret_leaks
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.secret_leaks import CANARIES, COPY, LEAK, NAMES, VALUES, find_leaks
from tests.workflows.watching import (
    events,
    observations,
    wait_for_growth,
    wait_for_status,
    workspace,
)

TOOLS = ("terminal", "file_editor", "grep", "think", "finish", "tests.secret_leaks:TOOLS")

ALL_NAMES = " ".join(NAMES)

TYPED_SECRET = "typed-by-the-user-4711"
"""A secret in what a user says: Temporal gets that before anybody can mask it.

Only encryption keeps it from there: `tests/client/test_encryption.py`.
"""


class LeakingModels(ModelRouter):
    """Fails once before it answers, in words that hold every value; sees what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[str] = []

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.prompts.append(repr(request.messages))
        if len(self.prompts) == 1:
            cause = ValueError("\n".join(VALUES))
            raise RuntimeError(f"no answer for {VALUES}") from cause
        return await super().complete(request, on_text)


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name, value in {**CANARIES, "TYPED": TYPED_SECRET}.items():
        (folder / name).write_text(value)
    return Secrets(folder)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[TemporalServer]:
    """A server of the test's own, so that its database can be searched."""
    server = await TemporalServer.start(tmp_path / "temporal", ui=False)
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def searched(server: TemporalServer, secrets: Secrets, tmp_path: Path) -> ConversationHarness:
    store, queue = FileStore(tmp_path / "store"), f"test-{uuid.uuid4()}"
    temporal, disk = await connect(server.address), tmp_path / "workspaces"
    home = workspace_queue(disk, queue)
    world = Resources(store, LeakingModels(), disk, home=home, secrets=secrets)
    return ConversationHarness(Client(temporal, store, task_queue=queue), world, tmp_path)


@pytest.fixture
def lending(harness: ConversationHarness, secrets: Secrets) -> ConversationHarness:
    return replace(harness, resources=replace(harness.resources, secrets=secrets))


@contextlib.contextmanager
def logged(secrets: Secrets) -> Iterator[io.StringIO]:
    """Return every line that a worker writes to its log."""
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


def spilling(harness: ConversationHarness) -> Agent:
    everything = "\n".join(VALUES)
    server = McpServer(name="spilling", command=sys.executable, args=(secret_leaks.__file__,))
    leak = f"python3 leak.py {ALL_NAMES}"
    return harness.spec(
        tool_call_answer(("terminal", {"command": f"cat > leak.py <<'END'\n{LEAK}\nEND"})),
        tool_call_answer(("terminal", {"command": f"{leak} | tee {COPY}"})),
        tool_call_answer(
            ("terminal", {"command": f"printf 'lent: %s' ${{#{NAMES[1]}}}; {leak} >&2"})
        ),
        tool_call_answer(("file_editor", {"command": "view", "path": COPY})),
        tool_call_answer(("grep", {"pattern": ".", "path": COPY})),
        tool_call_answer(("raise_them", {})),
        tool_call_answer(("keep_them", {})),
        tool_call_answer(("spilling__echo", {})),
        tool_call_answer(("spilling__refuse", {})),
        tool_call_answer(("think", {"thought": everything}), content=everything),
        {"content": f"they are {everything}", "chunk_delay": 0.02},
        tool_call_answer(("terminal", {"command": f"{leak}; sleep 1000"})),
        text_answer("stopped"),
        text_answer("heard"),
        tools=TOOLS,
        mcp=(server,),
        secrets=(*NAMES, "TYPED"),
    )


async def heartbeats(talk: Conversation, into: set[bytes]) -> None:
    """Collect the heartbeats of the running steps until this is cancelled."""
    while True:
        with contextlib.suppress(Exception):
            description = await talk.handle.describe()
            into.add(description.raw_description.SerializeToString())
        await asyncio.sleep(0.05)


async def history(talk: Conversation) -> bytes:
    workflow_history = await talk.handle.fetch_history()
    return workflow_history.to_json().encode() + b"".join(
        event.SerializeToString() for event in workflow_history.events
    )


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def readable(body: bytes) -> bytes:
    """Return the stored bytes, decompressed where they are compressed."""
    with contextlib.suppress(zlib.error):
        return body + zlib.decompress(body)
    return body


@pytest.mark.long
async def test_no_secret_is_found_anywhere_but_where_it_belongs(
    searched: ConversationHarness, secrets: Secrets, server: TemporalServer, tmp_path: Path
) -> None:
    descriptions: set[bytes] = set()
    with logged(secrets) as log:
        async with searched.worker():
            talk = await searched.client.start("spill them", spilling(searched))
            watching = asyncio.create_task(heartbeats(talk, descriptions))
            await talk.wait_for_turn()
            await talk.send("now slowly", message_id="slowly")
            await wait_for_growth(talk, "tool.call", "<secret:CANARY_19>")
            await talk.handle.signal("interrupt")
            await wait_for_status(talk, "idle")
            watching.cancel()
            await talk.send(f"that was it: {TYPED_SECRET}", message_id="it")
            await talk.wait_for_turn("it")
            past = await history(talk)
    await server.stop()

    place = workspace(searched, talk)
    assert find_leaks((place / COPY).read_bytes()) == set(NAMES), "the search finds what is there"
    assert f"lent: {len(VALUES[1])}" in (await all_bytes_of(talk))
    stored = {name: readable(body) for name, body in files_in(tmp_path / "store").items()}
    database = {
        name: body for name, body in files_in(tmp_path / "temporal").items() if "sqlite" in name
    }
    sinks = {"log": log.getvalue().encode(), "history": past, "told": b"".join(descriptions)}
    for sink, data in {**sinks, **stored, **database}.items():
        assert find_leaks(data) == set(), sink
    assert database
    assert b"<secret:CANARY_19>" in sinks["told"]
    assert any(COPY in files.left_out for files in await kept_files(talk))
    assert any(b"leak.py" in body for name, body in stored.items() if "/workspace/" in name)
    whole = b"".join(stored.values())
    assert all(f"<secret:{name}>".encode() in whole for name in (*NAMES, "TYPED"))
    assert TYPED_SECRET.encode() not in whole
    assert TYPED_SECRET not in log.getvalue()
    assert all(f"<secret:{name}>" in log.getvalue() for name in NAMES)
    model = searched.resources.model
    assert isinstance(model, LeakingModels)
    assert find_leaks("\n".join(model.prompts).encode()) == set()
    [prompt] = await events(talk, SystemPromptEvent)
    assert prompt.dynamic_context is not None
    assert NAMES[7] in prompt.dynamic_context.text


async def test_an_agent_learns_of_secrets_that_are_lent_later(lending: ConversationHarness) -> None:
    spec = lending.spec(
        text_answer("none yet"),
        tool_call_answer(("terminal", {"command": "echo ${#CANARY_00}"})),
        text_answer("done"),
    )
    spec = spec.model_copy(update={"tools": ("terminal",)})
    async with lending.worker():
        talk = await lending.client.start("wait", spec)
        await talk.wait_for_turn()
        await talk.configure({"secrets": ["CANARY_00"]})
        await talk.send("now", message_id="now")
        await talk.wait_for_turn("now")
    before, after = await events(talk, SystemPromptEvent)
    assert before.dynamic_context is None
    assert "CANARY_00" in after.dynamic_context.text
    assert before.tools == after.tools
    [output] = await observations(talk)
    assert output.startswith(f"{len(VALUES[0])}\n")


async def kept_files(talk: Conversation) -> list[Files]:
    return [entry.files for entry in await talk.log.read(0, await talk.log.end()) if entry.files]


async def all_bytes_of(talk: Conversation) -> str:
    entries = await talk.log.read(0, await talk.log.end())
    return b"".join(entry.body for entry in entries).decode()

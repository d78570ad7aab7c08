"""A Temporal server, an S3 store and a worker process, for every command of this folder."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access
from perdure.testing.script import Script, ScriptedAnswer
from perdure.testing.server import serve_scripts
from tests.cli.command import Perdure, clean_environment, find_address, wait_for_line
from tests.cli.past_batch import InProcessCommand, record_batch, store_environment

BUCKET = "cli-tests"

DISCUSSION = """
topic = "Tea or coffee?"

[agent]
tools = []

[[agents]]
id = "ada"
persona = "You like tea."
model = "scripted:ada.json"

[[agents]]
id = "bob"
model = "scripted:bob.json"

[[phases]]
name = "talk"

[[phases]]
name = "decision"
end = "vote"
options = ["tea", "coffee"]
"""

ADAS_ANSWERS = [
    '{"speak": true, "urgency": 7, "line": "tea"}',
    "Tea is calm.",
    "pass",
    '{"ballot": "tea"}',
]
BOBS_ANSWERS = ["pass", "pass", '{"ballot": "Tea"}']


@pytest_asyncio.fixture(scope="session")
async def configured(
    temporal_server: TemporalServer,
    seaweed: Seaweed,
    tmp_path_factory: pytest.TempPathFactory,
) -> Perdure:
    """A command with a Temporal server and a store, but no worker."""
    await seaweed.make_bucket(BUCKET)
    env = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"s3://{BUCKET}",
        "PERDURE_TASK_QUEUE": f"cli-{uuid4()}",
        "PERDURE_DATA": str(tmp_path_factory.mktemp("data")),
        "AWS_ENDPOINT_URL_S3": seaweed.endpoint,
        "AWS_ACCESS_KEY_ID": seaweed.access_key,
        "AWS_SECRET_ACCESS_KEY": seaweed.secret_key,
        "AWS_REGION": "us-east-1",
    }
    return Perdure({**clean_environment(), **env})


@pytest_asyncio.fixture(scope="session")
async def provider() -> AsyncIterator[str]:
    """The URL of a model provider that refuses every key of these tests."""
    script = Script(name="guarded", answers=(ScriptedAnswer(content="You have the key."),))
    async with serve_scripts({script.name: script}, api_key=str(uuid4())) as base_url:
        yield base_url


@pytest_asyncio.fixture(scope="session")
async def perdure(configured: Perdure, provider: str) -> AsyncIterator[Perdure]:
    """The same, with a worker: `perdure worker` itself."""
    keyed = configured.with_env(OPENAI_API_BASE=provider, OPENAI_API_KEY="sk-not-the-right-key")
    async with keyed.start("worker") as worker:
        await wait_for_line(worker.stderr, "polls")
        draining = asyncio.create_task(drain_stderr(worker.stderr))
        yield configured
        worker.terminate()
        assert await worker.wait() == 0
        await draining


@pytest_asyncio.fixture(scope="session")
async def behind_gateway(
    perdure: Perdure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Perdure]:
    """The command with the address of a gateway and a key alone: `perdure gateway` serves it."""
    trusting = perdure.with_env(PERDURE_GATEWAY_TRUSTED="true")
    async with trusting.start("gateway", "--port", "0") as gateway:
        line = await wait_for_line(gateway.stderr, "serves http")
        draining = asyncio.create_task(drain_stderr(gateway.stderr))
        key = (await perdure("key", "create", "cli tests")).out.strip()
        names = {"PERDURE_GATEWAY": find_address(line), "PERDURE_GATEWAY_KEY": key}
        data = str(tmp_path_factory.mktemp("elsewhere"))
        yield Perdure({**clean_environment(), **names, "PERDURE_DATA": data})
        gateway.terminate()
        await gateway.wait()
        await draining


async def drain_stderr(reader: asyncio.StreamReader | None) -> None:
    """Keep reading, so that the writer never blocks."""
    assert reader is not None
    while line := await reader.readline():
        sys.stderr.write(line.decode())  # pytest shows it where a test fails


@pytest.fixture
def store(seaweed: Seaweed) -> S3Store:
    """The store of the commands."""
    access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
    return S3Store(BUCKET, access=access)


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """A function that writes a script of some answers and returns its path."""

    def write(*answers: dict[str, Any]) -> str:
        path = tmp_path / f"{uuid4()}.json"
        path.write_text(json.dumps({"answers": answers}))
        return str(path)

    return write


@pytest.fixture(scope="module")
def batch_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a batch that has run."""
    folder = tmp_path_factory.mktemp("past")
    record_batch(folder)
    return folder


@pytest.fixture
def run_command(
    batch_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> InProcessCommand:
    """The command within this process, with only that batch in its store."""
    return InProcessCommand(store_environment(batch_folder), monkeypatch, capsys)


@pytest.fixture
def run_configured(
    configured: Perdure, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> InProcessCommand:
    """The command `configured` within this process, which need not start another."""
    return InProcessCommand(configured.env, monkeypatch, capsys)


@pytest.fixture
def discussion_spec(tmp_path: Path) -> str:
    """The file of a discussion about tea, with its scripts."""
    (tmp_path / "ada.json").write_text(json.dumps({"answers": ADAS_ANSWERS}))
    (tmp_path / "bob.json").write_text(json.dumps({"answers": BOBS_ANSWERS}))
    (tmp_path / "tea.toml").write_text(DISCUSSION)
    return str(tmp_path / "tea.toml")

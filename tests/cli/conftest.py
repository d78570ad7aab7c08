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

from embedded.seaweed import Seaweed
from embedded.temporal import TemporalServer
from models.script import Answer, Script
from models.serve import serve
from storage.s3 import S3Access, S3Store
from tests.cli.command import Perdure, clean_environment, line_with
from tests.cli.past_batch import Within, ran

BUCKET = "cli-tests"


@pytest_asyncio.fixture(scope="session")
async def configured(
    temporal_server: TemporalServer,
    seaweed: Seaweed,
    tmp_path_factory: pytest.TempPathFactory,
) -> Perdure:
    """A command that is told of a Temporal server and a store, with no worker."""
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
    """The URL of a provider of models that wants a key which nobody here has."""
    script = Script(name="guarded", answers=(Answer(content="You have the key."),))
    async with serve({script.name: script}, api_key=str(uuid4())) as base_url:
        yield base_url


@pytest_asyncio.fixture(scope="session")
async def perdure(configured: Perdure, provider: str) -> AsyncIterator[Perdure]:
    """The same, with a worker: `perdure worker` itself."""
    keyed = configured.where(OPENAI_API_BASE=provider, OPENAI_API_KEY="sk-not-the-right-key")
    async with keyed.started("worker") as worker:
        await line_with(worker.stderr, "polls")
        draining = asyncio.create_task(drain(worker.stderr))
        yield configured
        worker.terminate()
        assert await worker.wait() == 0
        await draining


async def drain(reader: asyncio.StreamReader | None) -> None:
    """Read on, so that the writer never waits."""
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
    """Writes a script of these answers; gives the path of its file."""

    def write(*answers: dict[str, Any]) -> str:
        path = tmp_path / f"{uuid4()}.json"
        path.write_text(json.dumps({"answers": answers}))
        return str(path)

    return write


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a batch that has run."""
    folder = tmp_path_factory.mktemp("past")
    ran(folder)
    return folder


@pytest.fixture
def within(
    past: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Within:
    """The command within this process, with nothing but that batch."""
    return Within(past, monkeypatch, capsys)

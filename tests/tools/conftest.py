"""A tool context with a workspace and a log on disk."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from perdure.tools.tool import Context
from tests.tools.processes import find_processes, wait_until


@dataclass
class ToolBench:
    """A context, and what was told through it."""

    context: Context
    progress: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.context.workspace

    async def stored(self, key: str | None) -> bytes:
        assert key is not None
        body = await self.context.log.read_blob(key)
        assert body is not None
        return body


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[ToolBench]:
    store = FileStore(tmp_path / "store")
    log = EventLog(store, "someone", str(uuid.uuid4()))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    progress: list[str] = []
    context = Context(
        conversation_id=log.conversation_id,
        action_id=str(uuid.uuid4()),
        seq=3,
        workspace=workspace,
        log=log,
        progress=progress.append,
        keep=log.store_blob,
    )
    yield ToolBench(context, progress)
    await store.close()


@pytest_asyncio.fixture
async def token() -> AsyncIterator[str]:
    """A word for a test's command lines; nobody who has it may be left at the end of the test."""
    word = f"token{uuid.uuid4().hex}"
    yield word
    await wait_until(lambda: not find_processes(word))


@pytest.fixture
def workspace(place: ToolBench) -> Path:
    return place.workspace

"""Memories in a store of files."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from perdure.storage.files import FileStore


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileStore]:
    opened = FileStore(tmp_path / "store")
    yield opened
    await opened.close()

"""Every store, empty. A new one is a line in `stores`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from perdure.embedded.seaweed import Seaweed
from perdure.storage.files import FileStore
from perdure.storage.local_s3 import LocalS3Store
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access, Store
from tests.storage.memory import MemoryStore

ROOM = Path(__file__).parent


@pytest.fixture(scope="session")
def access(seaweed: Seaweed) -> S3Access:
    return S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")


@pytest_asyncio.fixture
async def bucket(seaweed: Seaweed) -> str:
    """Return the name of a new bucket."""
    name = f"test-{uuid4()}"
    await seaweed.make_bucket(name)
    return name


@pytest.fixture(params=["files", "s3", "local s3", "memory"])
def empty_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    def of(name: str) -> str:
        fixture_value: str = request.getfixturevalue(name)
        return fixture_value

    def on_s3(kind: type[S3Store | LocalS3Store]) -> Store:
        return kind(of("bucket"), "some/prefix", request.getfixturevalue("access"))

    stores: dict[str, Callable[[], Store]] = {
        "files": lambda: FileStore(tmp_path / "store"),
        "s3": lambda: S3Store(of("bucket"), "some/prefix", request.getfixturevalue("access")),
        "local s3": lambda: LocalS3Store(
            of("bucket"), "a/prefix", request.getfixturevalue("access")
        ),
        "memory": MemoryStore,
    }
    return stores[request.param]()


@pytest_asyncio.fixture
async def store(empty_store: Store) -> AsyncIterator[Store]:
    yield empty_store
    await empty_store.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the store of the commands to `make long`, but for what every store promises."""
    for item in items:
        name = item.path.name if item.path.is_relative_to(ROOM) else "test_stores.py"
        if "local s3" in item.name and name != "test_stores.py":
            item.add_marker(pytest.mark.long)

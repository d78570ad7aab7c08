"""The servers of a benchmark: Temporal, an S3 store and a scripted model over HTTP."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.model import model_server, write_scripts
from bench.processes import ROOT, local_stack
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.storage.files import FileStore
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access, Store

BUCKET = "bench"

REGION = "us-east-1"


@dataclass(frozen=True)
class Servers:
    """Servers that every run of a benchmark shares; `folder` has their files."""

    folder: Path
    temporal: TemporalServer
    seaweed: Seaweed
    scripts: Path
    api_base: str

    def store_pid(self, on_s3: bool) -> int | None:
        return self.seaweed.pid if on_s3 else None

    def store(self, on_s3: bool) -> Store:
        if not on_s3:
            return FileStore(self.folder / "store")
        keys = self.seaweed.access_key, self.seaweed.secret_key
        return S3Store(BUCKET, "", S3Access(self.seaweed.endpoint, *keys, REGION))

    def environment(self, on_s3: bool) -> dict[str, str]:
        """Return the variables by which clients and workers find these servers."""
        files = local_stack(self.folder, self.temporal.address)
        if not on_s3:
            return files
        return files | {
            "PERDURE_STORE": f"s3://{BUCKET}",
            "AWS_ENDPOINT_URL_S3": self.seaweed.endpoint,
            "AWS_ACCESS_KEY_ID": self.seaweed.access_key,
            "AWS_SECRET_ACCESS_KEY": self.seaweed.secret_key,
            "AWS_DEFAULT_REGION": REGION,
        }


@contextlib.asynccontextmanager
async def start_servers(
    scripts: Mapping[str, Any], low_priority: bool = False
) -> AsyncIterator[Servers]:
    """Start servers of our own; nothing of them is left afterwards.

    With `low_priority` Temporal has that which it has in `perdure dev`.
    """
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        folder = Path(name)
        # Processes that run in this folder find our benches, and no other module of this checkout.
        (folder / "bench").symlink_to(ROOT / "bench")
        file = write_scripts(folder / "script.json", scripts)
        temporal = await TemporalServer.start(
            folder / "temporal", ui=False, low_priority=low_priority
        )
        try:
            seaweed = await Seaweed.start(folder / "seaweed")
            try:
                await seaweed.make_bucket(BUCKET)
                async with model_server(file) as api_base:
                    yield Servers(folder, temporal, seaweed, file, api_base)
            finally:
                await seaweed.stop()
        finally:
            await temporal.stop()

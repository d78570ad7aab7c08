"""Counting the requests to Temporal and to the store."""

from collections import Counter
from dataclasses import dataclass, field

import temporalio.client
from temporalio.runtime import (
    LoggingConfig,
    MetricBuffer,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from perdure.storage.store import Store, Version
from perdure.temporal.converter import build_converter

REQUEST_METRICS = ("temporal_request", "temporal_long_request")
"""The names of the counters of requests, as the SDK has them; long ones are long polls."""

BUFFER_SIZE = 100_000


class CountingTemporal:
    """A client of Temporal whose requests are counted by the SDK itself."""

    def __init__(self) -> None:
        self._buffer = MetricBuffer(BUFFER_SIZE)
        quiet = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
        telemetry = TelemetryConfig(logging=quiet, metrics=self._buffer)
        self._runtime = Runtime(telemetry=telemetry)

    async def connect(self, address: str) -> temporalio.client.Client:
        return await temporalio.client.Client.connect(
            address, data_converter=build_converter(None), runtime=self._runtime
        )

    def take_counts(self) -> Counter[str]:
        """Return the requests since the last call, by operation."""
        counts: Counter[str] = Counter()
        for update in self._buffer.retrieve_updates():
            if update.metric.name in REQUEST_METRICS:
                counts[str(update.attributes.get("operation"))] += int(update.value)
        return counts


@dataclass
class CountingStore:
    """A store that counts the requests to another."""

    store: Store
    counts: Counter[str] = field(default_factory=Counter)

    async def create(self, key: str, body: bytes) -> bool:
        self.counts["create"] += 1
        return await self.store.create(key, body)

    async def read(self, key: str) -> bytes | None:
        self.counts["read"] += 1
        return await self.store.read(key)

    async def replace(self, key: str, body: bytes) -> None:
        self.counts["replace"] += 1
        await self.store.replace(key, body)

    async def read_version(self, key: str) -> Version | None:
        self.counts["read"] += 1
        return await self.store.read_version(key)

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        self.counts["replace"] += 1
        return await self.store.replace_version(key, body, tag)

    async def delete(self, key: str) -> None:
        self.counts["delete"] += 1
        await self.store.delete(key)

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        self.counts["folders"] += 1
        return await self.store.folders(prefix, after, limit)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        self.counts["list"] += 1
        return await self.store.list(prefix, after, limit)

    async def close(self) -> None:
        await self.store.close()

    def take_counts(self) -> Counter[str]:
        """Return the requests since the last call, by kind."""
        counts, self.counts = self.counts, Counter()
        return counts

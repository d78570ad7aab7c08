"""A batch behind a gateway: its progress, its control and its results."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from perdure.api import batches as api
from perdure.client.http.address import quote_segment
from perdure.client.http.connection import Connection
from perdure.client.http.log import HttpLog
from perdure.client.http.resource import HttpResource
from perdure.client.trouble import Trouble
from perdure.errors import Unreachable
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.progress import Progress
from perdure.evaluation.result import SampleResult
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec
from perdure.storage.batches import BatchRecord
from perdure.storage.grants import Access, Grant

POLL_INTERVAL = 2.0
"""Seconds between two questions whether a batch has finished."""

RESULTS_PAGE = 100


@dataclass(frozen=True)
class HttpBatch:
    """A batch behind a gateway, with the methods of `BatchHandle`, whether it runs or not."""

    connection: Connection
    user_id: str
    name: str
    attached: bool = False
    """The batch was running already when `run` was called."""
    owner: str | None = None
    """The user whose batch it is, if that is another one."""

    @property
    def path(self) -> str:
        return f"/v1/batches/{quote_segment(self.name)}"

    @property
    def folder(self) -> "HttpBatchFolder":
        """The samples and the results."""
        return HttpBatchFolder(self.connection, self.user_id, self.name, self.path, self.owner)

    @property
    def _resource(self) -> HttpResource:
        return HttpResource(self.connection, self.path, self.owner)

    async def load_record(self) -> BatchRecord:
        """Load the record of the batch. Raises NotFound."""
        shown = await self._show(trouble=False)
        fields: dict[str, Any] = await self._resource.get("/spec", dict)
        return BatchRecord(
            spec=BatchSpec.model_validate(fields),
            samples=shown.sample_set,
            count=shown.samples,
            chunks=shown.chunks,
        )

    async def status(self) -> Progress:
        """Load the progress from the workflow, or as the store has it. Raises NotFound."""
        return (await self._show(trouble=False)).progress

    async def query_progress(self) -> Progress | None:
        """Load the progress; None if the gateway does not answer."""
        try:
            return await self.status()
        except Unreachable:
            return None

    async def diagnose(self) -> Trouble | None:
        """Find what blocks the batch or some of its samples; None if all progress."""
        sentence = (await self._show(trouble=True)).trouble
        return Trouble(sentence, sentence) if sentence else None

    async def pause(self) -> None:
        """Start no further samples; running ones finish. Raises as `resume`."""
        await self._resource.post("/pause", type(None), repeatable=True)

    async def resume(self) -> None:
        """Start samples again. Raises Conflict if it does not run, NotFound, Unreachable."""
        await self._resource.post("/resume", type(None), repeatable=True)

    async def update_limits(self, changes: LimitsUpdate, max_wait: float = 20.0) -> Progress:
        """Change concurrency and limits while it runs.

        Raises Conflict if it does not run, Invalid, NotFound, Unreachable, and TimedOut: the change
        may still take effect then.
        """
        return await self._resource.post("/retune", Progress, changes, max_wait=max_wait)

    async def wait_until_finished(self) -> Progress:
        """Wait until the batch has finished, through outages of the gateway.

        If its workflow failed or was stopped, the progress is what the store has.
        """
        while True:
            progress = await self.query_progress()
            if progress is not None and progress.status in ("finished", "stopped"):
                return progress
            await asyncio.sleep(POLL_INTERVAL)

    async def grant(self, user_id: str, access: Access = "read") -> None:
        """Let another user read the batch and its conversations, or also steer the batch.

        Raises NotFound, Forbidden for another user's batch, and Invalid for a bad user id.
        """
        await self._resource.grant(user_id, access)

    async def revoke(self, user_id: str) -> None:
        """Take the grant of a user back, at once. Raises as `grant`."""
        await self._resource.revoke(user_id)

    async def grants(self) -> list[Grant]:
        """List the grants to other users. Raises NotFound, and Forbidden for another's."""
        return await self._resource.list_grants()

    async def _show(self, trouble: bool) -> api.Batch:
        return await self._resource.get("", api.Batch, trouble=trouble)


@dataclass(frozen=True)
class HttpBatchFolder:
    """The samples of a batch and their results, as a gateway serves them."""

    connection: Connection
    user_id: str
    name: str
    path: str
    owner: str | None

    @property
    def _resource(self) -> HttpResource:
        return HttpResource(self.connection, self.path, self.owner)

    async def read_chunk(self, samples: str, number: int) -> list[Sample]:
        """Read a part of the samples of a set."""
        part = {"sample_set": samples, "chunk": number}
        page = await self._resource.get("/samples", api.Samples, **part)
        return list(page.items)

    async def read_results(self) -> AsyncIterator[SampleResult]:
        """Yield every sample that has a result, with all attempts, in the order of the samples."""
        cursor: str | None = None
        while True:
            page = await self._resource.get(
                "/results", api.BatchResults, limit=RESULTS_PAGE, cursor=cursor
            )
            for result in page.items:
                if result.attempts:
                    yield result
            if (cursor := page.next_cursor) is None:
                return

    async def list_attempts(self, sample: str) -> list[tuple[int, int]]:
        """List epoch and number of every attempt at a sample that has a result, in order."""
        attempts = (await self._load(sample)).attempts
        return sorted((attempt.epoch, attempt.number) for attempt in attempts)

    async def read_result(self, sample: str, epoch: int, number: int) -> SampleResult | None:
        """Read the sample with this one attempt; None if it has no result."""
        result = await self._load(sample)
        for attempt in result.attempts:
            if (attempt.epoch, attempt.number) == (epoch, number):
                return result.model_copy(update={"attempts": (attempt,)})
        return None

    def open_log(self, conversation_id: str) -> HttpLog:
        """Open the log of the conversation of an attempt."""
        return HttpLog(self.connection, self.user_id, conversation_id, self.owner)

    async def _load(self, sample: str) -> SampleResult:
        return await self._resource.get("/result", SampleResult, sample=sample)

"""The batches of a user of a gateway."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from math import inf
from typing import Any

from perdure.api import batches as api
from perdure.client.batch.changes import check_scorers
from perdure.client.batch.http_batch import HttpBatch
from perdure.client.batch.protocol import Options
from perdure.client.http.client import HttpClient
from perdure.client.http.problems import build_body
from perdure.datasets.dataset import read_dataset
from perdure.datasets.rows import BadDataset
from perdure.errors import Invalid, NotFound
from perdure.evaluation.messages import BatchMode
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec, InvalidBatch, parse_batch
from perdure.storage.keys import batch_prefix
from perdure.storage.shared import Shared

MAX_PAGE = 100
"""Batches that are asked for at once."""

MAX_NAMES_LISTED = 20
"""The number of batch names in the hint of NotFound."""

LOCAL_FIELDS = {"dataset", "models", "seed", "shuffle", "limit", "ids"}
"""The fields of a batch that choose and order rows: that is done where the dataset is."""


class HttpBatches:
    """The batches of one user of a gateway, with the methods of `Batches`."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    @classmethod
    def from_client(cls, client: HttpClient) -> "HttpBatches":
        return cls(client)

    async def list_names(self) -> list[str]:
        """List the names of all batches, in order."""
        return [item.name async for item in self._pages("/v1/batches")]

    async def list_shared(self, limit: int = 20) -> list[Shared]:
        """List batches that others share with the user, by name."""
        return [
            Shared.model_validate({"owner": it.owner, "id": it.name, "access": it.access})
            async for it in self._pages("/v1/shared/batches", limit)
        ]

    async def _pages(self, path: str, limit: float = inf) -> AsyncIterator[api.Batch]:
        """Yield the batches of a list, at most `limit`."""
        cursor: str | None = None
        while limit > 0:
            size = int(min(limit, MAX_PAGE))
            page = await self._client.connection.get(path, api.Batches, limit=size, cursor=cursor)
            for item in page.items:
                yield item
            limit -= len(page.items)
            if (cursor := page.next_cursor) is None:
                return

    def batch(self, name: str, owner: str | None = None) -> HttpBatch:
        """Return the handle of a batch, existing or not. Raises Invalid for a bad name.

        `owner` is another user, who has granted access to the batch; without a grant it is as if
        it did not exist.
        """
        own_id = self._client.user_id
        user_id = own_id if owner is None else owner
        try:
            batch_prefix(user_id, name)
        except ValueError as error:
            raise Invalid(str(error)) from error
        shared_by = None if user_id == own_id else user_id
        return HttpBatch(self._client.connection, user_id, name, owner=shared_by)

    async def get(self, name: str, owner: str | None = None) -> HttpBatch:
        """Return the handle of an existing batch. Raises NotFound with the other names, Invalid."""
        batch = self.batch(name, owner)
        try:
            await batch.status()
        except NotFound as error:
            if owner is not None:
                raise
            names = await self.list_names()
            more = ", and others" if len(names) > MAX_NAMES_LISTED else ""
            hint = f"There are {', '.join(names[:MAX_NAMES_LISTED])}{more}."
            message = f"There is no batch {name!r}."
            raise NotFound(message, hint if names else "There is none yet.") from error
        return batch

    async def run(
        self,
        batch: BatchSpec | Mapping[str, Any],
        mode: BatchMode = "missing",
        options: Options | None = None,
        rows: Sequence[Mapping[str, Any]] | None = None,
    ) -> HttpBatch:
        """Start a batch of one model, or attach to it if it runs already.

        Its dataset is read here, and the rows are sent, or `rows` in its place. Scorers and tools
        that are code run where the gateway's workers are. Raises Invalid, Conflict if an earlier
        run had another agent or other samples, Unreachable.
        """
        if isinstance(batch, Mapping):
            try:
                batch = parse_batch(batch)
            except InvalidBatch as error:
                raise Invalid(str(error)) from error
        handle = self.batch(batch.name)
        check_scorers(batch)
        try:
            samples = await asyncio.to_thread(_read_rows, batch, rows)
        except BadDataset as error:
            raise Invalid(str(error)) from error
        table = batch.model_dump(mode="json", exclude_none=True, exclude=LOCAL_FIELDS)
        content = {"batch": table, "samples": samples, "options": options or {}}
        body = build_body(api.StartBatch, mode=mode, **content)
        # A second request of the same content attaches to the batch.
        started = await self._client.connection.post(
            "/v1/batches", api.Batch, body, repeatable=True, max_wait=60.0
        )
        return HttpBatch(handle.connection, handle.user_id, handle.name, started.attached)

    async def rerun(self, name: str, mode: BatchMode = "failed") -> HttpBatch:
        """Run the rest of a batch as the store has it.

        Raises NotFound, Conflict, Unreachable, and Invalid for a bad name.
        """
        handle = await self.get(name)
        started = await self._client.connection.post(
            f"{handle.path}/retry", api.Batch, api.RetryBatch(mode=mode), max_wait=60.0
        )
        return HttpBatch(handle.connection, handle.user_id, handle.name, started.attached)


def _read_rows(
    batch: BatchSpec, rows: Sequence[Mapping[str, Any]] | None
) -> tuple[dict[str, Any], ...]:
    """Read the selected samples as rows. Raises BadDataset, and Invalid for none at all."""
    with read_dataset(batch, rows) as samples:
        return tuple(map(_to_row, samples))


def _to_row(sample: Sample) -> dict[str, Any]:
    return sample.model_dump(mode="json", exclude_none=True)

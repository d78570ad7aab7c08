"""The batches of a user, for programs."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, TypeAlias, cast

from pydantic import JsonValue
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from perdure.agent.loop.attempt import Allowance
from perdure.client.address import WorkflowAddress
from perdure.client.batch.changes import (
    MODE_OPTION,
    RESCORED_OPTION,
    check_scorers,
    find_differences,
    list_sample_sets,
    load_sample_hashes,
    refuse_other_agent,
    refuse_other_mode,
    samples_match,
)
from perdure.client.batch.handle import BatchHandle
from perdure.client.client import Client
from perdure.client.http.client import HttpClient
from perdure.datasets.dataset import read_dataset
from perdure.datasets.rows import BadDataset
from perdure.errors import Conflict, Invalid, NotFound, Unreachable
from perdure.evaluation.ledger import Amount, Ledger
from perdure.evaluation.messages import (
    MAX_RUNNING_ATTEMPTS,
    MAX_WORKFLOW_EPOCHS,
    BatchMode,
    BatchStart,
)
from perdure.evaluation.progress import Progress
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec, InvalidBatch, agent_with_limits, parse_batch
from perdure.storage.batches import BatchFolder, BatchRecord, list_batches
from perdure.storage.granted_store import open_granted
from perdure.storage.grants import Shareable
from perdure.storage.shared import Shared, list_shared
from perdure.storage.store import Store
from perdure.temporal.names import MAX_BATCH_WORKFLOW_ID
from perdure.temporal.search_attributes import BATCH, MODEL, USER
from perdure.temporal.timeouts import BATCH_TASK_TIMEOUT
from perdure.workflows.batch.attempts import priority_of

Options: TypeAlias = dict[str, JsonValue]

MAX_NAMES_LISTED = 20
"""The number of batch names in the hint of NotFound."""


@dataclass(frozen=True)
class Batches:
    """The batches of one user; without a `client` they are read-only."""

    store: Store
    user_id: str = "local"
    task_queue: str = "perdure"
    client: Client | None = None

    @classmethod
    def from_client(cls, client: Client) -> "Batches":
        """Return the batches of a client; those of a gateway's client are `HttpBatches`."""
        if isinstance(client, HttpClient):
            from perdure.client.batch.http_batches import HttpBatches

            return cast("Batches", HttpBatches(client))
        return cls(client.store, client.user_id, client.task_queue, client)

    async def list_names(self) -> list[str]:
        return await list_batches(self.store, self.user_id)

    async def list_shared(self, limit: int = 20) -> list[Shared]:
        """List batches that others share with the user, by name."""
        return await list_shared(self.store, self.user_id, "batch", limit)

    def batch(self, name: str, owner: str | None = None) -> BatchHandle:
        """Return the handle of a batch, existing or not. Raises Invalid for a bad name.

        `owner` is another user, who has granted access to the batch; without a grant it is as if
        it did not exist.
        """
        temporal = self.client.temporal if self.client else None
        try:
            of = Shareable("batch", self.user_id if owner is None else owner, name)
            store = open_granted(self.store, of, self.user_id)
            folder = BatchFolder(store, of.owner, name)
        except ValueError as error:
            raise Invalid(str(error)) from error
        address = WorkflowAddress.of_batch(of.owner, name)
        return BatchHandle(temporal, folder, self.task_queue, address)

    async def get(self, name: str, owner: str | None = None) -> BatchHandle:
        """Return the handle of an existing batch. Raises NotFound with the other names, Invalid."""
        batch = self.batch(name, owner)
        if await batch.folder.load() is None:
            names = await self.list_names()
            more = ", and others" if len(names) > MAX_NAMES_LISTED else ""
            hint = f"There are {', '.join(names[:MAX_NAMES_LISTED])}{more}."
            raise NotFound(f"There is no batch {name!r}.", hint if names else "There is none yet.")
        return batch

    async def run(
        self,
        batch: BatchSpec | Mapping[str, Any],
        mode: BatchMode = "missing",
        options: Options | None = None,
        rows: Sequence[Mapping[str, Any]] | None = None,
    ) -> BatchHandle:
        """Start a batch of one model, or attach to it if it runs already.

        A batch may be given as a table, with the keys that a TOML file of a batch has.
        Every row of its dataset is validated first, or of `rows`, which take its place. `options`
        are recorded for people. Raises Invalid, Conflict if an earlier run had another agent or
        other samples, Unreachable.
        """
        if isinstance(batch, Mapping):
            try:
                batch = parse_batch(batch)
            except InvalidBatch as error:
                raise Invalid(str(error)) from error
        if self.client is not None:
            code = batch.agent.code or self.client.code_folder
            agent = batch.agent.model_copy(update={"code": code})
            batch = batch.model_copy(update={"agent": agent})
        handle = self.batch(batch.name)
        _check_length(handle)
        check_scorers(batch)
        try:
            with await asyncio.to_thread(read_dataset, batch, rows) as samples:
                if await handle.is_running():
                    return await _attach(handle, batch, samples, mode)
                record = await _prepare(handle, batch, samples, mode)
        except BadDataset as error:
            raise Invalid(str(error)) from error
        return await self._start_workflow(handle, record, mode, options or {})

    async def rerun(self, name: str, mode: BatchMode = "failed") -> BatchHandle:
        """Run the rest of a batch as the store has it.

        Raises NotFound, Conflict, Unreachable, and Invalid for a bad name.
        """
        handle = await self.get(name)
        record = await handle.load_record()
        if await handle.is_running():
            refuse_other_mode(name, record, mode)
            return replace(handle, attached=True)
        return await self._start_workflow(handle, record, mode, {})

    async def _start_workflow(
        self, handle: BatchHandle, record: BatchRecord, mode: BatchMode, options: Options
    ) -> BatchHandle:
        if self.client is None:
            raise Unreachable("Temporal does not answer.")
        workflow_id = await handle.address.find(self.client.temporal)
        if workflow_id is None:
            raise Conflict(
                f"Another user's batch of an earlier version, {handle.name}, is running.",
                "Use another name, or wait until it has ended.",
            )
        start = await self._build_start(handle, record, mode, self.client)
        options = {**record.options, **options, MODE_OPTION: mode}
        record = record.model_copy(update={"options": options})
        await handle.folder.save(record)
        try:
            await self.client.temporal.start_workflow(
                "Batch",
                start,
                id=workflow_id,
                task_queue=handle.task_queue,
                task_timeout=BATCH_TASK_TIMEOUT,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                search_attributes=_search_attributes(start),
                priority=priority_of(start),
                static_summary=f"{start.expected or 0:,} epochs of samples for {start.model}",
                result_type=Progress,
            )
        except WorkflowAlreadyStartedError:
            return replace(handle, attached=True)
        except RPCError as error:
            raise Unreachable(f"Temporal did not take the batch: {error.message}") from error
        return handle

    async def _build_start(
        self, handle: BatchHandle, record: BatchRecord, mode: BatchMode, client: Client
    ) -> BatchStart:
        spec, limits, shards = record.spec, record.spec.batch_limits, count_shards(record)
        return BatchStart(
            name=handle.name,
            user_id=self.user_id,
            samples=record.samples,
            end=record.chunks,
            expected=record.expected_attempts,
            mode=mode,
            fresh=await handle.folder.is_fresh(),
            concurrency=min(spec.concurrency, shards * MAX_RUNNING_ATTEMPTS),
            epochs=spec.epochs,
            retries=spec.retries,
            pause_after=spec.pause_after,
            priority=spec.priority,
            time=limits.time,
            scoring=spec.scoring_timeout,
            look=spec.needs_workspace,
            most=_sample_budget(spec),
            searchable=await client.has_search_attributes(),
            lanes=client.model_queues or None,
            model=spec.agent.model.name,
            parts=shards,
            ledger=Ledger(limit=Allowance(cost=limits.cost, tokens=limits.tokens)),
        )


def count_shards(record: BatchRecord) -> int:
    """Count the workflows to run a batch with: at most one for each chunk of samples."""
    concurrency = record.spec.concurrency
    by_attempts = ceil(record.expected_attempts / MAX_WORKFLOW_EPOCHS)
    by_concurrency = ceil(concurrency / MAX_RUNNING_ATTEMPTS)
    return max(1, min(max(by_attempts, by_concurrency), record.chunks))


def _check_length(handle: BatchHandle) -> None:
    """Raise Invalid if Temporal could not hold the workflow's id."""
    if (excess := len(handle.address.own_id) - MAX_BATCH_WORKFLOW_ID) > 0:
        raise Invalid(
            f"The name {handle.name} is too long beside the user {handle.folder.user_id}.",
            f"Use a name that is at least {excess} characters shorter.",
        )


async def _attach(
    handle: BatchHandle, batch: BatchSpec, samples: Iterable[Sample], mode: BatchMode
) -> BatchHandle:
    """Attach to a running batch. Raises Conflict if it differs from the one to run."""
    before = await handle.folder.load()
    if before is None:
        raise Conflict(
            f"A batch {batch.name} is running, and this store does not know it.",
            "Use the store and the user that it was started with, or another name.",
        )
    refuse_other_mode(batch.name, before, mode)
    others = find_differences(before.spec, batch)
    if not await samples_match(handle.folder, before, samples):
        others.append("dataset")
    if others:
        raise Conflict(
            f"The batch {batch.name} is running with another {', '.join(others)}.",
            f"`perdure batch retune {batch.name}` changes its concurrency and its limits; all else "
            "can be changed once it has finished, or under another name.",
        )
    return replace(handle, attached=True)


async def _prepare(
    handle: BatchHandle, batch: BatchSpec, samples: Iterable[Sample], mode: BatchMode
) -> BatchRecord:
    """Write the samples. Raises Conflict if they or the agent differ from an earlier run."""
    folder, options = handle.folder, Options()
    before = await folder.load()
    # As long as no sample can have run, the batch may be rewritten.
    if before and (not await folder.is_fresh() or await handle.describe() is not None):
        refuse_other_agent(before.spec, batch)
        earlier = await load_sample_hashes(folder, before, rescore=mode == "rescore")
        for sample in samples:
            earlier.refuse_changed(sample)
        options = dict(before.options)
        if mode == "rescore":
            options[RESCORED_OPTION] = list[JsonValue](await list_sample_sets(folder))
    name, count, chunks = await folder.write_samples(samples)
    return BatchRecord(spec=batch, samples=name, count=count, chunks=chunks, options=options)


def _search_attributes(start: BatchStart) -> TypedSearchAttributes | None:
    """Build the search attributes of the batch and its conversations."""
    if not start.searchable:
        return None
    values = {USER: start.user_id, BATCH: start.name, MODEL: start.model}
    return TypedSearchAttributes([SearchAttributePair(*pair) for pair in values.items()])


def _sample_budget(spec: BatchSpec) -> Amount | None:
    """Return what a sample may spend by its own limits; None if it has none."""
    limits = agent_with_limits(spec).limits
    if limits.max_budget is None and limits.max_tokens is None:
        return None
    return Amount(cost=limits.max_budget or 0.0, tokens=limits.max_tokens or 0)

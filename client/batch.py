"""Batches, for programs: prepare one, run it, find it again."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from math import ceil

import temporalio.client
from pydantic import JsonValue
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from agent.trial import Allowance
from client.batch_changes import (
    MODE,
    check,
    differences,
    refuse_other_agent,
    refuse_other_mode,
)
from client.batch_handle import BatchHandle
from client.batch_samples import RESCORED, Agreeing, Earlier, are_those, earlier, sets
from client.client import Client
from client.errors import Conflict, Invalid, NotFound, Unreachable
from client.remote import TASK_TIMEOUT
from evaluation.ledger import Amount, Ledger
from evaluation.patience import looks, patience
from evaluation.progress import Progress
from evaluation.running import MOST_EXPECTED, MOST_RUNNING, BatchStart, Mode
from evaluation.sample import Sample
from evaluation.spec import BatchSpec, agent_of
from storage.batches import BatchFolder, Kept, batches
from storage.datasets.dataset import read_dataset
from storage.datasets.rows import BadDataset
from storage.store import Store
from workflows.attempts import priority_of
from workflows.operators import BATCH, MODEL, USER

WORKFLOW = "Batch"

NAMED = 20
"""Names of batches that are told where one is not there."""


class Batches:
    """The batches of one user. Without a `client` they can be looked at, and no more."""

    def __init__(
        self,
        store: Store,
        user_id: str = "local",
        task_queue: str = "perdure",
        client: Client | None = None,
    ) -> None:
        self._store = store
        self._user_id = user_id
        self._task_queue = task_queue
        self._client = client

    @classmethod
    def of(cls, client: Client) -> "Batches":
        return cls(client.store, client.user_id, client.task_queue, client)

    async def names(self) -> list[str]:
        return await batches(self._store, self._user_id)

    def batch(self, name: str) -> BatchHandle:
        """A batch by its name, whether it is there or not. Raises Invalid for no such name."""
        temporal = self._client.temporal if self._client else None
        try:
            folder = BatchFolder(self._store, self._user_id, name)
        except ValueError as error:
            raise Invalid(str(error)) from error
        return BatchHandle(temporal, folder, self._task_queue)

    async def found(self, name: str) -> BatchHandle:
        """Raises NotFound with the names that there are, and Invalid."""
        batch = self.batch(name)
        if await batch.folder.kept() is None:
            names = await self.names()
            more = ", and others" if len(names) > NAMED else ""
            there = (
                f"There are {', '.join(names[:NAMED])}{more}." if names else "There is none yet."
            )
            raise NotFound(f"There is no batch {name!r}.", there)
        return batch

    async def run(
        self, batch: BatchSpec, mode: Mode = "missing", options: dict[str, JsonValue] | None = None
    ) -> BatchHandle:
        """Start it, or attach to it where it runs already. It has one model: see `runs`.

        Every row of its dataset is looked at first. `options` are kept for people. Raises Invalid
        where something is wrong with it, Conflict where it was another before, Unreachable.
        """
        handle = self.batch(batch.name)
        check(batch)
        try:
            with await asyncio.to_thread(read_dataset, batch) as samples:
                before = await handle.folder.kept()
                if await handle.is_running():
                    return await _attached(handle, before, batch, samples, mode)
                kept = await _prepared(handle, before, batch, samples, mode)
        except BadDataset as error:
            raise Invalid(str(error)) from error
        return await self._started(handle, kept, mode, options or {})

    async def again(self, name: str, mode: Mode = "failed") -> BatchHandle:
        """Run what is left of a batch, as it is in the store. Raises NotFound, Conflict,
        Unreachable, and Invalid for no such name."""
        handle = await self.found(name)
        kept = await handle.kept()
        if await handle.is_running():
            refuse_other_mode(name, kept, mode)
            return replace(handle, attached=True)
        return await self._started(handle, kept, mode, {})

    async def _started(
        self, handle: BatchHandle, kept: Kept, mode: Mode, options: dict[str, JsonValue]
    ) -> BatchHandle:
        if self._client is None:
            raise Unreachable("Temporal does not answer.")
        start = await self._start(handle, kept, mode, self._client)
        kept = kept.model_copy(update={"options": {**kept.options, **options, MODE: mode}})
        await handle.folder.keep(kept)
        try:
            await _start_workflow(self._client.temporal, handle, start)
        except WorkflowAlreadyStartedError:
            return replace(handle, attached=True)
        except RPCError as error:
            raise Unreachable(f"Temporal did not take the batch: {error.message}") from error
        return handle

    async def _start(
        self, handle: BatchHandle, kept: Kept, mode: Mode, client: Client
    ) -> BatchStart:
        spec, limits, parts = kept.spec, kept.spec.batch_limits, parts_of(kept)
        return BatchStart(
            name=handle.name,
            user_id=self._user_id,
            samples=kept.samples,
            end=kept.chunks,
            expected=kept.expected,
            mode=mode,
            fresh=await handle.folder.is_fresh(),
            concurrency=min(spec.concurrency, parts * MOST_RUNNING),
            epochs=spec.epochs,
            retries=spec.retries,
            priority=spec.priority,
            time=limits.time,
            scoring=patience(spec),
            look=looks(spec),
            most=_most(spec),
            searchable=await client.searchable(),
            lanes=client.lanes or None,
            model=spec.agent.model.name,
            parts=parts,
            ledger=Ledger(limit=Allowance(cost=limits.cost, tokens=limits.tokens)),
        )


def parts_of(kept: Kept) -> int:
    """How many workflows run it: at most one for each object of samples."""
    concurrency = kept.spec.concurrency
    needed = max(ceil(kept.expected / MOST_EXPECTED), ceil(concurrency / MOST_RUNNING))
    return max(1, min(needed, kept.chunks))


async def _attached(
    handle: BatchHandle,
    before: Kept | None,
    batch: BatchSpec,
    samples: Iterable[Sample],
    mode: Mode,
) -> BatchHandle:
    """Raises Conflict where what runs is not what was asked for."""
    if before is None:
        raise Conflict(
            f"A batch {batch.name} is running, and this store does not know it.",
            "Use the store and the user that it was started with, or another name.",
        )
    refuse_other_mode(batch.name, before, mode)
    others = differences(before.spec, batch)
    if not await are_those(handle.folder, before, samples):
        others.append("dataset")
    if others:
        raise Conflict(
            f"The batch {batch.name} is running with another {', '.join(others)}.",
            f"`perdure batch retune {batch.name}` changes its concurrency and its limits; all else "
            "can be changed once it has finished, or under another name.",
        )
    return replace(handle, attached=True)


async def _prepared(
    handle: BatchHandle,
    before: Kept | None,
    batch: BatchSpec,
    samples: Iterable[Sample],
    mode: Mode,
) -> Kept:
    """Write its samples. Raises Conflict where they, or its agent, are not as they were."""
    folder, options, known = handle.folder, dict[str, JsonValue](), Earlier()
    if before is not None and await _was_begun(handle):
        refuse_other_agent(before.spec, batch)
        known = await earlier(folder, before, rescore=mode == "rescore")
        options = dict(before.options)
        if mode == "rescore":
            options[RESCORED] = list[JsonValue](await sets(folder))
    name, count, chunks = await folder.keep_samples(Agreeing(batch.name, samples, known))
    return Kept(spec=batch, samples=name, count=count, chunks=chunks, options=options)


async def _was_begun(handle: BatchHandle) -> bool:
    """Whether a sample may have been run: what was only written down may be written anew."""
    return not await handle.folder.is_fresh() or await handle.described() is not None


async def _start_workflow(
    temporal: temporalio.client.Client, handle: BatchHandle, start: BatchStart
) -> None:
    """Raises WorkflowAlreadyStartedError, RPCError."""
    await temporal.start_workflow(
        WORKFLOW,
        start,
        id=handle.workflow_id,
        task_queue=handle.task_queue,
        task_timeout=TASK_TIMEOUT,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        search_attributes=_found_by(start),
        priority=priority_of(start),
        static_summary=f"{start.expected or 0:,} epochs of samples for {start.model}",
        result_type=Progress,
    )


def _found_by(start: BatchStart) -> TypedSearchAttributes | None:
    """What operators find it by, and its conversations with it."""
    if not start.searchable:
        return None
    pairs = [
        SearchAttributePair(USER, start.user_id),
        SearchAttributePair(BATCH, start.name),
        SearchAttributePair(MODEL, start.model),
    ]
    return TypedSearchAttributes(pairs)


def _most(spec: BatchSpec) -> Amount | None:
    """What one sample may spend by its own limits; of what has none, nothing is said."""
    limits = agent_of(spec).limits
    if limits.max_budget is None and limits.max_tokens is None:
        return None
    return Amount(cost=limits.max_budget or 0.0, tokens=limits.max_tokens or 0)

"""The steps of a batch: which attempts are to be made, and what became of those begun elsewhere."""

import asyncio
from collections.abc import Iterable, Sequence

import temporalio.client
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from activities.step import at_work
from activities.world import World
from agent.start import Snapshot
from agent.trial import Scored
from evaluation.progress import Progress, counted, scored_of, spent_by
from evaluation.result import Attempt, Failure, SampleResult
from evaluation.running import Followed, Job, Lost, Page, PageAsked, Place, Surveyed
from evaluation.sample import Sample, conversation_id
from storage.batches import AT_ONCE, BatchFolder

GATHERING = 0.5
"""Seconds in which others may end too, once one has: they are told of together."""

ROOM = 64 * 1024
"""Bytes of jobs that are told at a time."""

TOLD = 500
"""Characters of why a workflow failed."""


class BatchActivities:
    def __init__(self, world: World, temporal: temporalio.client.Client) -> None:
        self.world = world
        self.temporal = temporal

    @activity.defn(name="batch.page")
    async def page(self, asked: PageAsked) -> Page:
        """The attempts that are to be made at the samples of one chunk."""
        async with at_work():
            folder = self.world.batch(asked.of.user_id, asked.of.name)
            samples = await folder.chunk(asked.of.samples, asked.place.chunk)
            if asked.of.fresh:
                found = [_fresh(sample, asked.of.epochs) for sample in samples]
            else:
                room = asyncio.Semaphore(AT_ONCE)
                found = await asyncio.gather(
                    *(_left(folder, sample, asked, room) for sample in samples)
                )
            return _page(found, asked.place)

    @activity.defn(name="batch.survey")
    async def survey(self, asked: Surveyed) -> Progress:
        """Count what has a result already."""
        async with at_work():
            whole = asked.of
            folder = self.world.batch(whole.user_id, whole.name)
            progress = Progress(name=whole.name)
            room = asyncio.Semaphore(AT_ONCE)
            for chunk in range(asked.first, asked.end):
                samples = await folder.chunk(whole.samples, chunk)
                expected = progress.expected + len(samples) * whole.epochs
                progress = progress.model_copy(update={"expected": expected})
                if whole.fresh:
                    continue
                for attempts in await asyncio.gather(
                    *(_results(folder, sample, room) for sample in samples)
                ):
                    progress = _counted(progress, attempts, whole.epochs)
            return progress

    @activity.defn(name="batch.follow")
    async def follow(self, conversation_ids: list[str]) -> list[Followed]:
        """Wait until one of these conversations has ended; what became of those that have."""
        async with at_work():
            ends = [asyncio.ensure_future(self._end(one)) for one in conversation_ids]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                done, _ = await asyncio.wait(ends, timeout=GATHERING)
                return [one.result() for one in done]
            finally:
                for one in ends:
                    one.cancel()

    @activity.defn(name="batch.lost")
    async def lost(self, lost: Lost) -> Scored:
        """Put on record that an attempt came to nothing, unless it has a result after all."""
        async with at_work():
            trial, folder = lost.trial, self.world.batch(lost.user_id, lost.trial.batch)
            sample = await folder.sample(trial.samples, trial.chunk, trial.line)
            attempt = Attempt(
                conversation_id=conversation_id(
                    f"{lost.user_id}/{trial.batch}", sample.id, trial.epoch, trial.number
                ),
                epoch=trial.epoch,
                number=trial.number,
                status="failed",
                failure=Failure(
                    kind="infrastructure",
                    code=lost.code,
                    detail=self.world.secrets.mask(lost.detail),
                ),
            )
            return scored_of(await folder.record(sample, attempt))

    async def _end(self, conversation_id: str) -> Followed:
        handle = self.temporal.get_workflow_handle(f"conv-{conversation_id}", result_type=Snapshot)
        try:
            end = await handle.result()
            return Followed(conversation_id=conversation_id, scored=end.scored)
        except WorkflowFailureError as error:
            why = str(error.cause or error)[:TOLD]
            return Followed(conversation_id=conversation_id, failure=why)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return Followed(conversation_id=conversation_id)


def _page(found: Sequence[Sequence[Job]], place: Place) -> Page:
    """As many of the jobs from this place on as may travel together."""
    jobs: list[Job] = []
    left = ROOM
    for line, of_sample in enumerate(found):
        for job in of_sample:
            if (line, job.epoch) < (place.line, place.epoch):
                continue
            job = job.model_copy(update={"chunk": place.chunk, "line": line})
            left -= len(job.model_dump_json())
            if left < 0 and jobs:
                then = Place(chunk=place.chunk, line=line, epoch=job.epoch)
                return Page(jobs=tuple(jobs), then=then)
            jobs.append(job)
    return Page(jobs=tuple(jobs), then=Place(chunk=place.chunk + 1))


def _fresh(sample: Sample, epochs: int) -> list[Job]:
    return [_job(sample, epoch) for epoch in range(epochs)]


def _job(sample: Sample, epoch: int, number: int = 0, before: Scored | None = None) -> Job:
    return Job(
        sample=sample.id,
        chunk=0,
        line=0,
        setup=bool(sample.files or sample.setup),
        turns=len(sample.turns),
        epoch=epoch,
        number=number,
        counted=before,
    )


async def _left(
    folder: BatchFolder, sample: Sample, asked: PageAsked, room: asyncio.Semaphore
) -> list[Job]:
    """What is to be done for a sample that may have results: by epoch, after the newest one."""
    async with room:
        newest = dict(await folder.attempts(sample.id))  # sorted: the last of each epoch stays
        jobs = []
        for epoch in range(asked.of.epochs):
            if epoch not in newest:
                if asked.mode != "rescore":
                    jobs.append(_job(sample, epoch))
                continue
            if asked.mode == "missing":
                continue
            result = await folder.result(sample.id, epoch, newest[epoch])
            before = scored_of(result.attempts[0]) if result else None
            if asked.mode == "rescore":
                jobs.append(_job(sample, epoch, newest[epoch], before))
            elif before is None or before.status == "failed":
                jobs.append(_job(sample, epoch, newest[epoch] + 1, before))
        return jobs


async def _results(
    folder: BatchFolder, sample: Sample, room: asyncio.Semaphore
) -> list[SampleResult]:
    async with room:
        found = [
            await folder.result(sample.id, epoch, number)
            for epoch, number in await folder.attempts(sample.id)
        ]
        return [one for one in found if one is not None]


def _counted(progress: Progress, results: Iterable[SampleResult], epochs: int) -> Progress:
    newest: dict[int, Scored] = {}
    for result in results:
        for attempt in result.attempts:
            scored = scored_of(attempt)
            progress = spent_by(progress, scored)
            if attempt.epoch < epochs:
                newest[attempt.epoch] = scored
    for scored in newest.values():
        progress = counted(progress, scored)
    return progress

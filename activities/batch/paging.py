"""The activities of a batch: listing its jobs, counting results, awaiting conversations."""

import asyncio
from collections.abc import Iterable, Sequence

import temporalio.client
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from perdure.activities.support.resources import Resources
from perdure.activities.support.step import heartbeating
from perdure.agent.loop.attempt import AttemptSummary
from perdure.agent.loop.start import ConversationStatus
from perdure.evaluation.messages import (
    AttemptPage,
    AttemptPageRequest,
    AwaitedConversation,
    CountRequest,
    LostAttempt,
    PlannedAttempt,
    SamplePosition,
)
from perdure.evaluation.progress import Progress, add_spending, count_attempt, summarize_attempt
from perdure.evaluation.result import AttemptFailure, AttemptResult, SampleResult
from perdure.evaluation.sample import Sample, conversation_id
from perdure.storage.batches import PARALLEL_REQUESTS, BatchFolder
from perdure.temporal.names import conversation_workflow_id

GATHER_INTERVAL = 0.5
"""Seconds after the first end in which further ends are reported with it."""

MAX_PAGE_BYTES = 64 * 1024
"""Size limit of the jobs of a page."""

MAX_FAILURE_CHARS = 500
"""Length limit of the reason why a workflow failed."""


class BatchActivities:
    def __init__(self, resources: Resources, temporal: temporalio.client.Client) -> None:
        self.resources = resources
        self.temporal = temporal

    @activity.defn(name="batch.page")
    async def load_page(self, request: AttemptPageRequest) -> AttemptPage:
        """List the attempts to make at the samples of one chunk."""
        async with heartbeating():
            folder = self.resources.batch(request.of.user_id, request.of.name)
            samples = await folder.read_chunk(request.of.samples, request.place.chunk)
            if request.of.fresh:
                jobs = [_first_jobs(sample, request.of.epochs) for sample in samples]
            else:
                room = asyncio.Semaphore(PARALLEL_REQUESTS)
                jobs = await asyncio.gather(
                    *(_remaining_jobs(folder, sample, request, room) for sample in samples)
                )
            return _build_page(jobs, request.place)

    @activity.defn(name="batch.survey")
    async def count_results(self, request: CountRequest) -> Progress:
        """Count the results that are there already."""
        async with heartbeating():
            whole = request.of
            folder = self.resources.batch(whole.user_id, whole.name)
            progress = Progress(name=whole.name)
            room = asyncio.Semaphore(PARALLEL_REQUESTS)
            for chunk in range(request.first, request.end):
                samples = await folder.read_chunk(whole.samples, chunk)
                expected = progress.expected + len(samples) * whole.epochs
                progress = progress.model_copy(update={"expected": expected})
                if whole.fresh:
                    continue
                for attempts in await asyncio.gather(
                    *(_load_results(folder, sample, room) for sample in samples)
                ):
                    progress = _count_attempts(progress, attempts, whole.epochs)
            return progress

    @activity.defn(name="batch.follow")
    async def await_conversations(self, conversation_ids: list[str]) -> list[AwaitedConversation]:
        """Wait until one of the conversations has ended; return the ends."""
        async with heartbeating():
            ends = [asyncio.ensure_future(self._await_end(name)) for name in conversation_ids]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                done, _ = await asyncio.wait(ends, timeout=GATHER_INTERVAL)
                return [end.result() for end in done]
            finally:
                for end in ends:
                    end.cancel()

    @activity.defn(name="batch.lost")
    async def record_lost_attempt(self, lost: LostAttempt) -> AttemptSummary:
        """Record that an attempt has failed, unless it has a result after all."""
        async with heartbeating():
            trial, folder = lost.trial, self.resources.batch(lost.user_id, lost.trial.batch)
            sample = await folder.read_sample(trial.sample_set, trial.chunk, trial.line)
            attempt = AttemptResult(
                conversation_id=conversation_id(
                    f"{lost.user_id}/{trial.batch}", sample.id, trial.epoch, trial.number
                ),
                epoch=trial.epoch,
                number=trial.number,
                status="failed",
                failure=AttemptFailure(
                    kind="infrastructure",
                    code=lost.code,
                    detail=self.resources.secrets.mask(lost.detail),
                ),
            )
            return summarize_attempt(await folder.record_attempt(sample, attempt))

    async def _await_end(self, conversation_id: str) -> AwaitedConversation:
        handle = self.temporal.get_workflow_handle(
            conversation_workflow_id(conversation_id), result_type=ConversationStatus
        )
        try:
            status = await handle.result()
            return AwaitedConversation(conversation_id=conversation_id, scored=status.scored)
        except WorkflowFailureError as error:
            reason = str(error.cause or error)[:MAX_FAILURE_CHARS]
            return AwaitedConversation(conversation_id=conversation_id, failure=reason)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return AwaitedConversation(conversation_id=conversation_id)


def _build_page(
    jobs_by_line: Sequence[Sequence[PlannedAttempt]], place: SamplePosition
) -> AttemptPage:
    """Build a page of jobs from this place on, up to MAX_PAGE_BYTES."""
    jobs: list[PlannedAttempt] = []
    left = MAX_PAGE_BYTES
    for line, of_sample in enumerate(jobs_by_line):
        for job in of_sample:
            if (line, job.epoch) < (place.line, place.epoch):
                continue
            job = job.model_copy(update={"chunk": place.chunk, "line": line})
            left -= len(job.model_dump_json())
            if left < 0 and jobs:
                then = SamplePosition(chunk=place.chunk, line=line, epoch=job.epoch)
                return AttemptPage(jobs=tuple(jobs), then=then)
            jobs.append(job)
    return AttemptPage(jobs=tuple(jobs), then=SamplePosition(chunk=place.chunk + 1))


def _first_jobs(sample: Sample, epochs: int) -> list[PlannedAttempt]:
    return [_job(sample, epoch) for epoch in range(epochs)]


def _job(
    sample: Sample, epoch: int, number: int = 0, before: AttemptSummary | None = None
) -> PlannedAttempt:
    return PlannedAttempt(
        sample=sample.id,
        chunk=0,
        line=0,
        setup=bool(sample.files or sample.setup),
        turns=len(sample.turns),
        epoch=epoch,
        number=number,
        counted=before,
    )


async def _remaining_jobs(
    folder: BatchFolder, sample: Sample, request: AttemptPageRequest, room: asyncio.Semaphore
) -> list[PlannedAttempt]:
    """List the jobs of a sample that may have results: by epoch, after its newest attempt."""
    async with room:
        newest = dict(await folder.list_attempts(sample.id))  # sorted: the last of each epoch stays
        jobs = []
        for epoch in range(request.of.epochs):
            if epoch not in newest:
                if request.mode != "rescore":
                    jobs.append(_job(sample, epoch))
                continue
            if request.mode == "missing":
                continue
            result = await folder.read_result(sample.id, epoch, newest[epoch])
            before = summarize_attempt(result.attempts[0]) if result else None
            if request.mode == "rescore":
                jobs.append(_job(sample, epoch, newest[epoch], before))
            elif before is None or before.status == "failed":
                jobs.append(_job(sample, epoch, newest[epoch] + 1, before))
        return jobs


async def _load_results(
    folder: BatchFolder, sample: Sample, room: asyncio.Semaphore
) -> list[SampleResult]:
    async with room:
        results = [
            await folder.read_result(sample.id, epoch, number)
            for epoch, number in await folder.list_attempts(sample.id)
        ]
        return [result for result in results if result is not None]


def _count_attempts(progress: Progress, results: Iterable[SampleResult], epochs: int) -> Progress:
    newest: dict[int, AttemptSummary] = {}
    for result in results:
        for attempt in result.attempts:
            scored = summarize_attempt(attempt)
            progress = add_spending(progress, scored)
            if attempt.epoch < epochs:
                newest[attempt.epoch] = scored
    for scored in newest.values():
        progress = count_attempt(progress, scored)
    return progress

"""The activities of a batch: listing its attempts, counting results, awaiting conversations."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import temporalio.client
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from perdure.activities.batch.code_check import find_code_problem
from perdure.activities.support.load import load_record
from perdure.activities.support.resources import Activities
from perdure.activities.support.step import heartbeating
from perdure.agent.loop.attempt import Attempt, AttemptSummary
from perdure.agent.loop.start import ConversationStatus
from perdure.evaluation.messages import (
    AttemptPage,
    AttemptPageRequest,
    AwaitedConversation,
    CodeCheck,
    CodeCheckRequest,
    CountRequest,
    LostAttempt,
    SamplePosition,
)
from perdure.evaluation.progress import Progress, count_attempts, summarize_attempt
from perdure.evaluation.result import AttemptFailure, AttemptResult
from perdure.evaluation.sample import Sample, attempt_conversation_id
from perdure.storage.batches import PARALLEL_REQUESTS, BatchFolder
from perdure.temporal.names import conversation_id_of

GATHER_INTERVAL = 0.5
"""Seconds after the first end in which further ends are reported with it."""

MAX_PAGE_BYTES = 64 * 1024
"""Size limit of the attempts of a page."""

MAX_FAILURE_CHARS = 500
"""Length limit of the reason why a workflow failed."""


@dataclass
class BatchActivities(Activities):
    temporal: temporalio.client.Client

    @activity.defn(name="batch.page")
    async def load_page(self, request: AttemptPageRequest) -> AttemptPage:
        """List the attempts to make at the samples of one chunk."""
        async with self.heartbeating_for(request.of.user_id):
            folder = self.resources.batch(request.of.user_id, request.of.name)
            samples = await folder.read_chunk(request.of.samples, request.place.chunk)
            first = [_first_attempt(request, *item) for item in enumerate(samples)]
            room = asyncio.Semaphore(PARALLEL_REQUESTS)
            lists = await asyncio.gather(
                *(_list_attempts(folder, request, attempt, room) for attempt in first)
            )
            return _build_page(chain.from_iterable(lists), request.place)

    @activity.defn(name="batch.check")
    async def check_code(self, request: CodeCheckRequest) -> CodeCheck:
        """Load the code that a batch names, on this worker; call none of it."""
        async with self.heartbeating_for(request.user_id):
            record = await load_record(self.resources.batch(request.user_id, request.name))
            problem = await find_code_problem(record)
            mask = self.resources.secrets_of(request.user_id).mask
            return CodeCheck(problem=problem and mask(problem))

    @activity.defn(name="batch.survey")
    async def count_results(self, request: CountRequest) -> Progress:
        """Count the results that are there already."""
        async with self.heartbeating_for(request.of.user_id):
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
                for results in await asyncio.gather(
                    *(_load_results(folder, sample, room) for sample in samples)
                ):
                    progress = count_attempts(progress, results, whole.epochs)
            return progress

    @activity.defn(name="batch.follow")
    async def await_conversations(self, names: list[str]) -> list[AwaitedConversation]:
        """Wait until one of the conversations has ended; return the ends.

        `names` are the ids of their workflows without `conv-`: an id, or its user and an id.
        """
        async with heartbeating(self.resources.secrets):
            ends = [asyncio.ensure_future(self._await_end(f"conv-{name}")) for name in names]
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
        async with self.heartbeating_for(lost.user_id):
            attempt = lost.attempt
            folder = self.resources.batch(lost.user_id, attempt.batch)
            # Results are not in the log, which masks what it records.
            detail = self.resources.secrets_of(lost.user_id).mask(lost.detail)
            result = AttemptResult(
                conversation_id=attempt_conversation_id(lost.user_id, attempt),
                epoch=attempt.epoch,
                number=attempt.number,
                status="failed",
                failure=AttemptFailure(
                    kind="infrastructure", code="workflow_failed", detail=detail
                ),
            )
            sample = await self.resources.load_sample(lost.user_id, attempt)
            return summarize_attempt(await folder.record_attempt(sample, result))

    async def _await_end(self, workflow_id: str) -> AwaitedConversation:
        conversation_id = conversation_id_of(workflow_id)
        handle = self.temporal.get_workflow_handle(workflow_id, result_type=ConversationStatus)
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


def _build_page(attempts: Iterable[Attempt], place: SamplePosition) -> AttemptPage:
    """Build a page of the attempts from this place on, up to MAX_PAGE_BYTES."""
    jobs: list[Attempt] = []
    left = MAX_PAGE_BYTES
    for attempt in attempts:
        if (attempt.line, attempt.epoch) < (place.line, place.epoch):
            continue
        left -= len(attempt.model_dump_json())
        if left < 0 and jobs:
            then = SamplePosition(chunk=place.chunk, line=attempt.line, epoch=attempt.epoch)
            return AttemptPage(jobs=tuple(jobs), then=then)
        jobs.append(attempt)
    return AttemptPage(jobs=tuple(jobs), then=SamplePosition(chunk=place.chunk + 1))


def _first_attempt(request: AttemptPageRequest, line: int, sample: Sample) -> Attempt:
    return Attempt(
        batch=request.of.name,
        sample=sample.id,
        sample_set=request.of.samples,
        chunk=request.place.chunk,
        line=line,
        needs_setup=bool(sample.files or sample.setup),
        later_turns=len(sample.turns),
    )


async def _list_attempts(
    folder: BatchFolder, request: AttemptPageRequest, first: Attempt, room: asyncio.Semaphore
) -> list[Attempt]:
    """List the attempts to make at a sample: one for each epoch, after its newest."""
    async with room:
        newest = {} if request.of.fresh else dict(await folder.list_attempts(first.sample))
        attempts = []
        for epoch in range(request.of.epochs):
            number = newest.get(epoch)  # the last of each epoch, as they are sorted
            if number is None:
                if request.mode != "rescore":
                    attempts.append(first.model_copy(update={"epoch": epoch}))
                continue
            if request.mode == "missing":
                continue
            result = await folder.read_result(first.sample, epoch, number)
            before = summarize_attempt(result.attempts[0]) if result else None
            if request.mode == "failed":
                if before is not None and before.status != "failed":
                    continue
                number += 1
            update = {"epoch": epoch, "number": number, "counted": before}
            attempts.append(first.model_copy(update=update))
        return attempts


async def _load_results(
    folder: BatchFolder, sample: Sample, room: asyncio.Semaphore
) -> list[AttemptResult]:
    """Load the results of all attempts at a sample, in order."""
    async with room:
        places = await folder.list_attempts(sample.id)
        results = [await folder.read_result(sample.id, *place) for place in places]
        return [attempt for result in results if result for attempt in result.attempts]

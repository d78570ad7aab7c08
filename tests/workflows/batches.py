"""Batches on a real Temporal server, with a model that answers by its prompt."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from temporalio.client import WorkflowHandle

from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.attempt import Allowance
from perdure.evaluation.ledger import Ledger
from perdure.evaluation.messages import BatchStart
from perdure.evaluation.progress import PROGRESS_MEMO, Progress
from perdure.evaluation.result import SampleResult
from perdure.evaluation.sample import Sample, build_sample
from perdure.evaluation.spec import BatchSpec, parse_batch
from perdure.events.content import Message, TextContent
from perdure.events.usage import Usage
from perdure.models.model import ModelError, OnText, Request
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.files import FileStore
from perdure.temporal.names import batch_workflow_id
from tests.harness import ConversationHarness

Answers = Callable[[str], str | ModelError]


class FakeModel:
    """Answers what the newest message of the user asks; `question_counts` counts each question."""

    def __init__(self, answer: Answers, cost: float = 0.01) -> None:
        self.answer = answer
        self.cost = cost
        self.question_counts: Counter[str] = Counter()
        self.gate = asyncio.Event()
        self.gate.set()

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        question = last_user_text(request)
        await self.gate.wait()
        self.question_counts[question] += 1
        answer = self.answer(question)
        if isinstance(answer, ModelError):
            raise answer
        on_text(answer)
        message = Message(role="assistant", content=(TextContent(text=answer),))
        return Completion(
            id=str(uuid.uuid4()),
            model="oracle",
            message=message,
            usage=Usage(prompt_tokens=10, completion_tokens=2, cost=self.cost),
            received="2026-01-01T00:00:00.000000",
        )


def last_user_text(request: Request) -> str:
    content = next(message for message in reversed(request.messages) if message["role"] == "user")[
        "content"
    ]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return text.partition("\n")[0]  # recalled text follows


def with_model(harness: ConversationHarness, model: FakeModel) -> ConversationHarness:
    """The same harness, whose model is this one."""
    world = Resources(harness.resources.store, model, harness.resources.workspaces)
    return ConversationHarness(harness.client, world, harness.folder)


def make_sums(count: int) -> list[Sample]:
    return [
        build_sample({"id": f"s{n}", "input": f"{n} + 1", "target": n + 1}) for n in range(count)
    ]


def spec(name: str | None = None, **fields: Any) -> BatchSpec:
    table = {
        "name": name or f"b{uuid.uuid4().hex[:12]}",
        "dataset": "unused:unused",
        "agent": {"model": {"name": "oracle"}, "tools": []},
        "scorers": ["exact"],
        **fields,
    }
    return parse_batch(table)


async def start_batch(
    harness: ConversationHarness,
    batch: BatchSpec,
    samples: Iterable[Sample],
    workflow_id: str | None = None,
    **fields: Any,
) -> WorkflowHandle[Any, Progress]:
    """Start a batch over these samples, as a client does."""
    folder = batch_folder(harness, batch)
    name, count, chunks = await folder.write_samples(list(samples))
    record = BatchRecord(spec=batch, samples=name, count=count, chunks=chunks)
    await folder.save(record)
    limits = batch.batch_limits
    start = BatchStart(
        name=batch.name,
        user_id=harness.client.user_id,
        samples=name,
        end=chunks,
        **{
            "expected": record.expected_attempts,
            "fresh": await folder.is_fresh(),
            "concurrency": batch.concurrency,
            "epochs": batch.epochs,
            "retries": batch.retries,
            "ledger": Ledger(limit=Allowance(cost=limits.cost)),
            "look": any(scorer.kind == "command" for scorer in batch.scorers),
            **fields,
        },
    )
    handle: WorkflowHandle[Any, Progress] = await harness.client.temporal.start_workflow(
        "Batch",
        start,
        id=workflow_id or batch_workflow_id(harness.client.user_id, batch.name),
        task_queue=harness.client.task_queue,
        result_type=Progress,
    )
    return handle


def batch_folder(harness: ConversationHarness, batch: BatchSpec) -> BatchFolder:
    assert isinstance(harness.resources.store, FileStore)
    return BatchFolder(harness.resources.store, harness.client.user_id, batch.name)


async def results(harness: ConversationHarness, batch: BatchSpec) -> dict[str, SampleResult]:
    return {result.id: result async for result in batch_folder(harness, batch).read_results()}


async def load_progress(handle: WorkflowHandle[Any, Progress]) -> Progress:
    """Load the progress from the memo, which is empty before the first step."""
    memo = await (await handle.describe()).memo()
    progress = Progress.model_validate(memo.get(PROGRESS_MEMO) or {"name": "unknown"})
    counts_add_up(progress)
    return progress


def counts_add_up(progress: Progress) -> None:
    parts = (progress.scored, progress.limited, progress.failed, progress.running)
    assert sum(parts) + progress.missing == progress.expected


async def wait_for(
    handle: WorkflowHandle[Any, Progress], holds: Callable[[Progress], bool]
) -> Progress:
    async with asyncio.timeout(60):
        while True:
            progress = await load_progress(handle)
            if holds(progress):
                return progress
            await asyncio.sleep(0.05)

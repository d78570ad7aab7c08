"""Batches on a real Temporal server, with a model that answers by what it is asked."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from temporalio.client import WorkflowHandle

from activities.world import World
from agent.completion import Completion
from agent.trial import Allowance
from evaluation.ledger import Ledger
from evaluation.progress import MEMO, Progress
from evaluation.result import SampleResult
from evaluation.running import BatchStart
from evaluation.sample import Sample, sample_of
from evaluation.spec import BatchSpec, batch_of
from events.content import Message, TextContent
from events.usage import Usage
from models.model import ModelError, OnText, Request
from storage.batches import BatchFolder, Kept
from storage.files import FileStore
from tests.house import House

Answers = Callable[[str], str | ModelError]


class Oracle:
    """Answers what the newest message of the user asks; `asked` counts how often."""

    def __init__(self, answer: Answers, cost: float = 0.01) -> None:
        self.answer = answer
        self.cost = cost
        self.asked: Counter[str] = Counter()
        self.gate = asyncio.Event()
        self.gate.set()

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        question = newest(request)
        await self.gate.wait()
        self.asked[question] += 1
        answer = self.answer(question)
        if isinstance(answer, ModelError):
            raise answer
        on_text(answer)
        said = Message(role="assistant", content=(TextContent(text=answer),))
        return Completion(
            id=str(uuid.uuid4()),
            model="oracle",
            message=said,
            usage=Usage(prompt_tokens=10, completion_tokens=2, cost=self.cost),
            received="2026-01-01T00:00:00.000000",
        )


def newest(request: Request) -> str:
    content = next(one for one in reversed(request.messages) if one["role"] == "user")["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return text.partition("\n")[0]  # what it calls up stands behind it


def house_of(house: House, model: Oracle) -> House:
    """The same house, whose model is this one."""
    world = World(house.world.store, model, house.world.workspaces)
    return House(house.client, world, house.folder)


def sums(count: int) -> list[Sample]:
    return [sample_of({"id": f"s{n}", "input": f"{n} + 1", "target": n + 1}) for n in range(count)]


def spec(name: str | None = None, **fields: Any) -> BatchSpec:
    table = {
        "name": name or f"b{uuid.uuid4().hex[:12]}",
        "dataset": "unused:unused",
        "agent": {"model": {"name": "oracle"}, "tools": []},
        "scorers": ["exact"],
        **fields,
    }
    return batch_of(table)


async def begun(
    house: House, batch: BatchSpec, samples: Iterable[Sample], **fields: Any
) -> WorkflowHandle[Any, Progress]:
    """Start a batch over these samples, as a client does."""
    folder = folder_of(house, batch)
    name, count, chunks = await folder.keep_samples(list(samples))
    kept = Kept(spec=batch, samples=name, count=count, chunks=chunks)
    await folder.keep(kept)
    limits = batch.batch_limits
    start = BatchStart(
        name=batch.name,
        user_id="local",
        samples=name,
        end=chunks,
        **{
            "expected": kept.expected,
            "fresh": await folder.is_fresh(),
            "concurrency": batch.concurrency,
            "epochs": batch.epochs,
            "retries": batch.retries,
            "ledger": Ledger(limit=Allowance(cost=limits.cost)),
            "look": any(one.kind == "command" for one in batch.scorers),
            **fields,
        },
    )
    handle: WorkflowHandle[Any, Progress] = await house.client.temporal.start_workflow(
        "Batch",
        start,
        id=f"batch-{batch.name}",
        task_queue=house.client.task_queue,
        result_type=Progress,
    )
    return handle


def folder_of(house: House, batch: BatchSpec) -> BatchFolder:
    assert isinstance(house.world.store, FileStore)
    return BatchFolder(house.world.store, "local", batch.name)


async def results(house: House, batch: BatchSpec) -> dict[str, SampleResult]:
    return {one.id: one async for one in folder_of(house, batch).results()}


async def told(handle: WorkflowHandle[Any, Progress]) -> Progress:
    """What it keeps beside it; before its first step nothing is known."""
    memo = await (await handle.describe()).memo()
    progress = Progress.model_validate(memo.get(MEMO) or {"name": "unknown"})
    adds_up(progress)
    return progress


def adds_up(progress: Progress) -> None:
    parts = (progress.scored, progress.limited, progress.failed, progress.running)
    assert sum(parts) + progress.missing == progress.expected


async def until(
    handle: WorkflowHandle[Any, Progress], holds: Callable[[Progress], bool]
) -> Progress:
    async with asyncio.timeout(60):
        while True:
            progress = await told(handle)
            if holds(progress):
                return progress
            await asyncio.sleep(0.05)

"""The length of a batch's history per sample, over all runs of its workflow."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle

from bench.batch_stage import BatchEnvironment
from bench.workflow_runs import walk_runs


@dataclass
class History:
    """`runs` says how many events each run of the workflow has, `begun` how many children."""

    samples: int
    concurrency: int
    runs: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def report(self) -> dict[str, Any]:
        by_run = [
            events / begun for events, begun in zip(self.runs, self.begun, strict=True) if begun
        ]
        return {
            "samples": self.samples,
            "concurrency": self.concurrency,
            "events_per_sample": sum(self.runs) / self.samples,
            "of_each_run": by_run,
            "runs": self.runs,
            "by_kind": {kind: n / self.samples for kind, n in self.kinds.most_common()},
        }


async def measure_history(stage: BatchEnvironment, samples: int, concurrency: int) -> History:
    """Measure the history of a batch of short samples."""
    batch = await stage.batch("word", samples, concurrency)
    progress = await batch.handle.result()
    assert progress.scored == samples, progress
    history = History(samples, concurrency)
    async for handle in walk_runs(stage.client.temporal, batch.workflow_id):
        await count_events(handle, history)
    return history


async def count_events(handle: WorkflowHandle[Any, Any], history: History) -> None:
    """Count the events of this run."""
    events, begun = 0, 0
    async for event in handle.fetch_history_events():
        kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
        events += 1
        begun += kind == "start_child_workflow_execution_initiated"
        history.kinds[kind] += 1
    history.runs.append(events)
    history.begun.append(begun)

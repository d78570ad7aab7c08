"""The length of a batch's history per sample, over all runs of its workflow."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle

from bench.batch_stage import BatchEnvironment


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
    described = await batch.handle.describe()
    run = described.raw_description.workflow_execution_info.first_run_id
    while run:
        temporal = stage.client.temporal
        run = await count_events(
            temporal.get_workflow_handle(batch.workflow_id, run_id=run), history
        )
    return history


async def count_events(handle: WorkflowHandle[Any, Any], history: History) -> str:
    """Count the events of this run; the id of the next one, if there is one."""
    events, begun, then = 0, 0, ""
    async for event in handle.fetch_history_events():
        kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
        events += 1
        begun += kind == "start_child_workflow_execution_initiated"
        history.kinds[kind] += 1
        then = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    history.runs.append(events)
    history.begun.append(begun)
    return then

"""Workers that are only busy, and taken for lost: `python -m bench.false_alarms [-o json]`.

Many conversations at once on one worker process, beside other processes that use all cores. Nobody
is killed, so that every timeout of a heartbeat or of a workflow task is a false alarm. They are
counted in the histories, for each timeout in turn.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import temporalio.client
from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Interceptor, OutboundInterceptor, StartWorkflowInput, WorkflowHandle

from bench.model import add
from bench.processes import local_stack, start_process, wait_until_polling
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.embedded.temporal import TemporalServer
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect

ANSWER_SECONDS = 1.0
"""Time of an answer of the model, with several heartbeats in it."""

BUSY = "while True: pass"


class TaskTimeout(Interceptor):
    """A client's interceptor that sets the timeout of workflow tasks."""

    def __init__(self, seconds: float) -> None:
        self.timeout = timedelta(seconds=seconds)

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _TaskTimeoutCalls(next, self.timeout)


class _TaskTimeoutCalls(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, timeout: timedelta) -> None:
        super().__init__(next)
        self.timeout = timeout

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        input.task_timeout = self.timeout
        return await super().start_workflow(input)


@dataclass(frozen=True)
class Load:
    """`busy` is the number of processes that do nothing but use a core."""

    conversations: int
    steps: int
    busy: int


@dataclass(frozen=True)
class Alarms:
    """The timeouts of one run, and the number of steps in which they could happen."""

    timeout_s: float
    steps: int
    heartbeats: int
    workflow_tasks: int
    took_s: float


def count_timeouts(events: Iterable[HistoryEvent]) -> Counter[str]:
    """Count the timeouts of heartbeats and of workflow tasks that a worker had begun."""
    found: Counter[str] = Counter()
    for event in events:
        found["heartbeats"] += _had_heartbeat_timeout(event)
        found["workflow_tasks"] += (
            event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT
            and event.workflow_task_timed_out_event_attributes.timeout_type
            == TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
        )
    return found


def _had_heartbeat_timeout(event: HistoryEvent) -> bool:
    """Tell whether an activity ended, or was tried again, because of its heartbeat."""
    match event.event_type:
        case EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            failure = event.activity_task_started_event_attributes.last_failure
        case EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
            failure = event.activity_task_timed_out_event_attributes.failure
        case _:
            return False
    return failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_HEARTBEAT


async def measure(timeouts: Sequence[float], load: Load, rounds: int) -> list[Alarms]:
    rows: list[Alarms] = []
    with tempfile.TemporaryDirectory(prefix="perdure-alarms-") as name:
        folder = Path(name)
        server = await TemporalServer.start(folder / "temporal", ui=False)
        busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(load.busy)]
        try:
            for nth in range(rounds):
                for timeout in timeouts if nth % 2 == 0 else timeouts[::-1]:
                    rows += [await run_load(folder, server.address, timeout, load)]
        finally:
            for process in busy:
                process.kill()
                process.wait()
            await server.stop()
    return rows


async def run_load(folder: Path, address: str, timeout: float, load: Load) -> Alarms:
    """Run all conversations on one worker process, and count the timeouts in their histories."""
    queue, loop = f"alarms-{uuid.uuid4()}", asyncio.get_running_loop()
    config = (await connect(address)).config()
    config["interceptors"] = [TaskTimeout(timeout)]
    temporal = temporalio.client.Client(**config)
    client = Client(temporal, FileStore(folder / "store"), task_queue=queue)
    log, command = folder / f"{queue}.log", [sys.executable, "-m", "perdure.worker"]
    own = {**local_stack(folder, address), "PERDURE_TASK_QUEUE": queue}
    worker = start_process(command, log, own)
    try:
        await wait_until_polling(worker, log)
        began = loop.time()
        agent = _agent(folder, load.steps, timeout)
        talks = await asyncio.gather(
            *(client.start("Add, again and again.", agent) for _ in range(load.conversations))
        )
        await asyncio.gather(*(talk.handle.result() for talk in talks))
        took = loop.time() - began
        counts: Counter[str] = Counter()
        for talk in talks:
            counts += count_timeouts((await talk.handle.fetch_history()).events)
    finally:
        worker.kill()
        worker.wait()
    steps = load.conversations * load.steps
    return Alarms(timeout, steps, counts["heartbeats"], counts["workflow_tasks"], took)


def _agent(folder: Path, steps: int, timeout: float) -> Agent:
    answers = [add(nth) | {"delay": ANSWER_SECONDS} for nth in range(steps)]
    script = folder / "script.json"
    script.write_text(json.dumps({"answers": [*answers, {"content": "done"}]}))
    return Agent(
        model=ModelSpec(name=f"scripted:{script}"),
        tools=("bench.tools:add",),
        heartbeat_timeout=timeout,
        idle_timeout=0.001,
        finished_timeout=0.001,
    )


def show(rows: Sequence[Alarms]) -> None:
    print(f"{'timeout':>8}{'steps':>8}{'heartbeats':>12}{'workflow tasks':>16}{'took':>8}")
    for row in rows:
        print(
            f"{row.timeout_s:7g}s{row.steps:8}{row.heartbeats:12}"
            f"{row.workflow_tasks:16}{row.took_s:7.0f}s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.false_alarms", description=__doc__)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--timeouts", type=float, nargs="+", default=[2, 3, 5])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--conversations", type=int, default=50)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--busy", type=int, default=2)
    options = parser.parse_args()
    load = Load(options.conversations, options.steps, options.busy)
    rows = asyncio.run(measure(options.timeouts, load, options.rounds))
    if options.output == "json":
        json.dump([asdict(row) for row in rows], sys.stdout, indent=2)
    else:
        show(rows)


if __name__ == "__main__":
    main()

"""A finished batch in a store of files, without Temporal and worker."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from perdure.cli.main import run_command_line
from perdure.evaluation.result import AttemptFailure, AttemptResult
from perdure.evaluation.sample import Sample, build_sample, conversation_id
from perdure.evaluation.score import Score
from perdure.evaluation.spec import parse_batch
from perdure.events.event import AnyEvent
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from tests.builders import ORIGIN, agent, opened_event, prompt, spec_event, user
from tests.cli.command import CompletedCommand, Perdure, clean_environment
from tests.evaluation.results import attempt

BATCH_NAME = "sums"
LOST_CONVERSATION_ID = conversation_id(BATCH_NAME, "lost", 0)
"""A conversation that never began."""

BATCH_FIELDS = {
    "name": BATCH_NAME,
    "dataset": "sums.jsonl",
    "agent": {"model": {"name": "scripted:sums.json"}},
    "scorers": [{"kind": "exact"}],
}


class InProcessCommand:
    """The command within this process, with other environment variables."""

    def __init__(
        self,
        env: Mapping[str, str],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        for name in os.environ.keys() - clean_environment().keys():
            monkeypatch.delenv(name)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        self._capsys = capsys

    def __call__(self, *args: str) -> CompletedCommand:
        code = run_command_line(list(args))
        out, err = self._capsys.readouterr()
        return CompletedCommand(code, out, err)


def store_only_command(folder: Path) -> Perdure:
    """Return the command as a process, with only the store in this folder."""
    return Perdure({**clean_environment(), **store_environment(folder)})


def store_environment(folder: Path) -> dict[str, str]:
    return {
        "TEMPORAL_ADDRESS": "127.0.0.1:1",
        "PERDURE_STORE": f"file://{folder / 'store'}",
        "PERDURE_DATA": str(folder / "data"),
    }


def record_batch(folder: Path) -> None:
    asyncio.run(_record_batch(FileStore(folder / "store")))


async def _record_batch(store: Store) -> None:
    """Record: 10 is right, 9 is wrong after a failed attempt, one is lost, one has not run."""
    batch = BatchFolder(store, "local", BATCH_NAME)
    right, wrong, lost, missing = (make_sample(name) for name in ("10", "9", "lost", "missing"))
    key, count, chunks = await batch.write_samples([wrong, right, lost, missing])
    record = BatchRecord(spec=parse_batch(BATCH_FIELDS), samples=key, count=count, chunks=chunks)
    await batch.save(record)
    for sample, number, value in ((right, 0, True), (wrong, 0, None), (wrong, 1, False)):
        await record_conversation(
            store, conversation_id(BATCH_NAME, sample.id, 0, number), f"{sample.id}, try {number}"
        )
        await batch.record_attempt(sample, make_attempt(sample.id, number, value))
    failure = AttemptFailure(
        kind="infrastructure", code="workflow_failed", detail="It never began."
    )
    await batch.record_attempt(
        lost, make_attempt("lost", 0, None).model_copy(update={"failure": failure})
    )
    await store.close()


def make_sample(name: str) -> Sample:
    return build_sample({"id": name, "input": f"What is {name}?", "metadata": {"of": name}})


def make_attempt(name: str, number: int, value: bool | None) -> AttemptResult:
    result = attempt(
        value, number=number, conversation_id=conversation_id(BATCH_NAME, name, 0, number)
    )
    return (
        result
        if value is None
        else result.model_copy(update={"scores": {"exact": make_score(value)}})
    )


def make_score(value: bool) -> Score:
    return Score(value=value)


async def record_conversation(store: Store, name: str, text: str) -> None:
    events: list[AnyEvent] = [
        opened_event(),
        spec_event(),
        prompt(),
        user(text),
        agent("That is all."),
    ]
    await EventLog(store, "local", name).append(events, base=0, origin=ORIGIN)

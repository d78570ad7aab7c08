"""A batch that has run, in a store of files: no Temporal and no worker is there."""

import asyncio
import os
from pathlib import Path

import pytest

from cli.main import outcome
from evaluation.result import Attempt, Failure
from evaluation.sample import Sample, conversation_id, sample_of
from evaluation.score import Score
from evaluation.spec import batch_of
from events.event import AnyEvent
from storage.batches import BatchFolder, Kept
from storage.files import FileStore
from storage.log import EventLog
from storage.store import Store
from tests.builders import ORIGIN, agent, configured, opened, prompt, user
from tests.cli.command import Ended, Perdure, clean_environment
from tests.evaluation.results import attempt

NAME = "sums"
LOST = conversation_id(NAME, "lost", 0)
"""A conversation that never began."""

TABLE = {
    "name": NAME,
    "dataset": "sums.jsonl",
    "agent": {"model": {"name": "scripted:sums.json"}},
    "scorers": [{"kind": "exact"}],
}


class Within:
    """The command within this process, with nothing but the store in this folder."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in os.environ.keys() - clean_environment().keys():
            monkeypatch.delenv(name)
        for name, value in environment(folder).items():
            monkeypatch.setenv(name, value)
        self._capsys = capsys

    def __call__(self, *args: str) -> Ended:
        code = outcome(list(args))
        out, err = self._capsys.readouterr()
        return Ended(code, out, err)


def alone(folder: Path) -> Perdure:
    """The command as a process of its own."""
    return Perdure({**clean_environment(), **environment(folder)})


def environment(folder: Path) -> dict[str, str]:
    return {
        "TEMPORAL_ADDRESS": "127.0.0.1:1",
        "PERDURE_STORE": f"file://{folder / 'store'}",
        "PERDURE_DATA": str(folder / "data"),
    }


def ran(folder: Path) -> None:
    asyncio.run(_ran(FileStore(folder / "store")))


async def _ran(store: Store) -> None:
    """Sample 10 is right, 9 is wrong after an attempt that failed, one is lost, one was not run."""
    batch = BatchFolder(store, "local", NAME)
    right, wrong, lost, missing = (sample(name) for name in ("10", "9", "lost", "missing"))
    key, count, chunks = await batch.keep_samples([wrong, right, lost, missing])
    kept = Kept(spec=batch_of(TABLE), samples=key, count=count, chunks=chunks)
    await batch.keep(kept)
    for made, number, value in ((right, 0, True), (wrong, 0, None), (wrong, 1, False)):
        await talked(store, conversation_id(NAME, made.id, 0, number), f"{made.id}, try {number}")
        await batch.record(made, tried(made.id, number, value))
    failure = Failure(kind="infrastructure", code="workflow_failed", detail="It never began.")
    await batch.record(lost, tried("lost", 0, None).model_copy(update={"failure": failure}))
    await store.close()


def sample(name: str) -> Sample:
    return sample_of({"id": name, "input": f"What is {name}?", "metadata": {"of": name}})


def tried(name: str, number: int, value: bool | None) -> Attempt:
    made = attempt(value, number=number, conversation_id=conversation_id(NAME, name, 0, number))
    return made if value is None else made.model_copy(update={"scores": {"exact": score(value)}})


def score(value: bool) -> Score:
    return Score(value=value)


async def talked(store: Store, name: str, words: str) -> None:
    told: list[AnyEvent] = [opened(), configured(), prompt(), user(words), agent("That is all.")]
    await EventLog(store, "local", name).append(told, base=0, origin=ORIGIN)

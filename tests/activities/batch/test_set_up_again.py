"""A sample whose set-up is retried on another machine keeps its recorded messages."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from perdure.activities.batch.samples import SampleActivities
from perdure.activities.support.resources import Resources
from perdure.agent.loop.attempt import Attempt
from perdure.agent.loop.steps import SetUp, Task
from perdure.evaluation.sample import build_sample, conversation_id
from perdure.evaluation.spec import parse_batch
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.events.messages import RecallEvent
from perdure.events.summary import EventSummary
from perdure.models.router import ModelRouter
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.files import FileStore
from perdure.storage.keys import conversation_prefix, event_key
from perdure.storage.log.event_log import EventLog
from tests.builders import opened_event, prompt, spec_event

NAME = "files"
CONVERSATION = conversation_id(NAME, "one", 0)

TABLE = {
    "name": NAME,
    "dataset": "one.jsonl",
    "agent": {"model": {"name": "scripted:none.json"}},
    "scorers": [{"kind": "exact"}],
}

BASE = 3
SET_UP, MESSAGE, RECALL = range(BASE, BASE + 3)


class Scene:
    """A conversation that has been opened, and machines with a disk each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = FileStore(folder / "store")
        self.log = EventLog(self.store, "local", CONVERSATION)
        self.samples = ""

    async def begin(self) -> None:
        batch = BatchFolder(self.store, "local", NAME)
        sample = build_sample({"id": "one", "input": "Read it.", "files": {"word.txt": "parrot\n"}})
        self.samples, count, chunks = await batch.write_samples([sample])
        spec = parse_batch(TABLE)
        await batch.save(BatchRecord(spec=spec, samples=self.samples, count=count, chunks=chunks))
        before: list[AnyEvent] = [opened_event(), spec_event(spec.agent), prompt()]
        await self.log.append(before, base=0, origin=self.origin("1"))

    def origin(self, activity: str) -> Origin:
        run = ActivityEnvironment().info.workflow_run_id
        assert run is not None
        return Origin(run=run, activity=activity)

    async def set_up(self, machine: str, nth: int) -> list[EventSummary]:
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, attempt=nth)
        world = Resources(self.store, ModelRouter(), self.folder / machine, home=f"queue@{machine}")
        attempt = Attempt(
            batch=NAME, sample="one", sample_set=self.samples, chunk=0, line=0, needs_setup=True
        )
        task: Task[Any] = Task(
            conversation_id=CONVERSATION,
            user_id="local",
            base=BASE,
            step=SetUp(attempt=attempt, spec_seq=1),
        )
        done: list[EventSummary] = await environment.run(SampleActivities(world).set_up, task)
        return done

    def word_file(self, machine: str) -> Path:
        return self.folder / machine / CONVERSATION / "word.txt"

    def lose(self, *slots: int) -> None:
        """The worker died before it wrote these events."""
        prefix = conversation_prefix("local", CONVERSATION)
        for seq in slots:
            (self.folder / "store" / (prefix + event_key(CONVERSATION, seq))).unlink()
        self.log = EventLog(self.store, "local", CONVERSATION)


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    await scene.begin()
    return scene


async def test_a_retry_returns_everything_that_was_recorded(scene: Scene) -> None:
    first = await scene.set_up("one", 1)
    assert [item.seq for item in first] == [SET_UP, MESSAGE, RECALL]
    assert await scene.set_up("another", 2) == first
    assert scene.word_file("another").read_text() == "parrot\n"


@pytest.mark.parametrize("lost", [(RECALL,), (MESSAGE, RECALL)])
async def test_missing_messages_are_recorded_with_the_restored_files(
    scene: Scene, lost: tuple[int, ...]
) -> None:
    await scene.set_up("one", 1)
    recall = (await scene.log.get(RECALL)).event
    assert isinstance(recall, RecallEvent)
    assert "word.txt" in str(recall.content)
    scene.lose(*lost)
    again = await scene.set_up("another", 2)
    assert [item.seq for item in again] == [SET_UP, MESSAGE, RECALL]
    once_more = (await scene.log.get(RECALL)).event
    assert isinstance(once_more, RecallEvent)
    assert str(once_more.content).replace("/another/", "/one/") == str(recall.content)


@pytest.mark.long
async def test_a_retry_returns_parts_that_this_machine_would_not_write(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await scene.set_up("one", 1)

    async def nowhere(*_: object) -> None:
        """Simulate a place from which no files can be had."""

    monkeypatch.setattr("perdure.activities.batch.samples.restore_files", nowhere)
    assert await scene.set_up("another", 2) == first

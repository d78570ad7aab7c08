"""A sample is set up once more, on another machine: what was said before is not said less of."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.samples import SampleActivities
from activities.world import World
from agent.steps import SetUp, Task
from agent.trial import Trial
from evaluation.sample import conversation_id, sample_of
from evaluation.spec import batch_of
from events.digest import Digest
from events.entry import Origin
from events.event import AnyEvent
from events.messages import RecallEvent
from models.models import Models
from storage.batches import BatchFolder, Kept
from storage.files import FileStore
from storage.keys import conversation_prefix, event_key
from storage.log import EventLog
from tests.builders import configured, opened, prompt

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
        sample = sample_of({"id": "one", "input": "Read it.", "files": {"word.txt": "parrot\n"}})
        self.samples, count, chunks = await batch.keep_samples([sample])
        spec = batch_of(TABLE)
        await batch.keep(Kept(spec=spec, samples=self.samples, count=count, chunks=chunks))
        before: list[AnyEvent] = [opened(), configured(spec.agent), prompt()]
        await self.log.append(before, base=0, origin=self.origin("1"))

    def origin(self, activity: str) -> Origin:
        run = ActivityEnvironment().info.workflow_run_id
        assert run is not None
        return Origin(run=run, activity=activity)

    async def set_up(self, machine: str, attempt: int) -> list[Digest]:
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, attempt=attempt)
        world = World(self.store, Models(), self.folder / machine, home=f"queue@{machine}")
        trial = Trial(batch=NAME, samples=self.samples, chunk=0, line=0, setup=True)
        task: Task[Any] = Task(
            conversation_id=CONVERSATION,
            user_id="local",
            base=BASE,
            step=SetUp(trial=trial, spec=1),
        )
        done: list[Digest] = await environment.run(SampleActivities(world).set_up, task)
        return done

    def word(self, machine: str) -> Path:
        return self.folder / machine / CONVERSATION / "word.txt"

    def lose(self, *slots: int) -> None:
        """The worker died before it wrote these events."""
        prefix = conversation_prefix("local", CONVERSATION)
        for seq in slots:
            (self.folder / "store" / (prefix + event_key(CONVERSATION, seq))).unlink()
        self.log = EventLog(self.store, "local", CONVERSATION)


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    found = Scene(tmp_path)
    await found.begin()
    return found


async def test_all_that_was_said_is_told_again(scene: Scene) -> None:
    first = await scene.set_up("one", 1)
    assert [one.seq for one in first] == [SET_UP, MESSAGE, RECALL]
    assert await scene.set_up("another", 2) == first
    assert scene.word("another").read_text() == "parrot\n"


@pytest.mark.parametrize("lost", [(RECALL,), (MESSAGE, RECALL)])
async def test_what_is_missing_is_said_with_the_files_at_hand(
    scene: Scene, lost: tuple[int, ...]
) -> None:
    await scene.set_up("one", 1)
    told = (await scene.log.at(RECALL)).event
    assert isinstance(told, RecallEvent)
    assert "word.txt" in str(told.content)
    scene.lose(*lost)
    again = await scene.set_up("another", 2)
    assert [one.seq for one in again] == [SET_UP, MESSAGE, RECALL]
    once_more = (await scene.log.at(RECALL)).event
    assert isinstance(once_more, RecallEvent)
    assert str(once_more.content).replace("/another/", "/one/") == str(told.content)


async def test_more_than_this_machine_has_to_say_is_told_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await scene.set_up("one", 1)

    async def nowhere(*_: object) -> None:
        """As where the files cannot be had."""

    monkeypatch.setattr("activities.samples.restored", nowhere)
    assert await scene.set_up("another", 2) == first

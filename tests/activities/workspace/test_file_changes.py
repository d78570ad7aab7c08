"""A worker records what a turn changed in a directory of the user's, also after a restart."""

import asyncio
from pathlib import Path

import pytest

from perdure.activities.support.resources import Resources
from perdure.activities.workspace.file_changes import begin_changes, begin_scan, record_changes
from perdure.agent.spec import Agent
from perdure.client.file_changes import WorkspaceChanges, read_workspace_changes
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.models.router import ModelRouter
from perdure.secrets.registry import Secrets
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from tests.builders import SPEC, opened_event, spec_event, user

TOKEN = "tok-5f1e0c7a9b3d"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("one\n")
    return project


@pytest.fixture
def spec(project: Path) -> Agent:
    return SPEC.model_copy(update={"workspace": str(project)})


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(FileStore(tmp_path / "store"), "local", new_conversation_id())


def start_worker(log: EventLog, tmp_path: Path, secrets: Secrets | None = None) -> Resources:
    folder = tmp_path / "data/workspaces"
    folder.mkdir(parents=True, exist_ok=True)
    return Resources(log.store, ModelRouter(), folder, home="h", secrets=secrets or Secrets())


async def changes_of(log: EventLog) -> WorkspaceChanges:
    events: list[AnyEvent] = [opened_event(), spec_event(), user("Go.")]
    await log.append(events, base=0, origin=Origin(run="run", activity="1"))
    return await read_workspace_changes(log)


async def test_a_turn_that_a_second_worker_ends_is_recorded_as_a_whole(
    log: EventLog, tmp_path: Path, project: Path, spec: Agent
) -> None:
    first, second = start_worker(log, tmp_path), start_worker(log, tmp_path)
    begin_scan(first, spec, log)
    await begin_changes(first, spec, log, 5)
    (project / "a.py").write_text("two\n")
    # The first worker is gone; nothing of the turn is in the second one's memory.
    begin_scan(second, spec, log)
    await begin_changes(second, spec, log, 9)
    (project / "new").write_text("x\n")
    await record_changes(second, log, spec)
    (project / "a.py").write_text("by the user\n")
    await record_changes(second, log, spec)
    diff = (await changes_of(log)).diff()
    assert "-one\n+two\n" in diff
    assert "b/new" in diff
    assert "by the user" not in diff


async def test_every_action_waits_for_the_scan_before_it_changes_anything(
    log: EventLog, tmp_path: Path, project: Path, spec: Agent
) -> None:
    worker = start_worker(log, tmp_path)

    async def act(seq: int) -> None:
        await begin_changes(worker, spec, log, seq)
        (project / "a.py").write_text(f"{seq}\n")

    await asyncio.gather(act(5), act(6), act(7))
    await record_changes(worker, log, spec)
    (change,) = (await changes_of(log)).files
    assert change.before is not None
    assert change.before.text == "one\n"


async def test_a_text_with_a_secret_is_not_stored(
    log: EventLog, tmp_path: Path, project: Path, spec: Agent
) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "TOKEN").write_text(TOKEN)
    worker = start_worker(log, tmp_path, Secrets(folder))
    await begin_changes(worker, spec, log, 5)
    (project / "a.py").write_text(f"token = {TOKEN}\n")
    await record_changes(worker, log, spec)
    (change,) = (await changes_of(log)).files
    assert change.after is not None
    assert change.after.reason == "it holds the value of TOKEN"
    stored = b"".join(
        path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()
    )
    assert TOKEN.encode() not in stored


@pytest.mark.long
async def test_a_directory_with_too_many_files_is_said_and_stops_nothing(
    log: EventLog, tmp_path: Path, project: Path, spec: Agent
) -> None:
    for number in range(50_000):
        (project / str(number)).touch()
    worker = start_worker(log, tmp_path)
    await begin_changes(worker, spec, log, 5)
    await record_changes(worker, log, spec)
    (fault,) = (await changes_of(log)).faults
    assert "more than 50,000 files and folders" in fault


async def test_a_conversations_own_folder_has_no_records(log: EventLog, tmp_path: Path) -> None:
    worker = start_worker(log, tmp_path)
    own = SPEC.model_copy(update={"workspace": str(worker.workspaces / "parent")})
    (worker.workspaces / "parent").mkdir()
    for spec in (SPEC, own):
        await begin_changes(worker, spec, log, 5)
        await record_changes(worker, log, spec)
    assert worker.open_turns == {}
    assert not (worker.workspaces / ".baselines").exists()

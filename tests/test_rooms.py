"""The repository's own shape: one list of rooms, and every tool agrees on it."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import temporalio.client
from temporalio import activity

from perdure.activities.support.resources import Resources
from perdure.agent.loop.ask import Ask
from perdure.agent.loop.steps import Open, Step
from perdure.embedded.temporal import TemporalServer
from perdure.models.router import ModelRouter
from perdure.storage.open import open_store
from perdure.worker import build_worker

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "perdure"
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def test_the_floors_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["activities", "storage", "workflows", "worker.py"])
def test_what_stands_at_the_top_is_linked_into_the_package(name: str) -> None:
    """A copy would be changed in one place, and run from the other."""
    assert (PACKAGE / name).is_symlink()
    assert (PACKAGE / name).samefile(ROOT / name)


def test_no_module_of_ours_has_a_bare_name() -> None:
    """Every import says `perdure.`: a second copy of a module would have classes of its own."""
    for path in pkgutil.walk_packages([str(PACKAGE)], "perdure."):
        if path.name != "perdure.tools.shell.supervisor":
            importlib.import_module(path.name)
    rooms = {*ROOMS, "worker"}
    same = [module for name, module in sys.modules.items() if name.partition(".")[0] in rooms]
    files = [module.__file__ or "" for module in same]
    # A library may be called as a room: the environment may be in the folder, and is not ours.
    bare = [file for file in files if file.startswith(str(ROOT)) and sys.prefix not in file]
    assert not bare


async def test_every_kind_of_step_has_exactly_one_activity(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    client = await temporalio.client.Client.connect(temporal_server.address)
    world = Resources(open_store(tmp_path.as_uri()), ModelRouter(), tmp_path)
    activities = build_worker(client, "nobody asks", world).config()["activities"]
    names = [activity._Definition.must_from_callable(item).name for item in activities]
    of_batches = {f"batch.{name}" for name in ("check", "page", "survey", "follow", "lost")}
    steps = ("open", "prepare", "answers", "events", "prune")
    of_discussions = {f"discussion.{name}" for name in steps}
    of_webhooks = {"webhook.deliver", "webhook.record_failure"}
    of_schedules = {f"schedule.{name}" for name in ("fire", "survey", "interrupt")}
    others = {"sample.rescore", "sessions.ask", "sessions.survey"}
    others |= {*of_batches, *of_discussions, *of_schedules, *of_webhooks}
    assert others <= set(names)
    names = [name for name in names if name not in others]
    kinds = [step.model_fields["kind"].default for step in (*get_args(Step), Open, Ask)]
    assert sorted(map(str, names)) == sorted(kinds)

"""The repository's own shape: one list of rooms, and every tool agrees on it."""

import configparser
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
import temporalio.client
from temporalio import activity

from activities.world import World
from agent.ask import Ask
from agent.steps import Open, Step
from embedded.temporal import TemporalServer
from models.models import Models
from storage.open import open_store
from worker import build_worker

ROOT = Path(__file__).parents[1]
NOT_SHIPPED = {"bench", "docs", "examples", "tests"}
ROOMS = sorted({path.parent.name for path in ROOT.glob("*/__init__.py")} - NOT_SHIPPED)


def test_every_room_is_shipped() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shipped = config["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(shipped) == sorted([*ROOMS, "worker.py"])


def test_every_room_is_watched() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    assert sorted(config["importlinter"]["root_packages"].split()) == ROOMS


def test_the_floors_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("room", [*ROOMS, "worker"])
def test_our_rooms_are_ours(room: str) -> None:
    """Another distribution may also call a package `workflows`; ours must win."""
    file = importlib.import_module(room).__file__
    assert file is not None
    assert Path(file).parent in (ROOT, ROOT / room)


async def test_every_kind_of_step_has_exactly_one_activity(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    client = await temporalio.client.Client.connect(temporal_server.address)
    world = World(open_store(tmp_path.as_uri()), Models(), tmp_path)
    activities = build_worker(client, "nobody asks", world).config()["activities"]
    names = [activity._Definition.must_from_callable(one).name for one in activities]
    of_batches = {"batch.page", "batch.survey", "batch.follow", "batch.lost", "sample.rescore"}
    assert of_batches <= set(names)
    names = [name for name in names if name not in of_batches]
    kinds = [step.model_fields["kind"].default for step in (*get_args(Step), Open, Ask)]
    assert sorted(map(str, names)) == sorted(kinds)

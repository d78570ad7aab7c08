"""Today's code reads, shows, exports and goes on with every log that a version ever wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.evolve import fold
from agent.state import State
from cli.events_shown import told
from events.event import UnknownEvent
from events.projection import digest
from exports.openhands import openhands_events
from storage.files import FileStore
from storage.log import EventLog
from storage.verify import verify
from tests.house import House, says
from tests.record_logs import RELEASED, SHAPES, prompt_of

LOGS = sorted(RELEASED.glob("*/*.json"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


async def stored(path: Path, store: FileStore) -> dict[str, Any]:
    """What is on file of a log, its objects put into the store."""
    then: dict[str, Any] = json.loads(path.read_text())
    for key, body in then["objects"].items():
        await store.create(key, body.encode())
    return then


def holds(today: Any, then: Any) -> bool:
    """Whether all that was known then is known today; more may have been added."""
    if isinstance(then, dict) and isinstance(today, dict):
        return all(key in today and holds(today[key], value) for key, value in then.items())
    if isinstance(then, list) and isinstance(today, list) and len(then) == len(today):
        return all(map(holds, today, then))
    return bool(today == then)


def test_there_is_a_log_of_every_shape() -> None:
    newest = max(path.parent.name for path in LOGS)
    assert {path.stem for path in LOGS if path.parent.name == newest} >= set(SHAPES)


@pytest.mark.parametrize("path", LOGS, ids=name_of)
async def test_a_released_log_is_read_as_it_was(path: Path, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    then = await stored(path, store)
    log = EventLog(store, "local", then["conversation"])
    written = await log.read(0, await log.end())
    state = fold(State(), [digest(entry) for entry in written])
    assert holds(json.loads(state.model_dump_json()), then["state"])
    assert await prompt_of(log) == then["prompt"]
    assert not [one async for one in verify(log) if one.is_slot]
    assert len(openhands_events([entry.event for entry in written])) == len(written)
    for entry in written:
        assert not isinstance(entry.event, UnknownEvent)
        assert all(told(entry.event))


async def test_a_conversation_of_each_version_goes_on(house: House) -> None:
    await all_go_on(house, [path for path in LOGS if "with-tools" in path.stem])


@pytest.mark.long
async def test_released_conversations_go_on(house: House) -> None:
    await all_go_on(house, LOGS)


async def all_go_on(house: House, paths: list[Path]) -> None:
    store = house.world.store
    assert isinstance(store, FileStore)
    async with house.worker():
        for path in paths:
            then = await stored(path, store)
            if then["state"]["status"] != "closed":
                await goes_on(house, then)


async def goes_on(house: House, then: dict[str, Any]) -> None:
    """With a model that is at hand; its script begins with what was answered then."""
    talk = house.client.conversation(then["conversation"])
    spec = house.spec(*[says("yes")] * (2 * len(then["prompt"]) + 1))
    await talk.configure({"model": spec.model.model_dump(mode="json")})
    await talk.submit("Are you still there?", "again")
    state = await talk.finished("again")
    assert (state.status, state.turn) == ("finished", then["state"]["turn"] + 1), state.reason
    assert (await prompt_of(talk.log))[: len(then["prompt"])] == then["prompt"]

"""Today's code reads, shows, exports and goes on with every log that a version ever wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.cli.rendering.events import describe_event
from perdure.events.event import UnknownEvent
from perdure.events.projection import summarize
from perdure.exports.openhands import openhands_event
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.verify import verify
from tests.builders import state_fields
from tests.harness import ConversationHarness, text_answer
from tests.record_logs import RELEASED, SHAPES, prompt_of

LOGS = sorted(RELEASED.glob("*/*.json"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


async def restore_log(path: Path, store: FileStore) -> dict[str, Any]:
    """Put the objects of a recorded log into the store."""
    then: dict[str, Any] = json.loads(path.read_text())
    for key, body in then["objects"].items():
        await store.create(key, body.encode())
    return then


def contains(today: Any, then: Any) -> bool:
    """Tell whether the new value has all of the old one; more may have been added."""
    if isinstance(then, dict) and isinstance(today, dict):
        return all(key in today and contains(today[key], value) for key, value in then.items())
    if isinstance(then, list) and isinstance(today, list) and len(then) == len(today):
        return all(map(contains, today, then))
    return bool(today == then)


def test_there_is_a_log_of_every_shape() -> None:
    newest = max(path.parent.name for path in LOGS)
    assert {path.stem for path in LOGS if path.parent.name == newest} >= set(SHAPES)


@pytest.mark.parametrize("path", LOGS, ids=name_of)
async def test_a_released_log_is_read_as_it_was(path: Path, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    then = await restore_log(path, store)
    log = EventLog(store, "local", then["conversation"])
    written = await log.read(0, await log.end())
    state = fold(State(), [summarize(entry) for entry in written])
    assert contains(state_fields(state), then["state"])
    assert await prompt_of(log) == then["prompt"]
    assert not [item async for item in verify(log) if item.is_slot]
    assert all(openhands_event(entry.event) for entry in written)
    for entry in written:
        assert not isinstance(entry.event, UnknownEvent)
        assert all(describe_event(entry.event))


async def test_a_conversation_of_each_version_goes_on(harness: ConversationHarness) -> None:
    await continue_all(harness, [path for path in LOGS if "with-tools" in path.stem])


@pytest.mark.long
async def test_released_conversations_go_on(harness: ConversationHarness) -> None:
    await continue_all(harness, LOGS)


async def continue_all(harness: ConversationHarness, paths: list[Path]) -> None:
    store = harness.resources.store
    assert isinstance(store, FileStore)
    async with harness.worker():
        for path in paths:
            then = await restore_log(path, store)
            if then["state"]["status"] != "closed":
                await continue_conversation(harness, then)


async def continue_conversation(harness: ConversationHarness, then: dict[str, Any]) -> None:
    """With a model that is at hand; its script begins with what was answered then."""
    talk = harness.client.conversation(then["conversation"])
    spec = harness.spec(*[text_answer("yes")] * (2 * len(then["prompt"]) + 1))
    await talk.configure({"model": spec.model.model_dump(mode="json")})
    await talk.submit("Are you still there?", "again")
    state = await talk.wait_for_turn("again")
    assert (state.status, state.turn) == ("finished", then["state"]["turn"] + 1), state.reason
    assert (await prompt_of(talk.log))[: len(then["prompt"])] == then["prompt"]

"""`llm_messages.json`: what was said is left beside the log of a conversation that closes."""

import json
import logging
import uuid
from pathlib import Path
from typing import Any

import pytest

from activities.llm_messages import save_messages
from activities.world import World
from agent.state import State
from client.client import Client
from client.connect import connect
from embedded.temporal import TemporalServer
from models.models import Models
from settings.settings import Settings
from storage.files import FileStore
from storage.keys import LLM_MESSAGES, conversation_prefix
from storage.log import EventLog
from tests.builders import opened, updated, user
from tests.exports.checks import faults_of_messages
from tests.house import House, calls, says
from tests.storage.made import by, log_in
from tests.storage.memory import MemoryStore

SAID = State(first=1)


async def kept(log: EventLog) -> Any:
    place = conversation_prefix(log.user_id, log.conversation_id) + LLM_MESSAGES
    body = await log.store.read(place)
    return None if body is None else json.loads(body)


async def closed(temporal_server: TemporalServer, folder: Path, saves: bool) -> Any:
    """What is left of a conversation that took place and was closed."""
    temporal = await connect(temporal_server.address)
    store = FileStore(folder / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    world = World(store, Models(), folder / "workspaces", save_llm_messages=saves)
    house = House(client, world, folder)
    async with house.worker():
        talk = await client.start("Add.", house.spec(calls(("add", {"a": 2, "b": 3})), says("5.")))
        await talk.finished()
        await talk.close()
        await talk.handle.result()
    return await kept(talk.log)


async def test_a_conversation_that_closes_leaves_all_that_was_said(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    messages = (await closed(temporal_server, tmp_path, saves=True))["messages"]
    assert faults_of_messages(messages) == []
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [messages[1]["content"], messages[-1]["content"]] == ["Add.", "5."]


async def test_nothing_is_left_where_nobody_wants_it(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    assert await closed(temporal_server, tmp_path, saves=False) is None


@pytest.mark.parametrize("word", ["0", "false", "no", "False", "NO"])
def test_a_word_in_the_environment_is_enough(word: str) -> None:
    assert Settings().save_llm_messages
    assert not Settings(save_llm_messages=word).save_llm_messages


async def test_nothing_is_left_by_a_delegate_or_where_nobody_said_a_word() -> None:
    child, silent = log_in(MemoryStore()), log_in(MemoryStore())
    parent = {"run_id": "run", "parent": {"conversation_id": silent.conversation_id, "action": 4}}
    await child.append([updated("opened", parent), user()], base=0, origin=by("1"))
    await silent.append([opened()], base=0, origin=by("1"))
    await save_messages(child, SAID)
    await save_messages(silent, State())
    assert (await kept(child), await kept(silent)) == (None, None)


async def test_what_keeps_it_from_being_written_is_logged_and_nothing_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Full(MemoryStore):
        async def replace(self, key: str, body: bytes) -> None:  # noqa: ARG002
            raise OSError("no space left")

    log = log_in(Full())
    await log.append([opened(), user()], base=0, origin=by("1"))
    with caplog.at_level(logging.WARNING):
        await save_messages(log, SAID)
    assert f"llm_messages.json of {log.conversation_id} is not written" in caplog.text
    assert "no space left" in caplog.text

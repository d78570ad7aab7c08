"""State, segments and `llm_messages.json` are written when a turn or a conversation ends."""

import json
import logging
import uuid
from pathlib import Path
from typing import Any

import pytest

from perdure.activities.support.resources import Resources
from perdure.activities.support.save_state import save_closed, save_messages
from perdure.agent.loop.state import State
from perdure.agent.spec import ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.saved import wait_until_saved
from perdure.embedded.temporal import TemporalServer
from perdure.models.router import ModelRouter
from perdure.settings.settings import Settings, load_settings
from perdure.storage.files import FileStore
from perdure.storage.keys import LLM_MESSAGES, conversation_prefix, event_id, event_key
from perdure.storage.log.cached_state import encode_cached_state, parse_cached_state
from perdure.storage.log.event_log import EventLog
from perdure.temporal.connect import connect
from tests.builders import SPEC, action, observation, opened_event, state_update, user
from tests.exports.checks import message_faults
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.storage.made import log_in, origin_by
from tests.storage.memory import MemoryStore

STATE = State(first_user_seq=1, next_seq=2)


async def stored_messages(log: EventLog) -> Any:
    place = conversation_prefix(log.user_id, log.conversation_id) + LLM_MESSAGES
    body = await log.store.read(place)
    return None if body is None else json.loads(body)


async def close_conversation(temporal_server: TemporalServer, folder: Path, saves: bool) -> Any:
    """Run and close a conversation; return its stored messages."""
    temporal = await connect(temporal_server.address)
    store = FileStore(folder / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    world = Resources(store, ModelRouter(), folder / "workspaces", save_llm_messages=saves)
    harness = ConversationHarness(client, world, folder)
    async with harness.worker():
        talk = await client.start(
            "Add.", harness.spec(tool_call_answer(("add", {"a": 2, "b": 3})), text_answer("5."))
        )
        await talk.wait_for_turn()
        await talk.close()
        await talk.handle.result()
    return await stored_messages(talk.log)


@pytest.mark.long
async def test_a_closed_conversation_has_an_llm_messages_object(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    messages = (await close_conversation(temporal_server, tmp_path, saves=True))["messages"]
    assert message_faults(messages) == []
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [messages[1]["content"], messages[-1]["content"]] == ["Add.", "5."]


async def test_llm_messages_are_not_written_without_the_setting(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    assert await close_conversation(temporal_server, tmp_path, saves=False) is None


async def test_a_turn_that_ends_has_left_its_messages(harness: ConversationHarness) -> None:
    async with harness.worker():
        talk = await harness.client.start(
            "First.", harness.spec(text_answer("One."), text_answer("Two."))
        )
        assert await texts_after_turn(talk) == ["First.", "One."]
        await talk.send("Second.")
        assert await texts_after_turn(talk) == ["First.", "One.", "Second.", "Two."]


async def texts_after_turn(talk: Conversation) -> list[str]:
    """Return the messages that are stored once the state after a turn is."""
    await talk.result()
    await wait_until_saved(talk.log, await talk.log.end())
    messages = (await stored_messages(talk.log))["messages"]
    return [message["content"] for message in messages if message["role"] != "system"]


async def test_a_turn_that_failed_has_left_its_messages(harness: ConversationHarness) -> None:
    spec = harness.spec(
        *[tool_call_answer(("add", {"a": 1, "b": 1}))] * 3, limits={"max_iterations": 2}
    )
    async with harness.worker():
        talk = await harness.client.start("Add.", spec)
        state = await talk.wait_for_turn()
        assert state.status == "error"
        await wait_until_saved(talk.log, state.next_seq)
        roles = [message["role"] for message in (await stored_messages(talk.log))["messages"]]
        assert [role for role in roles if role != "user"] == ["system", *["assistant", "tool"] * 2]


@pytest.mark.long
async def test_a_conversation_that_waits_has_no_messages_before_its_workflow_ends(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(("add", {"a": 1, "b": 1})),
        confirmation={"policy": "always"},
        idle_timeout=2.0,
    )
    async with harness.worker():
        talk = await harness.client.start("Add.", spec)
        state = await talk.wait_for_turn()
        assert state.status == "waiting_for_confirmation"
        await wait_until_saved(talk.log, state.next_seq)
        assert await stored_messages(talk.log) is None
        await talk.handle.result()
        messages = (await stored_messages(talk.log))["messages"]
        assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]


async def test_waiting_for_what_is_never_saved_ends() -> None:
    log = log_in(MemoryStore())
    await log.save_state(encode_cached_state(STATE))
    await wait_until_saved(log, STATE.next_seq + 1, max_wait=0.05)
    assert parse_cached_state(await log.load_state()).state.next_seq == STATE.next_seq


@pytest.mark.parametrize("word", ["0", "false", "no", "False", "NO", " 0 ", "\tNo\n"])
def test_the_environment_turns_llm_messages_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_SAVE_LLM_MESSAGES", word)
    assert not load_settings().save_llm_messages


@pytest.mark.parametrize("word", ["1", "true", "yes", "2", "off", "maybe", "", " "])
def test_every_other_word_leaves_llm_messages_on(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_SAVE_LLM_MESSAGES", word)
    assert load_settings().save_llm_messages


@pytest.mark.parametrize(("value", "saves"), [(True, True), (False, False), (0, False)])
def test_a_program_turns_llm_messages_on_and_off(value: bool, saves: bool) -> None:
    assert Settings(save_llm_messages=value).save_llm_messages is saves


async def test_long_results_are_cut_in_the_file_as_the_model_has_it() -> None:
    log = log_in(MemoryStore())
    seen = observation(event_id(log.conversation_id, 2), words="a" * 30 + "b" * 30)
    await log.append(
        [opened_event(), user("c" * 60), action(), seen], base=0, origin=origin_by("1")
    )
    spec = SPEC.model_copy(update={"model": ModelSpec(name="m", max_message_chars=20)})
    await save_messages(log, State(first_user_seq=1, next_seq=4, spec=spec))
    messages = (await stored_messages(log))["messages"]
    note = "\n[... Observation truncated due to length ...]\n"
    assert messages[-1]["content"] == "a" * 10 + note + "b" * 10
    assert messages[0]["content"] == "c" * 60


async def test_a_closed_conversation_has_its_state_and_sealed_segments(tmp_path: Path) -> None:
    log = log_in(MemoryStore())
    await log.append([opened_event(), user()], base=0, origin=origin_by("1"))
    resources = Resources(log.store, ModelRouter(), tmp_path, save_llm_messages=False)
    await save_closed(resources, log, STATE)
    assert parse_cached_state(await log.load_state()).state == STATE
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    assert any("/segments/" in key for key in await log.store.list(prefix))


async def test_writing_llm_messages_reads_nothing_but_the_slots_that_are_there() -> None:
    class Noting(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.requests: list[str] = []

        async def read(self, key: str) -> bytes | None:
            self.requests.append(key)
            return await super().read(key)

        async def list(self, prefix: str, after: str = "", limit: int = 1_000) -> list[str]:
            self.requests.append(prefix)
            return await super().list(prefix, after, limit)

    store = Noting()
    log = log_in(store)
    await log.append([opened_event(), user()], base=0, origin=origin_by("1"))
    store.requests.clear()
    await save_messages(log, STATE)
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    events = {prefix + event_key(log.conversation_id, seq) for seq in range(STATE.next_seq)}
    assert {key for key in store.requests if "/events/" in key} <= events
    assert [message["role"] for message in (await stored_messages(log))["messages"]] == ["user"]


async def test_llm_messages_are_not_written_for_a_delegate_or_an_empty_log() -> None:
    child, silent = log_in(MemoryStore()), log_in(MemoryStore())
    parent = {"run_id": "run", "parent": {"conversation_id": silent.conversation_id, "action": 4}}
    await child.append([state_update("opened", parent), user()], base=0, origin=origin_by("1"))
    await silent.append([opened_event()], base=0, origin=origin_by("1"))
    await save_messages(child, STATE)
    await save_messages(silent, State())
    assert (await stored_messages(child), await stored_messages(silent)) == (None, None)


async def test_an_error_of_writing_llm_messages_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Full(MemoryStore):
        async def replace(self, key: str, body: bytes) -> None:  # noqa: ARG002
            raise OSError("no space left")

    log = log_in(Full())
    await log.append([opened_event(), user()], base=0, origin=origin_by("1"))
    with caplog.at_level(logging.WARNING):
        await save_messages(log, STATE)
    assert f"llm_messages.json of {log.conversation_id} is not written" in caplog.text
    assert "no space left" in caplog.text

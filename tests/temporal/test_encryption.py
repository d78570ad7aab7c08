"""Texts of a conversation in Temporal's own files, with a key and without one."""

import asyncio
import base64
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import temporalio.client
from pydantic import SecretStr
from temporalio.api.failure.v1 import Failure
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from perdure.activities.support.resources import Resources
from perdure.agent.loop.inbox import UserMessage
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect
from perdure.workflows.conversation import Conversation as Workflow
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.watching import wait_for_growth, wait_for_status, wait_until

OLD, NEW = (f"{name}:{base64.b64encode(name.encode() * 16).decode()}" for name in ("k1", "k2"))


def make_house(temporal: temporalio.client.Client, folder: Path) -> ConversationHarness:
    store = FileStore(folder / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    return ConversationHarness(
        client, Resources(store, ModelRouter(), folder / "workspaces"), folder
    )


async def make_house_with_keys(
    server: TemporalServer, keys: str | None, folder: Path
) -> ConversationHarness:
    secret = None if keys is None else SecretStr(keys)
    return make_house(await connect(server.address, secret), folder)


class Canaries:
    """Words that nobody else says, each in one place of a conversation."""

    PLACES = ("message", "command", "progress", "answer", "title", "broken", "refused", "second")

    def __init__(self) -> None:
        self.words = {place: str(uuid.uuid4().int) for place in self.PLACES}

    def __getitem__(self, place: str) -> str:
        return self.words[place]

    def within(self, data: bytes) -> set[str]:
        """The places whose words are there, as they are or somewhere in base64."""
        return {
            place
            for place, word in self.words.items()
            if any(spelling in data for spelling in encodings_of(word))
        }


def encodings_of(word: str) -> Iterator[bytes]:
    """Yield the word and its base64 forms, which depend on the text before it."""
    yield word.encode()
    for shift in range(3):
        yield base64.b64encode(bytes(shift) + word.encode())[4:-4]


async def run_conversation(
    harness: ConversationHarness, say: Canaries, at_work: Callable[[str], bool]
) -> Conversation:
    """A conversation with signals, updates, queries, heartbeats and failing steps.

    While a place is at work, `at_work` is asked until it says yes.
    """
    spec = harness.spec(
        tool_call_answer(("terminal", {"command": say["command"]})),
        tool_call_answer(("charge", {"amount": int(say["progress"]), "seconds": 90})),
        {"content": "Done.", "failures": [{"status": 503, "message": say["broken"]}]},
        {
            "content": f"{say['answer']} and so on.",
            "chunk_delay": 90,
            "failures": [{"status": 400, "message": say["refused"]}],
        },
        tools=("tests.example_tools:TOOLS", "terminal"),
    )
    talk = await harness.client.start(say["message"], spec)
    await wait_for_growth(talk, "tool.call", say["progress"])
    await wait_until(lambda: at_work("progress"))
    await talk.handle.signal("interrupt")
    await wait_for_status(talk, "idle")
    await talk.resume()
    await wait_for_status(talk, "finished")
    await talk.handle.execute_update("note", {"title": say["title"]})
    await talk.submit(say["second"], "second")
    failed = await wait_for_status(talk, "error")
    assert say["refused"] in (failed.reason or "")
    await talk.resume()
    await wait_for_growth(talk, "llm.chat", say["answer"])
    await wait_until(lambda: at_work("answer"))
    await talk.handle.signal("interrupt")
    await wait_for_status(talk, "idle")
    return talk


def server_bytes(server: TemporalServer) -> bytes:
    """Return all that the server has written."""
    folder = server.process.log.parent
    return b"".join(path.read_bytes() for path in folder.glob("temporal.sqlite*"))


def history_bytes(history: WorkflowHistory) -> bytes:
    """Return a history in JSON, followed by its decoded base64."""
    text = history.to_json()
    data = re.findall(r'"(?:data|encoding|encryption-key-id)": ?"([^"]*)"', text)
    return b"\n".join([text.encode(), *map(base64.b64decode, data)])


@pytest.fixture
def say() -> Canaries:
    return Canaries()


@pytest.mark.long
async def test_without_a_key_texts_are_found_in_temporals_files(
    temporal_server: TemporalServer, tmp_path: Path, say: Canaries
) -> None:
    harness = await make_house_with_keys(temporal_server, None, tmp_path)
    async with harness.worker():
        talk = await run_conversation(
            harness, say, lambda place: place in say.within(server_bytes(temporal_server))
        )
        history = await talk.handle.fetch_history()
    lasting = set(Canaries.PLACES) - {"progress", "answer"}
    assert say.within(server_bytes(temporal_server)) >= lasting
    assert say.within(history_bytes(history)) >= lasting


@pytest.mark.long
async def test_with_a_key_no_text_is_found_and_the_conversation_goes_on(
    temporal_server: TemporalServer, tmp_path: Path, say: Canaries
) -> None:
    harness = await make_house_with_keys(temporal_server, OLD, tmp_path)
    async with harness.worker():
        talk = await run_conversation(
            harness, say, lambda _: not say.within(server_bytes(temporal_server))
        )
        status = await talk.status()
        described = await talk.handle.describe()
        await talk.close()
        await talk.handle.result()
        history = await talk.handle.fetch_history()
    assert say.within(server_bytes(temporal_server)) == set()
    assert say.within(history_bytes(history)) == set()
    assert say["message"] in (await described.static_summary() or "")
    assert status.title == say["title"]
    converter = harness.client.temporal.data_converter
    replayer = Replayer(workflows=[Workflow], data_converter=converter, debug_mode=True)
    await replayer.replay_workflow(history)


@pytest.mark.long
async def test_a_conversation_goes_on_under_a_new_key_that_began_without_one(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    clear, old, new = [
        await make_house_with_keys(temporal_server, keys, tmp_path)
        for keys in (None, OLD, f"{NEW},{OLD}")
    ]
    old.client.task_queue = new.client.task_queue = clear.client.task_queue
    talk = await clear.client.start(
        "one", clear.spec(text_answer("First."), text_answer("Second."))
    )
    await old.client.conversation(talk.id).handle.signal("send_message", UserMessage(text="two"))
    async with new.worker():
        await new.client.conversation(talk.id).wait_for_turn()
        history = await talk.handle.fetch_history()
    under = re.findall(rb"k1|k2|json/plain", history_bytes(history))
    assert set(under) == {b"json/plain", b"k1", b"k2"}


@pytest.mark.parametrize(
    ("keys", "fault"),
    [(NEW, "PERDURE_PAYLOAD_KEYS has only 'k2'"), (None, "no key is set here")],
    ids=["another key", "no key"],
)
async def test_a_worker_without_the_key_fails_with_a_readable_error(
    temporal_server: TemporalServer, tmp_path: Path, keys: str | None, fault: str
) -> None:
    mine, other = [
        await make_house_with_keys(temporal_server, each, tmp_path) for each in (OLD, keys)
    ]
    talk = await mine.client.start("one", mine.spec(text_answer("First.")))
    other.client.task_queue = mine.client.task_queue
    async with other.worker():
        failure = await failed_task(talk)
    await talk.handle.terminate()
    sentence = f"{failure.message}: {failure.cause.message}"
    assert f"is encrypted with the key 'k1', and {fault}" in sentence


@pytest.mark.long
async def test_a_long_conversation_hands_over_to_its_next_run_encrypted(
    temporal_server: TemporalServer, tmp_path: Path, say: Canaries
) -> None:
    harness = await make_house_with_keys(temporal_server, OLD, tmp_path)
    steps = [tool_call_answer(("add", {"a": nth, "b": 1})) for nth in range(170)]
    spec = harness.spec(*steps, text_answer("Done."))
    async with harness.worker():
        talk = await harness.client.start(say["message"], spec)
        first = (await talk.workflow.handle.describe()).run_id
        await talk.wait_for_turn()
        history = await talk.handle.fetch_history()
        assert (await talk.handle.describe()).run_id != first
    assert say.within(server_bytes(temporal_server)) == set()
    started = history.events[0].workflow_execution_started_event_attributes
    assert started.input.payloads[0].metadata["encryption-key-id"] == b"k1"


async def failed_task(talk: Conversation) -> Failure:
    """Return the reason why a task of the workflow failed, once one has."""
    async with asyncio.timeout(60):
        while True:
            for event in (await talk.handle.fetch_history()).events:
                if event.HasField("workflow_task_failed_event_attributes"):
                    return event.workflow_task_failed_event_attributes.failure
            await asyncio.sleep(0.05)

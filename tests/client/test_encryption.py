"""What of a conversation can be found in Temporal's own files, with a key and without one."""

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

from activities.world import World
from agent.inbox import Said
from client.client import Client
from client.connect import connect
from client.conversation import Conversation
from embedded.temporal import TemporalServer
from models.models import Models
from storage.files import FileStore
from tests.house import House, calls, says
from tests.workflows.watching import growing, seen, until
from workflows.conversation import Conversation as Workflow

OLD, NEW = (f"{name}:{base64.b64encode(name.encode() * 16).decode()}" for name in ("k1", "k2"))


def house_of(temporal: temporalio.client.Client, folder: Path) -> House:
    store = FileStore(folder / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    return House(client, World(store, Models(), folder / "workspaces"), folder)


async def house_with(server: TemporalServer, keys: str | None, folder: Path) -> House:
    secret = None if keys is None else SecretStr(keys)
    return house_of(await connect(server.address, secret), folder)


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
            if any(spelling in data for spelling in spelled(word))
        }


def spelled(word: str) -> Iterator[bytes]:
    """The word, and what base64 makes of it, which depends on what stands before it."""
    yield word.encode()
    for shift in range(3):
        yield base64.b64encode(bytes(shift) + word.encode())[4:-4]


async def talked(house: House, say: Canaries, at_work: Callable[[str], bool]) -> Conversation:
    """A conversation with signals, updates, queries, heartbeats and failing steps.

    While a place is at work, `at_work` is asked until it says yes.
    """
    spec = house.spec(
        calls(("terminal", {"command": say["command"]})),
        calls(("charge", {"amount": int(say["progress"]), "seconds": 90})),
        {"content": "Done.", "failures": [{"status": 503, "message": say["broken"]}]},
        {
            "content": f"{say['answer']} and so on.",
            "chunk_delay": 90,
            "failures": [{"status": 400, "message": say["refused"]}],
        },
        tools=("tests.tools_at_hand:TOOLS", "terminal"),
    )
    talk = await house.client.start(say["message"], spec)
    await growing(talk, "tool.call", say["progress"])
    await seen(lambda: at_work("progress"))
    await talk.handle.signal("interrupt")
    await until(talk, "idle")
    await talk.resume()
    await until(talk, "finished")
    await talk.handle.execute_update("note", {"title": say["title"]})
    await talk.submit(say["second"], "second")
    failed = await until(talk, "error")
    assert say["refused"] in (failed.reason or "")
    await talk.resume()
    await growing(talk, "llm.chat", say["answer"])
    await seen(lambda: at_work("answer"))
    await talk.handle.signal("interrupt")
    await until(talk, "idle")
    return talk


def kept(server: TemporalServer) -> bytes:
    """All that the server has written."""
    folder = server.process.log.parent
    return b"".join(path.read_bytes() for path in folder.glob("temporal.sqlite*"))


def told(history: WorkflowHistory) -> bytes:
    """A history in JSON, followed by all that is in base64 there."""
    text = history.to_json()
    data = re.findall(r'"(?:data|encoding|encryption-key-id)": ?"([^"]*)"', text)
    return b"\n".join([text.encode(), *map(base64.b64decode, data)])


@pytest.fixture
def say() -> Canaries:
    return Canaries()


@pytest.mark.long
async def test_without_a_key_all_is_found_in_temporals_files(
    temporal_server: TemporalServer, tmp_path: Path, say: Canaries
) -> None:
    house = await house_with(temporal_server, None, tmp_path)
    async with house.worker():
        talk = await talked(house, say, lambda place: place in say.within(kept(temporal_server)))
        history = await talk.handle.fetch_history()
    lasting = set(Canaries.PLACES) - {"progress", "answer"}
    assert say.within(kept(temporal_server)) >= lasting
    assert say.within(told(history)) >= lasting


@pytest.mark.long
async def test_with_a_key_nothing_is_found_and_all_goes_on(
    temporal_server: TemporalServer, tmp_path: Path, say: Canaries
) -> None:
    house = await house_with(temporal_server, OLD, tmp_path)
    async with house.worker():
        talk = await talked(house, say, lambda _: not say.within(kept(temporal_server)))
        status = await talk.status()
        described = await talk.handle.describe()
        await talk.close()
        await talk.handle.result()
        history = await talk.handle.fetch_history()
    assert say.within(kept(temporal_server)) == set()
    assert say.within(told(history)) == set()
    assert say["message"] in (await described.static_summary() or "")
    assert status.title == say["title"]
    converter = house.client.temporal.data_converter
    replayer = Replayer(workflows=[Workflow], data_converter=converter, debug_mode=True)
    await replayer.replay_workflow(history)


async def test_a_conversation_goes_on_under_a_new_key_that_began_without_one(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    clear, old, new = [
        await house_with(temporal_server, keys, tmp_path) for keys in (None, OLD, f"{NEW},{OLD}")
    ]
    old.client.task_queue = new.client.task_queue = clear.client.task_queue
    talk = await clear.client.start("one", clear.spec(says("First."), says("Second.")))
    await old.client.conversation(talk.id).handle.signal("send_message", Said(text="two"))
    async with new.worker():
        await new.client.conversation(talk.id).finished()
        history = await talk.handle.fetch_history()
    under = re.findall(rb"k1|k2|json/plain", told(history))
    assert set(under) == {b"json/plain", b"k1", b"k2"}


@pytest.mark.parametrize(
    ("keys", "fault"),
    [(NEW, "PERDURE_PAYLOAD_KEYS has only 'k2'"), (None, "no key is set here")],
    ids=["another key", "no key"],
)
async def test_a_worker_that_lacks_the_key_says_so_in_clear(
    temporal_server: TemporalServer, tmp_path: Path, keys: str | None, fault: str
) -> None:
    mine, other = [await house_with(temporal_server, each, tmp_path) for each in (OLD, keys)]
    talk = await mine.client.start("one", mine.spec(says("First.")))
    other.client.task_queue = mine.client.task_queue
    async with other.worker():
        failure = await failed_task(talk)
    await talk.handle.terminate()
    said = f"{failure.message}: {failure.cause.message}"
    assert f"is encrypted with the key 'k1', and {fault}" in said


@pytest.mark.long
async def test_a_long_conversation_hands_over_to_its_next_run_encrypted(
    temporal_server: TemporalServer, tmp_path: Path, say: Canaries
) -> None:
    house = await house_with(temporal_server, OLD, tmp_path)
    steps = [calls(("add", {"a": nth, "b": 1})) for nth in range(170)]
    spec = house.spec(*steps, says("Done."))
    async with house.worker():
        talk = await house.client.start(say["message"], spec)
        first = (await talk.remote.handle.describe()).run_id
        await talk.finished()
        history = await talk.handle.fetch_history()
        assert (await talk.handle.describe()).run_id != first
    assert say.within(kept(temporal_server)) == set()
    started = history.events[0].workflow_execution_started_event_attributes
    assert started.input.payloads[0].metadata["encryption-key-id"] == b"k1"


async def failed_task(talk: Conversation) -> Failure:
    """Why a task of the workflow failed, once one has."""
    async with asyncio.timeout(60):
        while True:
            for event in (await talk.handle.fetch_history()).events:
                if event.HasField("workflow_task_failed_event_attributes"):
                    return event.workflow_task_failed_event_attributes.failure
            await asyncio.sleep(0.05)

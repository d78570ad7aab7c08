"""An outage of store, disk or Temporal is reported, and conversations go on afterwards."""

import asyncio
import contextlib
import dataclasses
import logging
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from perdure.cli.follow import note_trouble
from perdure.cli.rendering.live_region import run_beside
from perdure.embedded.temporal import TemporalServer
from perdure.events.tools import AgentErrorEvent
from perdure.operations.watchdog import Watchdog
from perdure.storage.errors import StoreUnavailable
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.troubles import TROUBLE_TIMEOUT, wait_for_trouble, wait_until_well
from tests.workflows.watching import events, observations, wait_for_growth

pytestmark = pytest.mark.long

T = TypeVar("T")


class UnavailableStore(FileStore):
    """A store that is not there while it is `away`."""

    away = False

    async def _in_thread(self, work: Callable[[Path], T], path: Path) -> T:
        if self.away:
            raise StoreUnavailable(f"The store in {self.root} does not answer.")
        return await super()._in_thread(work, path)


@pytest.fixture
def store(harness: ConversationHarness) -> UnavailableStore:
    """Return the store of the harness."""
    store = UnavailableStore(harness.folder / "store")
    harness.resources = dataclasses.replace(harness.resources, store=store)
    harness.client.store = store
    return store


async def test_an_unavailable_store_is_reported_until_it_is_back(
    harness: ConversationHarness, store: UnavailableStore, capsys: pytest.CaptureFixture[str]
) -> None:
    stderr = ""
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        async with run_beside(note_trouble(talk)), asyncio.timeout(TROUBLE_TIMEOUT):
            store.away = True
            await talk.workflow.signal_with_start("send_message", ["more"])
            await wait_for_trouble(talk, "The store in", "waiting for the store since", "by itself")
            while "does not answer" not in stderr:
                await asyncio.sleep(0.05)
                stderr += capsys.readouterr().err
            store.away = False
            while "It goes on." not in stderr:
                await asyncio.sleep(0.05)
                stderr += capsys.readouterr().err
        async with asyncio.timeout(TROUBLE_TIMEOUT):
            while (await talk.status()).turn < 2:
                await asyncio.sleep(0.05)
        assert (await talk.wait_for_turn()).response_count == 2
    assert stderr.count("The store in") == 1


async def test_a_store_that_fails_during_a_tool_call_is_reported(
    harness: ConversationHarness, store: UnavailableStore
) -> None:
    """The tool's result waits inside of the step, which does not fail."""
    async with harness.worker():
        spec = harness.spec(
            tool_call_answer(("charge", {"amount": 1, "seconds": 3})), text_answer("done")
        )
        talk = await harness.client.start("hi", spec)
        await wait_for_growth(talk, "tool.call", "charged")
        store.away = True
        await wait_for_trouble(talk, "The store in", "does not answer")
        store.away = False
        assert (await talk.wait_for_turn()).status == "finished"
        await wait_until_well(talk)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte, as full as `filler` is large."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("NOT CHECKED: a full disk (nobody may mount one here)")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler


async def test_a_full_disk_of_the_store_is_reported_until_there_is_room(
    harness: ConversationHarness, small: Path
) -> None:
    harness.client.store = FileStore(small / "store")
    harness.resources = dataclasses.replace(harness.resources, store=harness.client.store)
    async with harness.worker():
        filler = fill(small)
        talk = await harness.client.start("hi", harness.spec(text_answer("one")))
        await wait_for_trouble(talk, "No space left on device", "make room")
        filler.unlink()
        assert (await talk.wait_for_turn()).status == "finished"
        await wait_until_well(talk)


async def test_a_full_disk_of_the_workspace_is_reported_to_the_model(
    harness: ConversationHarness, small: Path
) -> None:
    write = {"command": "create", "path": "a.txt", "file_text": "x" * 50_000}
    shell = {"command": "head -c 50000 /dev/zero > b.txt"}
    spec = harness.spec(
        tool_call_answer(("file_editor", write)),
        tool_call_answer(("terminal", shell)),
        text_answer("There is no room."),
        tools=("file_editor", "terminal"),
        workspace=str(small),
    )
    async with harness.worker():
        fill(small)
        talk = await harness.client.start("hi", spec)
        state = await talk.wait_for_turn()
    assert state.status == "finished"
    errors = [event.error for event in await events(talk, AgentErrorEvent)]
    answers = [*errors, *await observations(talk)]
    assert len(answers) == 2
    assert all("No space left on device" in answer for answer in answers)


class TcpProxy:
    """A line to Temporal that can be cut."""

    def __init__(self, address: str) -> None:
        self.target = address.split(":")
        self.open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def restore(self) -> None:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        self.server.close()
        for writer in self.open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to, back = await asyncio.open_connection(*self.target)
        self.open |= {writer, back}
        await asyncio.gather(self._pipe(reader, back), self._pipe(to, writer))
        self.open -= {writer, back}

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()


async def test_an_unavailable_temporal_is_reported_and_the_worker_goes_on_afterwards(
    harness: ConversationHarness, temporal_server: TemporalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.worker")
    line = TcpProxy(temporal_server.address)
    await line.restore()
    harness.client.temporal = await connect(f"127.0.0.1:{line.port}")
    watchdog = Watchdog(harness.client, interval=0.2)
    async with harness.worker(), watchdog.watch():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        await line.cut()
        await wait_for_trouble(talk, "Temporal does not", "It goes on by itself")
        async with asyncio.timeout(TROUBLE_TIMEOUT):
            while not any("Temporal does not" in record.message for record in caplog.records):
                await asyncio.sleep(0.05)
        await line.restore()
        await wait_until_well(talk)
        await talk.send("more", message_id="m")
        assert (await talk.wait_for_turn("m")).status == "finished"
        async with asyncio.timeout(TROUBLE_TIMEOUT):
            while not any("answers again" in record.message for record in caplog.records):
                await asyncio.sleep(0.05)
    await line.cut()

"""A store, a disk or a Temporal that is away is told, and all goes on when it is back."""

import asyncio
import contextlib
import dataclasses
import logging
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from cli.following import beside, trouble
from client.connect import connect
from client.watchdog import Watchdog
from embedded.temporal import TemporalServer
from events.tools import AgentErrorEvent
from storage.errors import StoreUnavailable
from storage.files import FileStore
from tests.house import House, calls, says
from tests.workflows.troubles import LONGEST, told, well
from tests.workflows.watching import events, growing, observed

pytestmark = pytest.mark.long

T = TypeVar("T")


class Away(FileStore):
    """A store that is not there while it is `away`."""

    away = False

    def _attempt(self, work: Callable[[Path], T], path: Path) -> T:
        if self.away:
            raise StoreUnavailable(f"The store in {self.root} does not answer.")
        return super()._attempt(work, path)


@pytest.fixture
def store(house: House) -> Away:
    """What the house keeps everything in."""
    store = Away(house.folder / "store")
    house.world = dataclasses.replace(house.world, store=store)
    house.client.store = store
    return store


async def test_a_store_that_is_away_is_told_until_it_is_back(
    house: House, store: Away, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ""
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        async with beside(trouble(talk)), asyncio.timeout(LONGEST):
            store.away = True
            await talk.remote.signal_or_begin("send_message", ["more"])
            await told(talk, "The store in", "waiting for the store since", "by itself")
            while "does not answer" not in shown:
                await asyncio.sleep(0.05)
                shown += capsys.readouterr().err
            store.away = False
            while "It goes on." not in shown:
                await asyncio.sleep(0.05)
                shown += capsys.readouterr().err
        async with asyncio.timeout(LONGEST):
            while (await talk.status()).turn < 2:
                await asyncio.sleep(0.05)
        assert (await talk.finished()).answers == 2
    assert shown.count("The store in") == 1


async def test_a_store_that_goes_away_under_a_tool_is_told(house: House, store: Away) -> None:
    """Its result waits inside of the step, which does not fail."""
    async with house.worker():
        spec = house.spec(calls(("charge", {"amount": 1, "seconds": 3})), says("done"))
        talk = await house.client.start("hi", spec)
        await growing(talk, "tool.call", "charged")
        store.away = True
        await told(talk, "The store in", "does not answer")
        store.away = False
        assert (await talk.finished()).status == "finished"
        await well(talk)


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


async def test_a_full_disk_of_the_store_is_told_until_there_is_room(
    house: House, small: Path
) -> None:
    house.client.store = FileStore(small / "store")
    house.world = dataclasses.replace(house.world, store=house.client.store)
    async with house.worker():
        filler = fill(small)
        talk = await house.client.start("hi", house.spec(says("one")))
        await told(talk, "No space left on device", "make room")
        filler.unlink()
        assert (await talk.finished()).status == "finished"
        await well(talk)


async def test_a_full_disk_of_the_workspace_is_told_to_the_model(house: House, small: Path) -> None:
    write = {"command": "create", "path": "a.txt", "file_text": "x" * 50_000}
    shell = {"command": "head -c 50000 /dev/zero > b.txt"}
    spec = house.spec(
        calls(("file_editor", write)),
        calls(("terminal", shell)),
        says("There is no room."),
        tools=("file_editor", "terminal"),
        workspace=str(small),
    )
    async with house.worker():
        fill(small)
        talk = await house.client.start("hi", spec)
        state = await talk.finished()
    assert state.status == "finished"
    errors = [one.error for one in await events(talk, AgentErrorEvent)]
    answers = [*errors, *await observed(talk)]
    assert len(answers) == 2
    assert all("No space left on device" in one for one in answers)


class Line:
    """A line to Temporal that can be cut."""

    def __init__(self, address: str) -> None:
        self.target = address.split(":")
        self.open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def mend(self) -> None:
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


async def test_temporal_that_is_away_is_told_and_the_worker_goes_on_when_it_is_back(
    house: House, temporal_server: TemporalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.worker")
    line = Line(temporal_server.address)
    await line.mend()
    house.client.temporal = await connect(f"127.0.0.1:{line.port}")
    watchdog = Watchdog(house.client, every=0.2)
    async with house.worker(), watchdog.watching():
        talk = await house.client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        await line.cut()
        await told(talk, "Temporal does not", "It goes on by itself")
        async with asyncio.timeout(LONGEST):
            while not any("Temporal does not" in one.message for one in caplog.records):
                await asyncio.sleep(0.05)
        await line.mend()
        await well(talk)
        await talk.send("more", message_id="m")
        assert (await talk.finished("m")).status == "finished"
        async with asyncio.timeout(LONGEST):
            while not any("answers again" in one.message for one in caplog.records):
                await asyncio.sleep(0.05)
    await line.cut()

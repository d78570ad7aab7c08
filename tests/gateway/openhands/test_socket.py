"""OpenHands' socket tells the end of a run only where nothing else was asked for meanwhile."""

import asyncio
import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest

from perdure.events.event import AnyEvent
from perdure.gateway.following.ready_frame import ReadyFrame
from perdure.gateway.openhands.conversation import Call, OpenHandsDoor
from perdure.gateway.openhands.record import least_record
from perdure.gateway.openhands.runs import Runs
from perdure.gateway.openhands.socket import SocketSession
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from tests.builders import CONVERSATION, ORIGIN, agent, opened_event, prompt, spec_event, user
from tests.gateway.openhands.test_view import open_view
from tests.storage.memory import MemoryStore

KEY = ("anna", CONVERSATION)


class Wire:
    """A socket and the attachment of its client: what was sent, and the slots that are told."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.slots: asyncio.Queue[int] = asyncio.Queue()

    async def send_text(self, text: str) -> None:
        self.sent.put_nowait(json.loads(text))

    async def receive_text(self) -> str:
        return await asyncio.Future()

    async def batches(self) -> AsyncGenerator[list[ReadyFrame], None]:
        while True:
            yield [ReadyFrame("durable", "", await self.slots.get())]

    async def receive_through(self, key: str) -> list[str]:
        """Receive texts until one of the key; return the kinds or keys of all."""
        names: list[str] = []
        while key not in names:
            event = await asyncio.wait_for(self.sent.get(), 30)
            names.append(event.get("key") or event["kind"])
        return names


async def append(log: EventLog, *events: AnyEvent) -> int:
    """Append events; return the slot of the last one."""
    await log.append(events, base=await log.end(), origin=ORIGIN)
    return await log.end() - 1


@pytest.fixture
async def log() -> EventLog:
    log = EventLog(MemoryStore(), *KEY)
    await append(log, opened_event(), spec_event(), prompt())
    return log


async def test_an_end_with_a_message_behind_it_is_told_behind_the_message(log: EventLog) -> None:
    """The client may ask to run with that message, and would take the end for that run's."""
    wire = Wire()
    limits = SimpleNamespace(send_timeout=10.0)
    gateway = SimpleNamespace(followers=SimpleNamespace(limits=limits))
    to: Any = SimpleNamespace(
        conversation=SimpleNamespace(log=log), id=CONVERSATION, gateway=gateway
    )
    call = Call(OpenHandsDoor(), to, least_record("m"))
    anything: Any = wire
    session = SocketSession(anything, call, anything, open_view(), await read_state(log))
    serving = asyncio.create_task(session.run())
    assert await wire.receive_through("full_state") == ["full_state"]
    end = await append(log, user("Go."), agent("Done."))
    message = await append(log, user("And then?").model_copy(update={"run": False}))
    wire.slots.put_nowait(end)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wire.receive_through("full_state"), 2)
    wire.slots.put_nowait(message)
    told = await wire.receive_through("full_state")
    assert told == ["MessageEvent", "execution_status", "full_state"]
    serving.cancel()
    await asyncio.wait([serving])


async def test_what_is_read_while_somebody_asks_to_run_is_read_again() -> None:
    runs, reads = Runs(), 0

    async def read() -> int:
        nonlocal reads
        reads += 1
        if reads == 1:
            with runs.asking(KEY):
                await asyncio.sleep(0)
        return reads

    with runs.attached(KEY):
        assert await runs.read_between(KEY, read) == 2
        assert await runs.read_between(KEY, read) == 3
    assert not runs._counts

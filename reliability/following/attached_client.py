"""A client that attaches to a turn and stays until it is over, of one of three kinds."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic

import httpx
from websockets.exceptions import WebSocketException

from perdure.client.http.client import HttpClient
from perdure.client.http.conversation import HttpConversation
from perdure.client.turn import spoken_text
from perdure.errors import Unreachable
from perdure.events.entry import Entry
from reliability.following.http_clients import watching_by_socket, watching_by_stream

KINDS = ("stream", "socket", "HttpClient")

LOOK_INTERVAL = 0.02

MAX_TRIES = 20

RETRY_SECONDS = 0.5

LATE_SECONDS = 20.0
"""Seconds after the end of a turn for which its last events may be on their way."""


@dataclass
class AttachedClient:
    """The entries and texts that a client got since it attached, in order; `attached_at` is in UTC.

    `wrong_texts` are texts that grew to something else than their events have. A client by
    `HttpClient` has the `lines` of the turn's text instead.
    """

    kind: str
    after_seq: int
    attached_at: str
    event_ids: list[str] = field(default_factory=list)
    wrong_texts: list[tuple[str, str]] = field(default_factory=list)
    lines: list[str] | None = None
    grown_texts: int = 0

    def find_wrong_texts(self, entries: Sequence[Entry]) -> list[str]:
        """Find where a text that grew is not what its event says."""
        faults = [f"{grown!r} grew, and {whole!r} was said" for grown, whole in self.wrong_texts]
        if self.lines is not None:
            # An answer that was begun anew may leave the line that it began before.
            lines = iter(self.lines)
            said = [text for entry in entries if (text := spoken_text(entry))]
            faults += [f"no line is {text!r}" for text in said if text not in lines]
        return faults


async def attach(
    client: AttachedClient, url: str, key: str, conversation_id: str, ended: asyncio.Future[int]
) -> int:
    """Attach a client, until it has all slots that there are when the turn has `ended`.

    One whose connection fails, as on a machine that is too busy, begins anew; returns how often.
    Raises AssertionError for a frame that may not come, and where one does not come.
    """
    for tries in count():
        try:
            await _attach_once(client, url, key, conversation_id, ended)
            return tries
        except (httpx.TransportError, OSError, WebSocketException, Unreachable):
            if tries == MAX_TRIES:
                raise
            client.event_ids.clear()
            await asyncio.sleep(RETRY_SECONDS)
    raise AssertionError("counting does not end")


async def _attach_once(
    client: AttachedClient, url: str, key: str, conversation_id: str, ended: asyncio.Future[int]
) -> None:
    if client.kind == "HttpClient":
        async with HttpClient(url, key) as library:
            await _follow_by_library(client, library.conversation(conversation_id), ended)
        return
    watching = watching_by_stream if client.kind == "stream" else watching_by_socket
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as http,
        watching(http, conversation_id, client.after_seq) as watcher,
    ):
        await _wait_for_slots(lambda: watcher.next_seq, ended)
    client.event_ids = [entry["id"] for entry in watcher.entries.values()]
    client.grown_texts = len(watcher.finished_texts)
    client.wrong_texts = [pair for pair in watcher.finished_texts if pair[0] != pair[1]]
    assert watcher.error is None, f"the connection ended: {watcher.error}"
    assert not watcher.texts, f"texts without an end: {watcher.texts}"


async def _follow_by_library(
    client: AttachedClient, conversation: HttpConversation, ended: asyncio.Future[int]
) -> None:
    async def take_events() -> None:
        async for entry in conversation.events(client.after_seq):
            due = client.after_seq + 1 + len(client.event_ids)
            assert entry.seq == due, f"slot {entry.seq} came, {due} was due"
            client.event_ids.append(entry.event.id)

    async def read_text() -> str:
        return "".join([piece async for piece in conversation.text()])

    taking, reading = asyncio.create_task(take_events()), asyncio.create_task(read_text())
    try:
        await _wait_for_slots(lambda: client.after_seq + 1 + len(client.event_ids), ended)
        done, _ = await asyncio.wait([reading], timeout=LATE_SECONDS)
        assert done, "the text of the turn does not end"
        text = reading.result()
        client.lines = [line for line in text.split("\n") if line]
    finally:
        for task in (taking, reading):
            task.cancel()
        await asyncio.wait([taking, reading])
        if not taking.cancelled():
            taking.result()


async def _wait_for_slots(next_seq: Callable[[], int], ended: asyncio.Future[int]) -> None:
    """Wait until a client has all slots of the turn. Raises AssertionError some time after it."""
    end = await asyncio.shield(ended)
    latest = monotonic() + LATE_SECONDS
    while next_seq() < end:
        assert monotonic() < latest, f"{next_seq()} of {end} slots came"
        await asyncio.sleep(LOOK_INTERVAL)

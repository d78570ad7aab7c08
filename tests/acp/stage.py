"""The official client and perdure's server of the protocol in one process, over a socket."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION
from acp.client.connection import ClientSideConnection
from acp.schema import ClientCapabilities

from perdure.acp.peer import Peer
from perdure.acp.server import serve
from perdure.agent.spec import Agent
from perdure.client.protocol import ConversationClient
from tests.acp.editor import LINE_LIMIT, Editor, Running
from tests.acp.judge import Judge


@dataclass
class StageHost:
    """A place of conversations whose agent is the same in every folder."""

    client: ConversationClient
    agent: Agent
    is_local: bool = True

    async def connect(self) -> ConversationClient:
        return self.client

    async def build_agent(self, cwd: str) -> Agent:  # noqa: ARG002
        return self.agent


@dataclass
class JudgedPeer:
    """The ends of a connection, of which a judge hears all lines."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    judge: Judge = field(default_factory=Judge)
    lines: list[tuple[str, bytes]] = field(default_factory=list)

    async def read(self) -> AsyncIterator[bytes]:
        while line := await self.reader.readline():
            self.lines.append(("editor", line))
            self.judge.hear(line)
            yield line

    async def write(self, line: bytes) -> None:
        self.lines.append(("agent", line))
        self.judge.judge(line)
        self.writer.write(line)
        await self.writer.drain()


@asynccontextmanager
async def open_editor(
    client: ConversationClient,
    agent: Agent,
    choices: list[str | None] | None = None,
    is_local: bool = True,
    is_cut_off: bool = False,
) -> AsyncIterator[Running]:
    """Connect the client with a server; at the end nothing may deviate from the protocol.

    One that `is_cut_off` ends without a word, as a process that is killed.
    """
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_LIMIT)
    judged = JudgedPeer(reader, writer)
    host = StageHost(client, agent, is_local)
    serving = asyncio.create_task(serve(host, judged.read(), Peer(judged.write)))
    its_reader, its_writer = await asyncio.open_connection(sock=theirs, limit=LINE_LIMIT)
    editor = Editor(choices or [])
    connection = ClientSideConnection(
        cast(Any, editor), its_writer, its_reader, use_unstable_protocol=True
    )
    try:
        await connection.initialize(PROTOCOL_VERSION, ClientCapabilities())
        yield Running(editor, connection, its_writer, judged=judged)
    finally:
        if is_cut_off:
            serving.cancel()
        await connection.close()
        its_writer.close()
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(serving, 30)
        writer.close()
    if not is_cut_off:
        judged.judge.end()
    assert judged.judge.deviations == []


def folder_of(path: Path) -> str:
    return str(path.resolve())

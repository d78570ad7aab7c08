"""An editor: the official client of the Agent Client Protocol, and `perdure acp` that it starts."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)

COMMAND = (sys.executable, "-m", "perdure.cli.main", "acp")

LINE_LIMIT = 64 * 1024 * 1024


@dataclass
class Editor:
    """What an editor has seen: the updates by their session, and what it was asked for.

    `choices` are the kinds of options that its user selects, one after the other; None cancels.
    """

    choices: list[str | None] = field(default_factory=list)
    updates: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[tuple[str, ToolCallUpdate, list[PermissionOption]]] = field(default_factory=list)
    seen: asyncio.Event = field(default_factory=asyncio.Event)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        fields = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.updates.append((session_id, fields))
        self.seen.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((session_id, tool_call, options))
        self.seen.set()
        if not self.choices:
            await asyncio.Event().wait()
        choice = self.choices.pop(0)
        found = next((each for each in options if each.kind == choice), None)
        if found is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        selected = AllowedOutcome(outcome="selected", option_id=found.option_id)
        return RequestPermissionResponse(outcome=selected)

    def kinds(self) -> list[str]:
        """Return the kinds of the updates, without repetitions of one after the other."""
        kinds = [update["sessionUpdate"] for _, update in self.updates]
        return [kind for n, kind in enumerate(kinds) if n == 0 or kinds[n - 1] != kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return the text of all chunks of a kind."""
        return "".join(
            update["content"].get("text", "")
            for _, update in self.updates
            if update["sessionUpdate"] == kind
        )

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [update for _, update in self.updates if update["sessionUpdate"] == kind]

    async def wait_for(self, kind: str, count: int = 1) -> None:
        """Wait for updates of a kind, or for requests for permission."""
        while len(self.asked if kind == "permission" else self.of_kind(kind)) < count:
            self.seen.clear()
            await self.seen.wait()

    def forget(self) -> None:
        self.updates.clear()
        self.asked.clear()


@dataclass
class Running:
    """An editor, its connection, and the process at the other end, or what is heard of both."""

    editor: Editor
    agent: ClientSideConnection
    writer: asyncio.StreamWriter
    process: asyncio.subprocess.Process | None = None
    judged: Any = None
    was_killed: bool = False

    async def prompt(self, session_id: str, text: str) -> PromptResponse:
        return await self.agent.prompt(session_id=session_id, prompt=[text_block(text)])

    async def open(self, cwd: Path | str = "/work") -> str:
        """Open a new session, and return its id."""
        return (await self.agent.new_session(cwd=str(cwd))).session_id

    async def call(self, method: str, **params: Any) -> Any:
        """Make a request as it is; the client checks nothing of it."""
        return await self.agent._conn.send_request(method, params)


@asynccontextmanager
async def start_editor(
    env: Mapping[str, str], *options: str, choices: list[str | None] | None = None
) -> AsyncIterator[Running]:
    """Start `perdure acp` with a client that has said hello; stdin is closed at the end."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *options, env=dict(env), stdin=pipe, stdout=pipe, limit=LINE_LIMIT
    )
    assert process.stdin is not None
    assert process.stdout is not None
    editor = Editor(choices or [])
    agent = ClientSideConnection(
        cast(Any, editor), process.stdin, process.stdout, use_unstable_protocol=True
    )
    try:
        hello = await agent.initialize(PROTOCOL_VERSION, ClientCapabilities())
        assert hello.protocol_version == PROTOCOL_VERSION
        running = Running(editor, agent, process.stdin, process)
        yield running
        process.stdin.close()
        async with asyncio.timeout(30):
            assert running.was_killed or await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await agent.close()


def write_script(folder: Path, *answers: dict[str, Any], name: str = "script") -> str:
    """Write a script, and return the model that plays it."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"answers": answers}))
    return f"scripted:{path}"

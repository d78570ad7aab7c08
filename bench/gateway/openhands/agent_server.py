"""An agent-server of OpenHands, and its conversations as its files have them."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.gateway.ending import BenchFailed, end_child, within
from bench.gateway.measuring import Usage
from bench.gateway.openhands.environment import AGENT_SERVER
from bench.processes import cpu_seconds, memory_bytes, start_process
from perdure.embedded.ports import choose_ports

KEY = "bench"

START_SECONDS = 180.0

CALL_SECONDS = 120.0
"""Seconds that the server has for an answer."""

RUNS = 1000
"""The limit of conversations at work at once: its default of 10 refuses the others."""

LOOK_INTERVAL = 1.0
"""Seconds between two looks at the files of a conversation that works."""

STATUS_ENDED = ("finished", "error", "stuck")

LOG_CHARS = 2000


@dataclass
class AgentServer:
    """A server at `url`, whose conversations are in `folder`."""

    url: str
    pid: int
    folder: Path
    calls: httpx.AsyncClient

    async def measure(self) -> Usage:
        return Usage(cpu_seconds(self.pid), memory_bytes(self.pid))

    async def start_conversation(self, api_base: str, model: str) -> str:
        """Start a conversation whose agent answers a message; return its id. Raises BenchFailed."""
        llm = {
            "model": f"openai/{model}",
            "base_url": api_base,
            "api_key": "the scripted model asks for none",
            "usage_id": "agent",
            "stream": True,
        }
        body = {
            "agent": {"kind": "Agent", "llm": llm, "tools": []},
            "workspace": {"kind": "LocalWorkspace", "working_dir": str(self.folder / "files")},
        }
        answer = await self._call("/api/conversations", body)
        conversation_id = str(answer["id"])
        await self.run_turn(conversation_id, "Hi.")
        return conversation_id

    async def run_turn(self, conversation_id: str, text: str) -> None:
        """Send a message, and wait until the turn has ended. Raises BenchFailed.

        The files tell, so that the server is not asked.
        """
        seen = len(self._list_events(conversation_id))
        body = {"role": "user", "content": [{"type": "text", "text": text}], "run": True}
        await self._call(f"/api/conversations/{conversation_id}/events", body)
        while True:
            for file in self._list_events(conversation_id)[seen:]:
                seen += 1
                event = json.loads(file.read_text())
                status = event.get("value") if event.get("key") == "execution_status" else None
                if status == "finished":
                    return
                if status in STATUS_ENDED:
                    raise BenchFailed(f"The conversation {conversation_id} ended as {status}.")
            await asyncio.sleep(LOOK_INTERVAL)

    def list_events(self, conversation_ids: Iterable[str]) -> dict[str, Sequence[str]]:
        """List the ids of the events of each conversation, in their order."""
        return {
            name: [_id_of(file) for file in self._list_events(name)] for name in conversation_ids
        }

    def list_times(self, conversation_ids: Iterable[str]) -> dict[tuple[str, int | str], float]:
        """List when each event was written, by the clock that all processes share."""
        ahead = time.time() - time.monotonic()
        return {
            (name, _id_of(file)): file.stat().st_mtime - ahead
            for name in conversation_ids
            for file in self._list_events(name)
        }

    def _list_events(self, conversation_id: str) -> list[Path]:
        place = self.folder / "conversations" / conversation_id.replace("-", "") / "events"
        return sorted(place.glob("event-*.json"))

    async def _call(self, path: str, body: Any) -> Any:
        try:
            response = await self.calls.post(path, json=body)
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise BenchFailed(f"POST {path} failed: {error!r}") from error
        return response.json()


def _id_of(file: Path) -> str:
    return file.stem.split("-", 2)[2]


@contextlib.asynccontextmanager
async def open_agent_server(folder: Path) -> AsyncIterator[AgentServer]:
    """Run a server while inside, with all that it keeps in `folder`. Raises BenchFailed."""
    port = choose_ports(folder / "ports.json", ["agent-server"])["agent-server"]
    own = {
        "SESSION_API_KEY": KEY,
        "OH_CONVERSATIONS_PATH": str(folder / "conversations"),
        "OH_WORKSPACE_PATH": str(folder / "files"),
        "OH_BASH_EVENTS_DIR": str(folder / "bash_events"),
        "OH_MAX_CONCURRENT_RUNS": str(RUNS),
        "OH_ENABLE_VSCODE": "false",
        "OH_PRELOAD_TOOLS": "false",
        "LOG_LEVEL": "WARNING",
        "HOME": str(folder),
    }
    log = folder / "agent-server.log"
    command = [str(AGENT_SERVER.python), "-m", "openhands.agent_server", "--host", "127.0.0.1"]
    process = start_process([*command, "--port", str(port)], log, own, folder)
    url = f"http://127.0.0.1:{port}"
    headers = {"X-Session-API-Key": KEY}
    async with contextlib.AsyncExitStack() as ending:
        ending.push_async_callback(end_child, process)
        calls = httpx.AsyncClient(base_url=url, headers=headers, timeout=CALL_SECONDS)
        await ending.enter_async_context(calls)
        async with within(START_SECONDS, "Starting the agent-server"):
            while not await _is_alive(calls):
                if process.poll() is not None:
                    raise BenchFailed(f"The agent-server ended:\n{log.read_text()[-LOG_CHARS:]}")
                await asyncio.sleep(0.2)
        yield AgentServer(url, process.pid, folder, calls)


async def _is_alive(calls: httpx.AsyncClient) -> bool:
    try:
        return (await calls.get("/health")).is_success
    except httpx.HTTPError:
        return False

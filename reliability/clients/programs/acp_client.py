"""`acp_client.py URL KEY SECONDS SEED`: conversations with ACP's own client, over `perdure acp`.

The process that talks the protocol is killed too, now and then; another one loads the session. A
prompt that was not answered is looked for in what is loaded, and sent again where it is not there.
"""

import asyncio
import json
import os
import random
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from acp import PROTOCOL_VERSION, text_block
from acp.client.connection import ClientSideConnection
from acp.exceptions import RequestError
from acp.schema import ClientCapabilities, DeniedOutcome, RequestPermissionResponse

URL, KEY, SECONDS, SEED = sys.argv[1:5]

COMMAND = (sys.executable, "-m", "perdure.cli.main", "acp", "--agent")
AGENTS = [f"following-{number}" for number in range(8)]
TURNS = 3
PAUSE = 0.3
QUIET_SECONDS = 2.0
PROMPT_SECONDS = 120.0
LINE_LIMIT = 16 * 1024 * 1024


class Editor:
    """The updates of a session, in order: their kinds and texts."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self._calls: dict[str, str] = {}

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002
        fields = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        kind, content = fields["sessionUpdate"], fields.get("content")
        text = content.get("text", "") if isinstance(content, dict) else ""
        if kind in ("tool_call", "tool_call_update"):
            self._check_call(kind, fields)
        if not kind.endswith("chunk") and not kind.startswith("tool"):
            return
        if self.told and self.told[-1][0] == kind and text:
            self.told[-1] = (kind, self.told[-1][1] + text)
        else:
            self.told.append((kind, text))

    async def request_permission(self, **_: Any) -> RequestPermissionResponse:
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    def forget(self) -> None:
        """Forget what was told, but not the calls: those of a turn before may still be at work."""
        self.told = []

    def _check_call(self, kind: str, fields: dict[str, Any]) -> None:
        name, status = fields["toolCallId"], fields["status"]
        known = self._calls.get(name)
        if (kind == "tool_call") != (known is None) or known in ("completed", "failed"):
            self.faults.append(f"{kind} {status} of the call {name} that is {known}")
        self._calls[name] = status


class Talk:
    """A conversation, and its account."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.agent = chance.choice(AGENTS)
        self.id = ""
        self.sent: dict[str, int] = {}
        self.answers: list[str] = []
        self.faults: list[str] = []
        self.repeats = 0

    async def run(self) -> None:
        begin, answered = uuid.uuid4(), False
        for number in range(TURNS):
            text = f"Message {number} of {begin}."
            while not (answered := await self.send(text)):
                self.repeats += 1
                if self.id and text in await self.load_texts("user_message_chunk"):
                    break
        while not answered:
            first = await self.load()
            await asyncio.sleep(QUIET_SECONDS)
            answered = first == await self.load() and first[-1][0] == "agent_message_chunk"
        told = await self.load()
        for (kind, text), after in zip(told, [*told[1:], ("user_message_chunk", "")], strict=True):
            if kind == "agent_message_chunk" and after[0] == "user_message_chunk":
                self.answers.append(text.rpartition("\n\n")[2])

    async def send(self, text: str) -> bool:
        """Send a message; tell whether its turn has ended with an answer."""
        is_cut_off = self.chance.random() < 0.25
        with suppress(RequestError, OSError, TimeoutError, EOFError):
            async with self.open() as (process, agent, editor):
                if not self.id:
                    self.id = (await agent.new_session(cwd="/work")).session_id
                elif self.sent:
                    await self.reopen(agent)
                editor.forget()
                self.sent[text] = self.sent.get(text, 0) + 1
                asking = asyncio.create_task(
                    agent.prompt(session_id=self.id, prompt=[text_block(text)])
                )
                if is_cut_off:
                    asyncio.get_running_loop().call_later(
                        self.chance.uniform(0.5, 4), _kill, process
                    )
                async with asyncio.timeout(PROMPT_SECONDS):
                    done = await asking
                if done.stop_reason != "end_turn":
                    self.faults.append(f"{text} ended with {done.stop_reason}")
                return True
        await asyncio.sleep(PAUSE)
        return False

    async def reopen(self, agent: ClientSideConnection) -> None:
        """Open the session again; it may be that no message of it has arrived."""
        try:
            await agent.load_session(cwd="/work", session_id=self.id)
        except RequestError as error:
            if error.code != -32002:
                raise
            self.id = (await agent.new_session(cwd="/work")).session_id
            self.sent = {}

    async def load(self) -> list[tuple[str, str]]:
        """Return what a session that is loaded has, with its texts put together."""
        while True:
            with suppress(RequestError, OSError, TimeoutError, EOFError):
                async with self.open() as (_, agent, editor):
                    try:
                        await agent.load_session(cwd="/work", session_id=self.id)
                    except RequestError as error:
                        if error.code == -32002:
                            return []
                        raise
                    return list(editor.told)
            self.repeats += 1
            await asyncio.sleep(PAUSE)

    async def load_texts(self, kind: str) -> str:
        return "\n".join(text for each, text in await self.load() if each == kind)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Any, ClientSideConnection, Editor]]:
        """Start a process, and close its stdin at the end."""
        pipe = asyncio.subprocess.PIPE
        env = {**os.environ, "PERDURE_GATEWAY": URL, "PERDURE_GATEWAY_KEY": KEY}
        process = await asyncio.create_subprocess_exec(
            *COMMAND, self.agent, env=env, stdin=pipe, stdout=pipe, limit=LINE_LIMIT
        )
        assert process.stdin is not None
        assert process.stdout is not None
        editor = Editor()
        agent = ClientSideConnection(cast(Any, editor), process.stdin, process.stdout)
        try:
            async with asyncio.timeout(PROMPT_SECONDS):
                await agent.initialize(PROTOCOL_VERSION, ClientCapabilities())
            yield process, agent, editor
        finally:
            self.faults += editor.faults
            process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(20):
                    await process.wait()
            _kill(process)
            await process.wait()
            with suppress(Exception):
                await agent.close()


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


async def main() -> None:
    end, chance = time.monotonic() + float(SECONDS), random.Random(f"acp {SEED}")
    while time.monotonic() < end:
        talk = Talk(chance)
        try:
            await talk.run()
        except Exception as error:
            print(f"FINDING {talk.id}: {error!r}".replace("\n", " "), flush=True)
            continue
        fields = ("id", "sent", "answers", "repeats", "faults")
        print("ACCOUNT " + json.dumps({name: getattr(talk, name) for name in fields}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

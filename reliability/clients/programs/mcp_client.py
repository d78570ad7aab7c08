"""`mcp_client.py URL KEY SECONDS SEED`: conversations with MCP's own client, through a gateway.

A call whose connection breaks is made again over another one, under the same request id.
"""

import asyncio
import json
import random
import sys
import time
import uuid
from typing import Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

URL, KEY, SECONDS, SEED = sys.argv[1:5]

TURNS = 3
AGENTS = [f"following-{number}" for number in range(8)]
PAUSE = 0.3
WAIT_SECONDS = 3
CALL_TIMEOUT = 20.0
"""Seconds of one call: a gateway that is killed meanwhile may not be noticed any sooner."""

PAGE = 50
AT_WORK = ("running", "idle")


class Talk:
    """A conversation, and its account."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.id = ""
        self.sent: dict[str, int] = {}
        self.answers: list[str] = []
        self.faults: list[str] = []
        self.repeats = 0

    async def run(self) -> None:
        agent, begin = self.chance.choice(AGENTS), uuid.uuid4()
        for number in range(TURNS):
            text = f"Message {number} of {begin}."
            self.sent[text] = 1
            request = {"request_id": str(uuid.uuid4())}
            if number == 0:
                now = await self.call("start_conversation", task=text, agent=agent, **request)
                self.id = now["conversation_id"]
            else:
                name = {"conversation_id": self.id}
                now = await self.call("send_message", text=text, **name, **request)
            while now["status"] in AT_WORK:
                now = await self.call("wait", conversation_id=self.id, seconds=WAIT_SECONDS)
            self.answers.append(now["answer"])
        await self.check_events()

    async def check_events(self) -> None:
        """Read the whole log by pages: each slot has to come once and in order."""
        seqs: list[int] = []
        while True:
            after = {"after_seq": seqs[-1] if seqs else -1, "limit": PAGE}
            page = await self.call("get_events", conversation_id=self.id, **after)
            if not page["events"]:
                break
            seqs += [event["seq"] for event in page["events"]]
        if seqs != list(range(len(seqs))):
            self.faults.append(f"the events have the slots {seqs}")

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool until it answers."""
        while True:
            try:
                return await self.call_once(tool, arguments)
            except* (httpx2.HTTPError, MCPError, OSError, TimeoutError):
                pass
            self.repeats += 1
            await asyncio.sleep(PAUSE)

    async def call_once(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with create_mcp_http_client(headers=headers) as http, asyncio.timeout(CALL_TIMEOUT):
            transport = streamable_http_client(f"{URL}/mcp", http_client=http)
            async with Client(transport) as client:
                result = await client.call_tool(tool, arguments)
        if result.is_error:
            sentence = str(getattr(result.content[0], "text", ""))
            raise (Unavailable if is_passing(sentence) else ValueError)(sentence)
        assert result.structured_content is not None
        return dict(result.structured_content)


class Unavailable(OSError):
    """The error of a gateway while Temporal or its store does not answer."""


def is_passing(sentence: str) -> bool:
    passing = ("does not answer", "do not answer", "try again", "Call it again")
    return any(words in sentence for words in passing)


async def main() -> None:
    end, chance = time.monotonic() + float(SECONDS), random.Random(f"mcp {SEED}")
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

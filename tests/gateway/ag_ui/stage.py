"""A gateway with agents, and requests to run them as AG-UI's client sends them."""

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness, text_answer, tool_call_answer

WORDS = "one two three four five six seven eight nine ten eleven twelve"

ADD = ("add", {"a": 2, "b": 3})

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "cached_tokens": 2}

ANSWERS: dict[str, list[dict[str, Any]]] = {
    "adder": [
        tool_call_answer(ADD, content="I add.", reasoning_content="Two numbers."),
        {"content": "It is 5.", "usage": USAGE},
        *(text_answer(f"Answer {number}.") for number in range(2, 9)),
    ],
    "speaker": [{"content": WORDS, "chunk_delay": 0.1}, *[text_answer("Bye.")] * 5],
    "sleeper": [{"content": WORDS, "chunk_delay": 60}, text_answer("Awake.")],
    "asker": [tool_call_answer(ADD, ("add", {"a": 1, "b": 1})), *[text_answer("Done.")] * 3],
    "boss": [tool_call_answer(("delegate", {"task": "Count."})), text_answer("I count 3.")],
    "broken": [{"content": "Never.", "failures": [{"status": 401}] * 9}] * 3,
}

Event = dict[str, Any]


@dataclass
class AgUiStage:
    """A gateway, and requests of Anna's."""

    gateway: GatewayStage

    async def run(
        self, agent: str, body: dict[str, Any], client: httpx.AsyncClient | None = None
    ) -> list[Event]:
        """Run an agent, and return the events."""
        response = await (client or self.gateway.anna).post(f"/ag-ui/{agent}", json=body)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        return parse_events(response.text)

    @asynccontextmanager
    async def stream(self, agent: str, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[Event]]:
        """Run an agent while inside, and yield its events as they come."""
        async with self.gateway.anna.stream("POST", f"/ag-ui/{agent}", json=body) as response:
            assert response.status_code == 200
            lines = response.aiter_lines()
            yield (json.loads(line[6:]) async for line in lines if line.startswith("data: "))

    async def count_messages(self, conversation_id: str) -> int:
        """Count the user's messages in the log of a conversation of Anna's."""
        params = {"kind": "MessageEvent", "limit": "100"}
        path = f"/v1/conversations/{conversation_id}/events"
        found = (await self.gateway.anna.get(path, params=params)).json()["items"]
        return sum(item["source"] == "user" for item in found)


def parse_events(text: str) -> list[Event]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def user(text: Any, name: str | None = None) -> dict[str, Any]:
    return {"id": name or str(uuid.uuid4()), "role": "user", "content": text}


def ask(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the body of a request, with everything that AG-UI's client sends."""
    fields = {"threadId": str(uuid.uuid4()), "runId": str(uuid.uuid4()), "protocolVersion": "1.0"}
    rest: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return {**fields, **rest, "messages": list(messages), **more}


def kinds(events: list[Event]) -> list[str]:
    return [event["type"] for event in events]


def find(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


def said(events: list[Event]) -> str:
    return "".join(event["delta"] for event in find(events, "TEXT_MESSAGE_CONTENT"))


@asynccontextmanager
async def open_stage(harness: ConversationHarness, **settings: Any) -> AsyncIterator[AgUiStage]:
    """Serve a gateway whose agents give these answers, and a worker for them."""
    more: dict[str, Any] = {
        "asker": {"confirmation": {"policy": "always"}},
        "boss": {"tools": ("delegate",)},
    }
    agents = {
        name: as_json(harness.spec(*answers, **more.get(name, {})))
        for name, answers in ANSWERS.items()
    }
    fields: dict[str, Any] = {"gateway_max_concurrent_conversations": 0, "agents": agents}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(harness.worker())
        yield AgUiStage(
            await stack.enter_async_context(open_gateway(harness, **fields, **settings))
        )

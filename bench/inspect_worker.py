"""A worker with a scripted model in process: `python -m bench.inspect_worker`.

CALLS names the file to which each call of the model adds a line: the sample and the number of the
call.
"""

import asyncio
import json
import os
import signal
import uuid
from collections.abc import Mapping
from typing import Any

from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.client.store import open_configured_store
from perdure.events.content import Message, MessageToolCall, TextContent
from perdure.events.usage import Usage
from perdure.models.model import OnText, Request
from perdure.settings.settings import Settings, load_settings
from perdure.temporal.connect import connect
from perdure.worker import build_worker

ANSWER = "The sum is 7."


class Counted:
    """Answers in no time; its name ends with how often it calls the tool before."""

    def __init__(self, calls: str) -> None:
        self._calls = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        question = next(message for message in request.messages if message["role"] == "user")
        number = sum(message["role"] == "assistant" for message in request.messages)
        call = f"{text_of(question).partition(':')[0]}/{number}"
        os.write(self._calls, f"{call}\n".encode())
        message = Message(role="assistant", content=(TextContent(text=ANSWER),))
        if number < int(request.model.name.rpartition("-")[2]):
            message = Message(role="assistant", tool_calls=(call_tool(call),))
        else:
            on_text(ANSWER)
        return Completion(
            id=str(uuid.uuid4()),
            model=request.model.name,
            message=message,
            usage=Usage(prompt_tokens=10, completion_tokens=6),
            received="2026-01-01T00:00:00.000000",
        )


def text_of(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


def call_tool(call: str) -> MessageToolCall:
    arguments = json.dumps({"line": call})
    return MessageToolCall(id=f"call_{call.replace('/', '_')}", name="note", arguments=arguments)


async def work(settings: Settings) -> None:
    client = await connect(payload_keys=settings.payload_keys)
    store = open_configured_store(settings)
    world = Resources(store, Counted(os.environ["CALLS"]), settings.data / "workspaces")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with build_worker(client, settings.task_queue, world):
        print("polls", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(work(load_settings()))

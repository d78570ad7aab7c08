"""A worker whose model always says the same: `python -m bench.inspect_worker`.

CALLS names the file to which each call of the model adds a line, with the sample it is for.
"""

import asyncio
import os
import signal
import uuid

from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.client.store import open_configured_store
from perdure.events.content import Message, TextContent
from perdure.events.usage import Usage
from perdure.models.model import OnText, Request
from perdure.settings.settings import Settings, load_settings
from perdure.temporal.connect import connect
from perdure.worker import build_worker

ANSWER = "The sum is 7."


class Counted:
    """Answers in no time."""

    def __init__(self, calls: str) -> None:
        self._calls = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        content = request.messages[-1]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        os.write(self._calls, text.partition(":")[0].encode() + b"\n")
        on_text(ANSWER)
        return Completion(
            id=str(uuid.uuid4()),
            model="counted",
            message=Message(role="assistant", content=(TextContent(text=ANSWER),)),
            usage=Usage(prompt_tokens=10, completion_tokens=6),
            received="2026-01-01T00:00:00.000000",
        )


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

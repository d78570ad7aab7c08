"""The scripted model of the benches: one tool call an answer, then the end."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, cast

import uvloop
from aiohttp import web

from bench.processes import ROOT
from perdure.models.model import NUMBER_HEADER, PURPOSE_HEADER, Purpose
from perdure.testing.script import Script, read_scripts
from perdure.testing.script_player import ScriptPlayer
from perdure.testing.wire_formats import OPENAI

MAX_BODY = 256 * 1024 * 1024
"""Bytes of the longest request."""


def add(nth: int) -> dict[str, Any]:
    """Another sum each time: an agent that asks for the same again and again is stuck."""
    return {"tool_calls": [{"name": "add", "arguments": {"a": nth, "b": 2}}]}


def steps_script(steps: int, delay: float = 0.0) -> dict[str, Any]:
    """Return a script of so many steps and a last word; each answer takes `delay` seconds."""
    answers = [add(nth) | {"delay": delay} for nth in range(steps)]
    return {"answers": [*answers, {"content": "done"}]}


def steps_scripts(*lengths: int) -> dict[str, Any]:
    """Return a script for each number of steps, `steps-N` by name."""
    return {f"steps-{steps}": steps_script(steps) for steps in lengths}


def write_scripts(file: Path, scripts: Mapping[str, Any]) -> Path:
    file.write_text(json.dumps(scripts))
    return file


@contextlib.asynccontextmanager
async def model_server(file: Path) -> AsyncIterator[str]:
    """The scripts over HTTP, in a process of their own so that its CPU is not counted as ours."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.model", str(file)), stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        with contextlib.suppress(ProcessLookupError):  # ^C ends it too
            process.terminate()
        await process.wait()


class ModelServer:
    """The scripts' answers as chat completions over HTTP.

    `perdure.testing.server` has all of this and more, and takes twice the CPU for a request,
    on the cores that are measured: a model has none of its time there.
    """

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self._players = {name: ScriptPlayer(script) for name, script in scripts.items()}

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post("/v1/chat/completions", self.complete)
        return app

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        player = self._players[body["model"].rpartition("/")[2]]
        purpose = cast(Purpose, request.headers.get(PURPOSE_HEADER, ""))
        number = request.headers.get(NUMBER_HEADER)
        reply = player.next_reply(body["messages"], purpose, int(number) if number else None)
        await asyncio.sleep(reply.answer.delay)
        if not body.get("stream"):
            return web.Response(body=OPENAI.whole(reply), content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in OPENAI.stream(reply, body):
            await response.write(piece)
            await asyncio.sleep(reply.answer.chunk_delay)
        await response.write_eof()
        return response


async def _serve(file: Path) -> None:
    """Serve the scripts, and print the address."""
    runner = web.AppRunner(ModelServer(read_scripts(file)).app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    [(host, port)] = runner.addresses
    print(f"http://{host}:{port}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))

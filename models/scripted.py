"""A scripted model in process: `scripted:FILE`, or `scripted:FILE#NAME`."""

import asyncio
import time
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

from agent.completion import Completion
from events.content import Message, MessageToolCall, TextContent
from models.fault import Fault, model_error
from models.model import ModelRefused, ModelUnavailable, OnText, Request
from models.playback import Cue, Playback
from models.prompted import through_prompt
from models.script import (
    DEFAULT_NAME,
    Answer,
    Failure,
    Script,
    ScriptError,
    read_scripts,
    version_of,
)
from models.wire import message_of, pieces

PREFIX = "scripted:"


class Scripted:
    """Answers from a script, in no time unless the script says otherwise."""

    def __init__(self, script: Script) -> None:
        self.playback = Playback(script)

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        if request.model.native_tool_calling is False:
            return await through_prompt(self._complete, request, on_text)
        return await self._complete(request, on_text)

    async def _complete(self, request: Request, on_text: OnText) -> Completion:
        started = time.monotonic()
        cue = self.playback.cue(request.messages, request.purpose, request.number)
        try:
            async with asyncio.timeout(request.model.timeout):
                await _play(cue, request, on_text)
        except TimeoutError:
            seconds = request.model.timeout
            what = f"{request.model.name} gave no answer in {seconds:g} s: raise its timeout."
            raise ModelUnavailable("timeout", what) from None
        return _completion(cue, request, time.monotonic() - started)


def load(name: str) -> Scripted:
    """The model of a `scripted:` name; the same one until its file changes.

    Raises ModelRefused where there is no such file or script in it.
    """
    file, _, script = name.removeprefix(PREFIX).partition("#")
    path = Path(file)
    try:
        return _load(path, script or DEFAULT_NAME, version_of(path))
    except ScriptError as error:
        raise ModelRefused("model_not_found", str(error)) from None


@lru_cache(maxsize=256)
def _load(path: Path, name: str, _: tuple[int, int]) -> Scripted:
    scripts = read_scripts(path)
    if name not in scripts:
        raise ScriptError(f"{path} has no script {name}; it has: {', '.join(scripts)}.")
    return Scripted(scripts[name])


async def _play(cue: Cue, request: Request, on_text: OnText) -> None:
    if cue.failure is not None:
        await _fail(cue.failure, cue.answer, request, on_text)
    await asyncio.sleep(cue.answer.delay)
    await _show(cue.answer, cue.answer.content, on_text)


async def _show(answer: Answer, text: str, on_text: OnText) -> None:
    """Let the text grow, at the pace the script gives."""
    if not answer.chunk_delay:
        if text:
            on_text(text)
        return
    shown = ""
    for piece in pieces(answer, text):
        shown += piece
        on_text(shown)
        await asyncio.sleep(answer.chunk_delay)


async def _fail(failure: Failure, answer: Answer, request: Request, on_text: OnText) -> NoReturn:
    """Raise what the failure would be over HTTP."""
    name = request.model.name
    await asyncio.sleep(failure.delay)
    if failure.hang:
        await asyncio.Event().wait()
    if failure.disconnect or failure.partial:
        await _show(answer, answer.content[: len(answer.content) // 2], on_text)
    if failure.disconnect:
        what = f"The answer of {name} broke off: try again later."
        raise ModelUnavailable("connection", what)
    if failure.malformed:
        what = f"{name} answered with malformed JSON: try again later."
        raise ModelUnavailable("malformed", what)
    wait = {} if failure.retry_after is None else {"retry-after": str(failure.retry_after)}
    fault = Fault(name, message_of(failure), failure.status, failure.code or "", wait)
    raise model_error(fault)


def _completion(cue: Cue, request: Request, latency: float) -> Completion:
    answer = cue.answer
    calls = tuple(
        MessageToolCall(id=call_id, name=name, arguments=arguments)
        for call_id, name, arguments in cue.calls()
    )
    return Completion(
        id=f"chatcmpl-{uuid4().hex}",
        model=request.model.name,
        message=Message(
            role="assistant",
            content=(TextContent(text=answer.content),) if answer.content else (),
            tool_calls=calls or None,
            reasoning_content=answer.reasoning_content,
        ),
        finish_reason=answer.reason,
        usage=answer.usage.model_copy(update={"latency": latency}),
        received=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
    )

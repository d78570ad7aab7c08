"""A scripted model in process: `scripted:FILE`, or `scripted:FILE#NAME`."""

import asyncio
import time
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

from perdure.agent.calls.completion import Completion
from perdure.models.model import ModelError, ModelRefused, ModelUnavailable, OnText, Request
from perdure.models.prompt_tools import complete_with_prompt_tools
from perdure.models.provider_errors import ProviderError, to_model_error
from perdure.models.stream_accumulator import StreamAccumulator
from perdure.testing.errors import ScriptError
from perdure.testing.openai_format import chunks, failure_message
from perdure.testing.script import (
    DEFAULT_NAME,
    Script,
    ScriptedFailure,
    file_version,
    read_scripts,
)
from perdure.testing.script_player import ScriptedReply, ScriptPlayer

SCRIPTED_PREFIX = "scripted:"


class ScriptedModel:
    """A model that answers from a script, at once unless the script has delays."""

    def __init__(self, script: Script) -> None:
        self.player = ScriptPlayer(script)

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        if request.model.native_tool_calling is False:
            return await complete_with_prompt_tools(self._complete, request, on_text)
        return await self._complete(request, on_text)

    async def _complete(self, request: Request, on_text: OnText) -> Completion:
        started = time.monotonic()
        reply = self.player.next_reply(request.messages, request.purpose, request.number)
        try:
            async with asyncio.timeout(request.model.timeout):
                answer = await _play(reply, request, on_text)
        except TimeoutError:
            seconds = request.model.timeout
            detail = f"{request.model.name} gave no answer in {seconds:g} s: raise its timeout."
            raise ModelUnavailable("timeout", detail) from None
        latency = time.monotonic() - started
        return Completion(
            id=answer.id,
            model=request.model.name,
            message=answer.message(),
            finish_reason=answer.finish_reason,
            usage=reply.answer.usage.model_copy(update={"latency": latency}),
            received=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
        )


def load(name: str) -> ScriptedModel:
    """Load a `scripted:` model, cached until its file changes. Raises ModelRefused without one."""
    try:
        return load_script(name)
    except ScriptError as error:
        raise ModelRefused("model_not_found", str(error)) from None


def load_script(name: str) -> ScriptedModel:
    """Load a `scripted:` model; the only script of a file needs no name. Raises ScriptError."""
    file, _, script = name.removeprefix(SCRIPTED_PREFIX).partition("#")
    path = Path(file)
    return _load(path, script, file_version(path))


@lru_cache(maxsize=256)
def _load(path: Path, name: str, _: tuple[int, int]) -> ScriptedModel:
    scripts = read_scripts(path)
    if not name and len(scripts) == 1:
        name = next(iter(scripts))
    if (script := scripts.get(name or DEFAULT_NAME)) is not None:
        return ScriptedModel(script)
    choices = " or ".join(f"{SCRIPTED_PREFIX}{path}#{known}" for known in scripts)
    missing = f"has no script {name!r}" if name else "has several scripts"
    raise ScriptError(f"{path} {missing}: write {choices}.")


async def _play(reply: ScriptedReply, request: Request, on_text: OnText) -> StreamAccumulator:
    """Stream the answer or failure in the server's chunks; at once without a `chunk_delay`."""
    answer, failure = StreamAccumulator(), reply.failure
    parts = list(chunks(reply, f"chatcmpl-{uuid4().hex}", created=0, include_usage=False))
    await asyncio.sleep(reply.answer.delay if failure is None else failure.delay)
    if failure is not None:
        if failure.hang:
            await asyncio.Event().wait()
        parts = parts[: len(parts) // 2] if failure.disconnect or failure.partial else []
    shown, delay = "", reply.answer.chunk_delay
    for position, chunk in enumerate(parts, 1):
        answer.add(chunk)
        if answer.text != shown and (delay or position == len(parts)):
            shown = answer.text
            on_text(shown)
            await asyncio.sleep(delay)
    if failure is not None:
        raise _to_error(failure, request.model.name)
    return answer


def _to_error(failure: ScriptedFailure, name: str) -> ModelError:
    """Make the same error that the failure would cause over HTTP."""
    if failure.disconnect:
        return ModelUnavailable("connection", f"The answer of {name} broke off: try again later.")
    if failure.malformed:
        detail = f"{name} answered with malformed JSON: try again later."
        return ModelUnavailable("malformed", detail)
    wait = {} if failure.retry_after is None else {"retry-after": str(failure.retry_after)}
    message, code = failure_message(failure), failure.code or ""
    return to_model_error(ProviderError(name, message, failure.status, code, wait))

"""A model that says again what was recorded: `replay:FILE`, a recording in a file or a folder."""

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

from agent.completion import Completion
from events.content import text_of
from models.model import ModelRefused, OnText, Request
from models.recording import Recording, read_recording
from models.script import ScriptError, version_of

PREFIX = "replay:"


class Replay:
    """The n-th answer of the conversation is the n-th that was recorded.

    What the answers ask for is done, and its results are new. Where the recording ends, or was
    never asked (a summary, a title), the request is refused, so that a fallback answers it.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        number = _number(request)
        if request.purpose or number >= len(self.recording.answers):
            raise ModelRefused("recording_exhausted", self._end(request))
        message = self.recording.answers[number]
        if words := text_of(message.content):
            on_text(words)
        return Completion(
            id=f"replay-{uuid4().hex}",
            model=request.model.name,
            message=message,
            finish_reason="tool_calls" if message.tool_calls else "stop",
            received=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
        )

    def _end(self, request: Request) -> str:
        file = request.model.name.removeprefix(PREFIX)
        count = len(self.recording.answers)
        has = f"{count} answer{'' if count == 1 else 's'}"
        return (
            f"The recording {file} has {has} and no more: configure a model to go on with, or name "
            "one as a fallback."
        )


def load(name: str) -> Replay:
    """The model of a `replay:` name; the same one until its file changes.

    Raises ModelRefused where there is no such recording.
    """
    path = Path(name.removeprefix(PREFIX))
    try:
        return _load(path, version_of(path))
    except ScriptError as error:
        raise ModelRefused("model_not_found", str(error)) from None


@lru_cache(maxsize=64)
def _load(path: Path, _: tuple[int, int]) -> Replay:
    return Replay(read_recording(path))


def _number(request: Request) -> int:
    """How many answers came before, by the caller's count or else by the prompt's."""
    if request.number is not None:
        return request.number
    return sum(message.get("role") == "assistant" for message in request.messages)

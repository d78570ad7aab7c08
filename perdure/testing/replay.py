"""A model that replays a recording in a file or a folder: `replay:FILE`."""

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

from perdure.agent.calls.completion import Completion
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.content import join_text
from perdure.models.model import ModelRefused, OnText, Request
from perdure.testing.recording import Recording, read_recording
from perdure.testing.script import ScriptError, file_version

REPLAY_PREFIX = "replay:"


class ReplayModel:
    """A model whose n-th answer in a conversation is the n-th recorded answer.

    Its tool calls are executed, with new results. After the end of the recording, and for another
    purpose (a summary, a title), the request is refused, so that a fallback answers it.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        number = _answer_number(request)
        if request.purpose or number >= len(self.recording.answers):
            raise ModelRefused("recording_exhausted", self._exhausted_message(request))
        message = self.recording.answers[number]
        if text := join_text(message.content):
            on_text(text)
        return Completion(
            id=f"replay-{uuid4().hex}",
            model=request.model.name,
            message=message,
            finish_reason="tool_calls" if message.tool_calls else "stop",
            received=datetime.now(UTC).strftime(TIMESTAMP_FORMAT),
        )

    def _exhausted_message(self, request: Request) -> str:
        file = request.model.name.removeprefix(REPLAY_PREFIX)
        count = len(self.recording.answers)
        has = f"{count} answer{'' if count == 1 else 's'}"
        return (
            f"The recording {file} has {has} and no more: configure a model to go on with, or name "
            "one as a fallback."
        )


def load(name: str) -> ReplayModel:
    """Load the model of a `replay:` name; it is cached until its file changes.

    Raises ModelRefused if there is no such recording.
    """
    path = Path(name.removeprefix(REPLAY_PREFIX))
    try:
        return _load(path, file_version(path))
    except ScriptError as error:
        raise ModelRefused("model_not_found", str(error)) from None


@lru_cache(maxsize=64)
def _load(path: Path, _: tuple[int, int]) -> ReplayModel:
    return ReplayModel(read_recording(path))


def _answer_number(request: Request) -> int:
    """Count the earlier answers, by the caller's count or else by the prompt."""
    if request.number is not None:
        return request.number
    return sum(message.get("role") == "assistant" for message in request.messages)

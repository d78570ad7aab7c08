"""A model that replays a recording in a file or a folder: `replay:FILE`."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from perdure.agent.calls.completion import Completion
from perdure.agent.loop.inbox import UserMessage
from perdure.agent.spec import Agent
from perdure.events.base import TIMESTAMP_FORMAT, Frozen
from perdure.events.content import (
    AnyThinkingBlock,
    Message,
    MessageToolCall,
    TextContent,
    join_text,
)
from perdure.models.model import ModelRefused, OnText, Request
from perdure.testing.errors import ScriptError
from perdure.testing.script import file_version
from perdure.testing.trajectory import Json, as_object, find, find_list, is_legacy, translate

REPLAY_PREFIX = "replay:"

EVENT_LIST_KEYS = ("events", "trajectory", "history")
"""Keys under which a JSON object may hold its events."""

_THINKING_BLOCKS: TypeAdapter[tuple[AnyThinkingBlock, ...]] = TypeAdapter(
    tuple[AnyThinkingBlock, ...]
)


@dataclass(frozen=True)
class Recording:
    """The messages and tool results of a recorded conversation."""

    answers: tuple[Message, ...]
    """The messages of the model."""
    user_messages: tuple[UserMessage, ...]
    results: Mapping[str, str]
    """The tool results by the ids of their calls."""
    spec: Agent | None
    """The agent's spec, if it was recorded."""


class RecordedAnswers(Frozen):
    """The answers of a recording, as the store of a conversation has them."""

    answers: tuple[Message, ...]


class ReplayModel:
    """A model whose n-th answer in a conversation is the n-th recorded answer.

    Its tool calls are executed, with new results. After the end of the recording, and for another
    purpose (a summary, a title), the request is refused, so that a fallback answers it.
    """

    def __init__(self, answers: Sequence[Message]) -> None:
        self.answers = answers

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        number, count = request.number, len(self.answers)
        if number is None:
            number = sum(message.get("role") == "assistant" for message in request.messages)
        if request.purpose or number >= count:
            file = request.model.name.removeprefix(REPLAY_PREFIX)
            raise ModelRefused(
                "recording_exhausted",
                f"The recording {file} has {count} answer{'' if count == 1 else 's'} and no more: "
                "configure a model to go on with, or name one as a fallback.",
            )
        message = self.answers[number]
        if text := join_text(message.content):
            on_text(text)
        return Completion(
            id=f"replay-{uuid4().hex}",
            model=request.model.name,
            message=message,
            finish_reason="tool_calls" if message.tool_calls else "stop",
            received=datetime.now(UTC).strftime(TIMESTAMP_FORMAT),
        )


def load(name: str) -> ReplayModel:
    """Load a `replay:` model, cached until its file changes. Raises ModelRefused without one."""
    path = Path(name.removeprefix(REPLAY_PREFIX))
    try:
        return _load(path, file_version(path))
    except ScriptError as error:
        raise ModelRefused("model_not_found", str(error)) from None


@lru_cache(maxsize=64)
def _load(path: Path, _: tuple[int, int]) -> ReplayModel:
    return ReplayModel(read_recording(path).answers)


def read_recording(path: Path) -> Recording:
    """Read the JSON log of `perdure show`, a trajectory of OpenHands, or a folder of events.

    Other events are ignored. Raises ScriptError if the path holds no recording.
    """
    recording = build_recording(read_recorded_events(path))
    if recording is None:
        raise ScriptError(
            f"{path} is no recording of a conversation: give what `perdure show ID -o jsonl` "
            "printed, a trajectory of OpenHands, or a folder of events."
        )
    return recording


def build_recording(recorded: Iterable[Json]) -> Recording | None:
    """Build a recording of events, among which others are ignored; None if it would hold nothing.

    The events are as the log has them, as the SDK of OpenHands writes them, or as before that.
    """
    current = (translate(event) if is_legacy(event) else event for event in recorded)
    events = [event for event in current if event is not None]
    groups = _group_by_response([event for event in events if _is_answer(event)])
    user_messages = tuple(_user_message(event) for event in events if _is_user_message(event))
    if not groups and not user_messages:
        return None
    return Recording(
        answers=tuple(_answer_message(number, group) for number, group in enumerate(groups, 1)),
        user_messages=user_messages,
        results={
            str(event.get("tool_call_id")): _join_text(find(event, "observation", "content"))
            for event in events
            if event.get("kind") == "ObservationEvent"
        },
        spec=next(filter(None, map(_recorded_spec, events)), None),
    )


def read_recorded_events(path: Path) -> list[Json]:
    """Read the events of a recording as they are. Raises ScriptError."""
    try:
        values = _read_folder(path) if path.is_dir() else _read_file(path)
    except ScriptError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise ScriptError(f"The recording {path} cannot be read ({reason}).") from error
    except ValueError as error:
        raise ScriptError(f"{path} is not valid JSON, nor a line of it each: {error}.") from error
    events: list[Json] = [event for event in values if isinstance(event, dict)]
    for event in events:
        if "kind" not in event and "seq" in event and "error" in event:
            raise ScriptError(f"{path} lacks event {event['seq']}, which could not be read.")
    return events


def _read_folder(path: Path) -> list[Any]:
    """Read one event per file, in the order of the first number in the files' names.

    The events may be those of the only export within the folder.
    """
    files = _list_numbered(path / "events") or _list_numbered(path)
    inner = [] if files else sorted([*path.glob("*/events"), *path.glob("*/*/events")])
    if len(inner) > 1:
        raise ScriptError(
            f"{path} holds {len(inner)} conversations: name one of them, such as {inner[0].parent}."
        )
    files = _list_numbered(inner[0]) if inner else files
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def _list_numbered(folder: Path) -> list[Path]:
    numbered = ((re.search(r"\d+", file.name), file) for file in folder.glob("*.json"))
    return [file for _, file in sorted((int(found[0]), file) for found, file in numbered if found)]


def _read_file(path: Path) -> list[Any]:
    """Read a list of events, an object that holds one, or one event per line."""
    text = path.read_text(encoding="utf-8")
    try:
        content = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if not isinstance(content, dict):
        return content if isinstance(content, list) else []
    lists = (content[name] for name in EVENT_LIST_KEYS if isinstance(content.get(name), list))
    return next(lists, [content])


def _is_user_message(event: Json) -> bool:
    return event.get("kind") == "MessageEvent" and event.get("source") == "user"


def _is_answer(event: Json) -> bool:
    """Tell whether an event is an answer of the model; an interrupted one is not."""
    if event.get("kind") == "MessageEvent":
        return event.get("source") == "agent" and event.get("sender") != "interrupted"
    return event.get("kind") == "ActionEvent"


def _group_by_response(events: Sequence[Json]) -> list[list[Json]]:
    """Group the events of one model response, wherever they stand."""
    groups: dict[str | int, list[Json]] = {}
    for number, event in enumerate(events):
        response_id = event.get("llm_response_id")
        key = response_id if isinstance(response_id, str) else number
        groups.setdefault(key, []).append(event)
    return list(groups.values())


def _answer_message(number: int, group: list[Json]) -> Message:
    first = group[0]
    message = as_object(first.get("llm_message")) or first
    calls = [event for event in group if event.get("kind") == "ActionEvent"]
    reasoning = message.get("reasoning_content")
    text = _join_text(first.get("thought") if calls else message.get("content"))
    try:
        blocks = _THINKING_BLOCKS.validate_python(message.get("thinking_blocks") or ())
    except ValidationError:
        blocks = ()
    return Message(
        role="assistant",
        content=(TextContent(text=text),) if text else (),
        tool_calls=tuple(
            _tool_call(event, f"call_replay_{number}_{index}") for index, event in enumerate(calls)
        )
        or None,
        reasoning_content=reasoning if isinstance(reasoning, str) else None,
        thinking_blocks=blocks,
    )


def _tool_call(event: Json, new_id: str) -> MessageToolCall:
    """Return the original call, with the model's mistakes in it."""
    call = as_object(event.get("tool_call"))
    function = as_object(call.get("function")) or call
    arguments = function.get("arguments")
    if arguments is None:
        action = as_object(event.get("action"))
        arguments = action.get("data") or {key: action[key] for key in action if key != "kind"}
    return MessageToolCall(
        id=str(call.get("id") or event.get("tool_call_id") or new_id),
        name=str(function.get("name") or event.get("tool_name") or ""),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
    )


def _user_message(event: Json) -> UserMessage:
    content = find(event, "llm_message", "content")
    urls = (url for part in find_list(content) for url in find_list(part, "image_urls"))
    return UserMessage(text=_join_text(content), images=tuple(map(str, urls)))


def _recorded_spec(event: Json) -> Agent | None:
    if event.get("kind") != "ConversationStateUpdateEvent" or event.get("key") != "spec":
        return None
    try:
        return Agent.model_validate(event.get("value"))
    except ValidationError:
        return None


def _join_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (find(part, "text") for part in find_list(content))
    return "\n".join(text for text in texts if isinstance(text, str))

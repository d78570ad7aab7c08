"""A recorded conversation, read from a file or a folder of its events."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.spec import Agent
from perdure.events.content import AnyThinkingBlock, Message, MessageToolCall, TextContent
from perdure.testing.script import ScriptError
from perdure.testing.trajectory import as_list, as_object, is_legacy, translate

Json: TypeAlias = Mapping[str, Any]

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
    """The messages of the user."""
    results: Mapping[str, str]
    """The tool results by the ids of their calls."""
    spec: Agent | None
    """The agent's spec, if it was recorded."""


def read_recording(path: Path) -> Recording:
    """Read the JSON log of `perdure show`, a trajectory of OpenHands, or a folder of events.

    Other events are ignored. Raises ScriptError if the path holds no recording.
    """
    events = [event for old in _read_events(path) if (event := _to_current(old)) is not None]
    groups = _group_by_response([event for event in events if _is_answer(event)])
    user_messages = tuple(_user_message(event) for event in events if _is_user_message(event))
    if not groups and not user_messages:
        raise ScriptError(
            f"{path} is no recording of a conversation: give what `perdure show ID -o jsonl` "
            "printed, a trajectory of OpenHands, or a folder of events."
        )
    return Recording(
        answers=tuple(_answer_message(number, group) for number, group in enumerate(groups, 1)),
        user_messages=user_messages,
        results=dict(_tool_result(event) for event in events if _kind(event) == "ObservationEvent"),
        spec=next((spec for event in events if (spec := _recorded_spec(event))), None),
    )


def _read_events(path: Path) -> list[Json]:
    try:
        values = _read_folder(path) if path.is_dir() else _read_file(path)
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
    """Read one event per file, in the order of the first number in the files' names."""
    folder = path / "events" if (path / "events").is_dir() else path
    numbered = ((re.search(r"\d+", file.name), file) for file in folder.glob("*.json"))
    files = sorted((int(number[0]), file) for number, file in numbered if number)
    return [json.loads(file.read_text(encoding="utf-8")) for _, file in files]


def _read_file(path: Path) -> list[Any]:
    """Read a list of events, an object that holds one, or one event per line."""
    text = path.read_text(encoding="utf-8")
    try:
        content = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(content, dict):
        return next(
            (content[name] for name in EVENT_LIST_KEYS if isinstance(content.get(name), list)),
            [content],
        )
    return content if isinstance(content, list) else []


def _to_current(event: Json) -> Json | None:
    return translate(event) if is_legacy(event) else event


def _kind(event: Json) -> str:
    return str(event.get("kind"))


def _is_user_message(event: Json) -> bool:
    return _kind(event) == "MessageEvent" and event.get("source") == "user"


def _is_answer(event: Json) -> bool:
    """Tell whether an event is an answer of the model; an interrupted one is not."""
    if _kind(event) == "MessageEvent":
        return event.get("source") == "agent" and event.get("sender") != "interrupted"
    return _kind(event) == "ActionEvent"


def _group_by_response(events: Sequence[Json]) -> list[list[Json]]:
    """Group the events of one model response, wherever they stand."""
    groups: list[list[Json]] = []
    by_response: dict[str, list[Json]] = {}
    for event in events:
        response_id = event.get("llm_response_id")
        if isinstance(response_id, str) and response_id in by_response:
            by_response[response_id].append(event)
            continue
        groups.append([event])
        if isinstance(response_id, str):
            by_response[response_id] = groups[-1]
    return groups


def _answer_message(number: int, group: list[Json]) -> Message:
    first = group[0]
    message = as_object(first.get("llm_message")) or first
    calls = [event for event in group if _kind(event) == "ActionEvent"]
    reasoning = message.get("reasoning_content")
    text = _join_text(
        message.get("content") if _kind(first) == "MessageEvent" else first.get("thought")
    )
    return Message(
        role="assistant",
        content=(TextContent(text=text),) if text else (),
        tool_calls=tuple(
            _tool_call(event, f"call_replay_{number}_{index}") for index, event in enumerate(calls)
        )
        or None,
        reasoning_content=reasoning if isinstance(reasoning, str) else None,
        thinking_blocks=_thinking_blocks(message.get("thinking_blocks")),
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
    content = as_object(event.get("llm_message")).get("content")
    parts = map(as_object, as_list(content))
    urls = (url for part in parts for url in as_list(part.get("image_urls")))
    return UserMessage(text=_join_text(content), images=tuple(map(str, urls)))


def _tool_result(event: Json) -> tuple[str, str]:
    return str(event.get("tool_call_id")), _join_text(
        as_object(event.get("observation")).get("content")
    )


def _recorded_spec(event: Json) -> Agent | None:
    if _kind(event) != "ConversationStateUpdateEvent" or event.get("key") != "spec":
        return None
    try:
        return Agent.model_validate(event.get("value"))
    except ValidationError:
        return None


def _thinking_blocks(blocks: Any) -> tuple[AnyThinkingBlock, ...]:
    try:
        return _THINKING_BLOCKS.validate_python(blocks or ())
    except ValidationError:
        return ()


def _join_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (as_object(part).get("text") for part in as_list(content))
    return "\n".join(text for text in texts if isinstance(text, str))

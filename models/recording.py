"""What was said in a conversation that took place, read from a file or a folder of its events."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from agent.inbox import Said
from agent.spec import Spec
from events.content import AnyThinkingBlock, Message, MessageToolCall, TextContent
from models.script import ScriptError
from models.trajectory import is_old, list_of, object_of, translated

Json: TypeAlias = Mapping[str, Any]

LISTS = ("events", "trajectory", "history")
"""Where an object holds its events."""

_BLOCKS: TypeAdapter[tuple[AnyThinkingBlock, ...]] = TypeAdapter(tuple[AnyThinkingBlock, ...])


@dataclass(frozen=True)
class Recording:
    """`answers` of the model and what people `said`, each in order.

    `results` are those of the calls, by the calls' ids; `spec` is the agent's, where it is known.
    """

    answers: tuple[Message, ...]
    said: tuple[Said, ...]
    results: Mapping[str, str]
    spec: Spec | None


def read_recording(path: Path) -> Recording:
    """A log as `perdure show` prints it in JSON, a trajectory of OpenHands, or a folder of events.

    What says nothing is passed over. Raises ScriptError.
    """
    events = [found for event in _events(path) if (found := _current(event)) is not None]
    groups = _grouped([event for event in events if _is_answer(event)])
    said = tuple(_said(event) for event in events if _is_said(event))
    if not groups and not said:
        raise ScriptError(
            f"{path} is no recording of a conversation: give what `perdure show ID -o jsonl` "
            "printed, a trajectory of OpenHands, or a folder of events."
        )
    return Recording(
        answers=tuple(_answer(number, group) for number, group in enumerate(groups, 1)),
        said=said,
        results=dict(_result(event) for event in events if _kind(event) == "ObservationEvent"),
        spec=next((spec for event in events if (spec := _spec(event))), None),
    )


def _events(path: Path) -> list[Json]:
    try:
        found = _in_folder(path) if path.is_dir() else _in_file(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ScriptError(f"The recording {path} cannot be read ({reason}).") from error
    except ValueError as error:
        raise ScriptError(f"{path} is not valid JSON, nor a line of it each: {error}.") from error
    events: list[Json] = [event for event in found if isinstance(event, dict)]
    for event in events:
        if "kind" not in event and "seq" in event and "error" in event:
            raise ScriptError(f"{path} lacks event {event['seq']}, which could not be read.")
    return events


def _in_folder(path: Path) -> list[Any]:
    """One event a file, in the order of the first number in the files' names."""
    folder = path / "events" if (path / "events").is_dir() else path
    numbered = ((re.search(r"\d+", file.name), file) for file in folder.glob("*.json"))
    files = sorted((int(number[0]), file) for number, file in numbered if number)
    return [json.loads(file.read_text(encoding="utf-8")) for _, file in files]


def _in_file(path: Path) -> list[Any]:
    """A list of events, an object that holds one, or an event a line."""
    text = path.read_text(encoding="utf-8")
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(whole, dict):
        return next((whole[name] for name in LISTS if isinstance(whole.get(name), list)), [whole])
    return whole if isinstance(whole, list) else []


def _current(event: Json) -> Json | None:
    return translated(event) if is_old(event) else event


def _kind(event: Json) -> str:
    return str(event.get("kind"))


def _is_said(event: Json) -> bool:
    return _kind(event) == "MessageEvent" and event.get("source") == "user"


def _is_answer(event: Json) -> bool:
    """Half an answer, which somebody stopped, is none."""
    if _kind(event) == "MessageEvent":
        whole = event.get("sender") != "interrupted"
        return event.get("source") == "agent" and whole
    return _kind(event) == "ActionEvent"


def _grouped(events: Sequence[Json]) -> list[list[Json]]:
    """Together what was one answer of the model, wherever it stands."""
    groups: list[list[Json]] = []
    begun: dict[str, list[Json]] = {}
    for event in events:
        name = event.get("llm_response_id")
        if isinstance(name, str) and name in begun:
            begun[name].append(event)
            continue
        groups.append([event])
        if isinstance(name, str):
            begun[name] = groups[-1]
    return groups


def _answer(number: int, group: list[Json]) -> Message:
    first = group[0]
    message = object_of(first.get("llm_message")) or first
    calls = [event for event in group if _kind(event) == "ActionEvent"]
    reasoning = message.get("reasoning_content")
    words = _text(
        message.get("content") if _kind(first) == "MessageEvent" else first.get("thought")
    )
    return Message(
        role="assistant",
        content=(TextContent(text=words),) if words else (),
        tool_calls=tuple(_call(one, f"call_replay_{number}_{nth}") for nth, one in enumerate(calls))
        or None,
        reasoning_content=reasoning if isinstance(reasoning, str) else None,
        thinking_blocks=_blocks(message.get("thinking_blocks")),
    )


def _call(event: Json, new_id: str) -> MessageToolCall:
    """The call as the model made it: what it got wrong, it gets wrong again."""
    call = object_of(event.get("tool_call"))
    made = object_of(call.get("function")) or call
    arguments = made.get("arguments")
    if arguments is None:
        action = object_of(event.get("action"))
        arguments = action.get("data") or {key: action[key] for key in action if key != "kind"}
    return MessageToolCall(
        id=str(call.get("id") or event.get("tool_call_id") or new_id),
        name=str(made.get("name") or event.get("tool_name") or ""),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
    )


def _said(event: Json) -> Said:
    content = object_of(event.get("llm_message")).get("content")
    parts = map(object_of, list_of(content))
    urls = (url for part in parts for url in list_of(part.get("image_urls")))
    return Said(text=_text(content), images=tuple(map(str, urls)))


def _result(event: Json) -> tuple[str, str]:
    return str(event.get("tool_call_id")), _text(object_of(event.get("observation")).get("content"))


def _spec(event: Json) -> Spec | None:
    if _kind(event) != "ConversationStateUpdateEvent" or event.get("key") != "spec":
        return None
    try:
        return Spec.model_validate(event.get("value"))
    except ValidationError:
        return None


def _blocks(found: Any) -> tuple[AnyThinkingBlock, ...]:
    try:
        return _BLOCKS.validate_python(found or ())
    except ValidationError:
        return ()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (object_of(part).get("text") for part in list_of(content))
    return "\n".join(text for text in texts if isinstance(text, str))

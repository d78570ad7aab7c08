"""The events of OpenHands' computed cases, translated to ours."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from perdure.events.condensation import Condensation, CondensationRequest
from perdure.events.content import Message, ThinkingBlock
from perdure.events.control import PauseEvent
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from tests.builders import (
    TIMESTAMP,
    action,
    error,
    observation,
    prompt,
    rejection,
    status_event,
    text,
)

THINKING = (ThinkingBlock(thinking="Hm."),)


def load_cases(name: str) -> list[dict[str, Any]]:
    path = Path(__file__).parent / "vectors" / f"{name}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def translate(compacts: Iterable[dict[str, Any]]) -> list[AnyEvent]:
    """Translate events to ours, under the same ids.

    Our errors name the action they answer if it could be read; theirs name the call alone.
    """
    events: list[AnyEvent] = []
    read: dict[str, str] = {}
    for compact in compacts:
        if compact["t"] == "act" and not compact["nonexec"]:
            read[compact["call"]] = compact["id"]
        events.append(_event(compact, read).model_copy(update={"id": compact["id"]}))
    return events


def _event(one: dict[str, Any], read: dict[str, str]) -> Any:
    match one["t"]:
        case "sys":
            return prompt()
        case "msg":
            role: Literal["assistant", "user"] = "assistant" if one["source"] == "agent" else "user"
            said = Message(role=role, content=text(one["text"]))
            return MessageEvent(timestamp=TIMESTAMP, source=one["source"], llm_message=said)
        case "act":
            made = action("look", one["call"], one["resp"], valid=not one["nonexec"])
            thought = text(one["thought"]) if one["thought"] else ()
            blocks = THINKING if one["thinking"] else ()
            return made.model_copy(update={"thought": thought, "thinking_blocks": blocks})
        case "obs":
            return observation(one["action_id"], "look", one["text"], one["call"])
        case "err":
            return error(read.get(one["call"]), "look", one["call"], one["error"])
        case "rej":
            return rejection(one["action_id"], "look", one["call"])
        case "cond":
            return Condensation(
                timestamp=TIMESTAMP,
                forgotten_event_ids=tuple(one["forget"]),
                summary=one["summary"],
                summary_offset=one["offset"],
            )
        case "creq":
            return CondensationRequest(timestamp=TIMESTAMP)
        case "pause":
            return PauseEvent(timestamp=TIMESTAMP)
        case "state":
            return status_event("resumed")
        case other:
            raise AssertionError(other)

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
    cases: list[dict[str, Any]] = json.loads(path.read_text())
    return cases


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


def _event(fields: dict[str, Any], read: dict[str, str]) -> Any:
    match fields["t"]:
        case "sys":
            return prompt()
        case "msg":
            role: Literal["assistant", "user"] = (
                "assistant" if fields["source"] == "agent" else "user"
            )
            message = Message(role=role, content=text(fields["text"]))
            return MessageEvent(timestamp=TIMESTAMP, source=fields["source"], llm_message=message)
        case "act":
            made = action("look", fields["call"], fields["resp"], valid=not fields["nonexec"])
            thought = text(fields["thought"]) if fields["thought"] else ()
            blocks = THINKING if fields["thinking"] else ()
            return made.model_copy(update={"thought": thought, "thinking_blocks": blocks})
        case "obs":
            return observation(fields["action_id"], "look", fields["text"], fields["call"])
        case "err":
            return error(read.get(fields["call"]), "look", fields["call"], fields["error"])
        case "rej":
            return rejection(fields["action_id"], "look", fields["call"])
        case "cond":
            return Condensation(
                timestamp=TIMESTAMP,
                forgotten_event_ids=tuple(fields["forget"]),
                summary=fields["summary"],
                summary_offset=fields["offset"],
            )
        case "creq":
            return CondensationRequest(timestamp=TIMESTAMP)
        case "pause":
            return PauseEvent(timestamp=TIMESTAMP)
        case "state":
            return status_event("resumed")
        case other:
            raise AssertionError(other)

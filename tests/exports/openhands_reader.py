"""Reads exported logs with openhands-sdk's own models. Runs in the environment that has them.

Takes a file with a list of logs and writes, of each log, what was read of it: every event as they
would write it again, or what they say is wrong with it; the ids of the events in their view; and
the messages their model would be sent.
"""

import json
import sys
from pathlib import Path
from typing import Any

import openhands.tools  # noqa: F401 - they know their tools only by then
from openhands.sdk.context.view import View
from openhands.sdk.event import Event, LLMConvertibleEvent
from openhands.sdk.event.conversation_error import ConversationErrorEvent  # noqa: F401
from openhands.sdk.mcp import MCPToolDefinition  # noqa: F401
from pydantic import ValidationError


def reading(log: list[dict[str, Any]]) -> dict[str, Any]:
    events: list[Any] = []
    wrong: list[str] = []
    for fields in log:
        try:
            events.append(Event.model_validate(fields))
        except (ValidationError, ValueError) as error:
            wrong.append(f"{fields.get('kind')}: {error}")
    visible_events = View.from_events(events).events
    return {
        "wrong": wrong,
        "events": [event.model_dump(mode="json") for event in events],
        "view": [event.id for event in visible_events],
        "messages": [
            _brief(message) for message in LLMConvertibleEvent.events_to_messages(visible_events)
        ],
    }


def _brief(message: Any) -> dict[str, Any]:
    text = "".join(part.text for part in message.content if part.type == "text")
    calls = [call.id for call in message.tool_calls or ()]
    return {"role": message.role, "text": text, "calls": calls, "answers": message.tool_call_id}


if __name__ == "__main__":
    logs = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(json.dumps([reading(log) for log in logs]))

"""The events of tool calls, and of the sub-agents that some of them start."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perdure.agent.loop.state import DELEGATE_TOOL
from perdure.gateway.ag_ui.events import Event, Names, make_event
from perdure.gateway.ag_ui.ids import MessageIds
from perdure.gateway.turns.parts import Asked, Called, Returned


@dataclass
class ToolCalls:
    """The tool calls of one run."""

    ids: MessageIds
    names: Names
    known: dict[str, Called] = field(default_factory=dict)
    """The newest call of each id."""
    _shown: dict[str, str] = field(default_factory=dict)
    """The ids that the client knows calls by."""
    _subagents: dict[str, str] = field(default_factory=dict)
    """The ids of sub-agents at work, by those of their calls."""

    def call(self, part: Called) -> list[Event]:
        """Return the events of a call; the client was told of one that waited for an answer."""
        self.known[part.call_id] = part
        if part.approval == "answered":
            return self._delegate(part)
        name = self._shown[part.call_id] = self.names.open(part.call_id)
        parent = self.ids.text(part.item_id)
        started = {"toolCallName": part.tool_name, "parentMessageId": parent}
        arguments = [make_event("TOOL_CALL_ARGS", toolCallId=name, delta=part.arguments)]
        return [
            make_event("TOOL_CALL_START", toolCallId=name, **started),
            *(arguments if part.arguments else ()),
            make_event("TOOL_CALL_END", toolCallId=name),
            *self._delegate(part),
        ]

    def give_back(self, part: Returned) -> list[Event]:
        """Return the events of a result."""
        call = self.known.get(part.call_id)
        origin = call.item_id if call is not None else ""
        name = self.names.open(self.ids.result(origin, part.call_id))
        ids = {"messageId": name, "toolCallId": self.show(part.call_id)}
        result = make_event("TOOL_CALL_RESULT", **ids, content=part.text, role="tool")
        return [*self._end_subagent(part), result]

    def show(self, call_id: str) -> str:
        """Return the id that the client knows a call by."""
        return self._shown.get(call_id, call_id)

    def close(self, asked: Asked | None) -> list[Event]:
        """End the sub-agents that are open: those of calls that wait for a person go on later."""
        waiting = {call.tool_call_id for call in asked.calls} if asked is not None else set()
        events = []
        for call_id in list(self._subagents):
            if call_id in waiting:
                name = self._subagents.pop(call_id)
                outcome = {"type": "suspended", "interruptIds": [call_id]}
                events.append(make_event("SUBAGENT_FINISHED", subagentRunId=name, outcome=outcome))
            else:
                events += self._stop_subagent(call_id)
        return events

    def _delegate(self, part: Called) -> list[Event]:
        """Begin the sub-agent of a call, if it is one that hands a task to another agent."""
        if part.tool_name != DELEGATE_TOOL:
            return []
        left = self._stop_subagent(part.call_id)
        name = self._subagents[part.call_id] = self.names.open(self.ids.subagent(part))
        task = _parse_object(part.arguments)
        fields = {"name": task.get("agent") or DELEGATE_TOOL, "description": task.get("task")}
        ids = {"subagentRunId": name, "parentToolCallId": self.show(part.call_id)}
        return [*left, make_event("SUBAGENT_STARTED", **ids, **fields)]

    def _stop_subagent(self, call_id: str) -> list[Event]:
        """End a sub-agent of which nothing more is known, if it is open."""
        name = self._subagents.pop(call_id, None)
        if name is None:
            return []
        stopped = {"message": "The task has no result.", "code": "stopped"}
        return [make_event("SUBAGENT_ERROR", subagentRunId=name, **stopped)]

    def _end_subagent(self, part: Returned) -> list[Event]:
        name = self._subagents.pop(part.call_id, None)
        if name is None:
            return []
        if part.is_error:
            return [make_event("SUBAGENT_ERROR", subagentRunId=name, message=part.text)]
        fields: dict[str, Any] = {"result": part.text, "outcome": {"type": "success"}}
        return [make_event("SUBAGENT_FINISHED", subagentRunId=name, **fields)]


def _parse_object(text: str) -> Mapping[str, Any]:
    """Return the texts of an object; nothing of what is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}

"""Turns as updates of a session: a pure function of their parts."""

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from perdure.acp.tool_calls import describe_call, find_diff, find_plan
from perdure.agent.loop.limits import LIMITS
from perdure.agent.loop.phase import SUSPENDED_REASON
from perdure.agent.loop.status import TRUNCATED_REASON
from perdure.events.usage import Usage
from perdure.gateway.turns.parts import Called, Ended, Failed, Part, Reasoning, Returned, Text

Update: TypeAlias = dict[str, Any]


@dataclass
class Projection:
    """The updates of a session, part by part, of one turn after the other.

    `cwd` is the folder of the session. A call is told of once, and then updated until its result.
    Some models use the id of a call again: then the editor gets another one.
    """

    cwd: str
    calls: dict[str, Called] = field(default_factory=dict)
    """The calls without a result that were told of, by their ids, with the ids of the editor."""
    _times: dict[str, int] = field(default_factory=dict)
    """How often an id was used."""
    _spoken: str | None = None
    """The item that the last update says; a message of another one begins a paragraph."""

    def take(self, part: Part) -> list[Update]:
        """Return the updates of the next part."""
        match part:
            case Text():
                return self._say(part)
            case Reasoning():
                self._spoken = None
                return [make_chunk("agent_thought_chunk", part.text)]
            case Called():
                self._spoken = None
                return self._call(part)
            case Returned():
                self._spoken = None
                return self._return(part)
            case Ended():
                self._spoken = None
                return []
            case _:
                return []

    def _say(self, text: Text) -> list[Update]:
        if not text.text:
            return []
        follows = self._spoken is not None and self._spoken != text.item_id
        self._spoken = text.item_id
        return [make_chunk("agent_message_chunk", f"\n\n{text.text}" if follows else text.text)]

    def _call(self, call: Called) -> list[Update]:
        told = self._tell(call)
        # Where a person may have to approve it, it is not known to be at work before it returns.
        if call.approval == "possible":
            return told
        return [*told, make_progress(self.calls[call.call_id].call_id)]

    def _tell(self, call: Called) -> list[Update]:
        name = call.call_id
        if name in self.calls:
            return []
        times = self._times[name] = self._times.get(name, 0) + 1
        shown = call if times == 1 else replace(call, call_id=f"{name}#{times}")
        self.calls[name] = shown
        return [{"sessionUpdate": "tool_call", **describe_call(shown, self.cwd)}]

    def _return(self, returned: Returned) -> list[Update]:
        name, told = returned.call_id, list[Update]()
        if name not in self.calls:
            if name in self._times:  # a result that comes too late
                return []
            told = self._tell(Called("", name, returned.tool_name, "{}"))
        call = self.calls.pop(name)
        plan = None if returned.is_error else find_plan(call)
        planned = [{"sessionUpdate": "plan", "entries": plan}] if plan is not None else []
        return [*told, end_call(call, returned, self.cwd), *planned]


def make_chunk(kind: str, text: str) -> Update:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def make_progress(call_id: str) -> Update:
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": "in_progress",
    }


def end_call(call: Called, returned: Returned, cwd: str) -> Update:
    """Return the update that ends a call; it has what was changed as well, if anything was."""
    content: list[Update] = []
    if not returned.is_error and (diff := find_diff(call, cwd)) is not None:
        content.append(diff)
    if returned.text:
        text = {"type": "text", "text": returned.text}
        content.append({"type": "content", "content": text})
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call.call_id,
        "status": "failed" if returned.is_error else "completed",
        "content": content,
        "rawOutput": returned.text,
    }


def find_stop_reason(ended: Ended, failed: Failed | None, *, was_refused: bool) -> str | None:
    """Return why a turn has stopped; None if it failed.

    A turn that somebody has paused, interrupted or closed is cancelled, whoever that was.
    """
    match ended.status:
        case "finished" if ended.reason == TRUNCATED_REASON:
            return "max_tokens"
        case "finished":
            return "refusal" if was_refused else "end_turn"
        case "waiting_for_answer":  # the next prompt is the answer
            return "end_turn"
        case "error" if failed is not None and failed.code in LIMITS:
            return "max_tokens" if failed.code == "max_tokens" else "max_turn_requests"
        case "error" | "stuck":
            return None
        case "idle" if ended.reason == SUSPENDED_REASON:
            return "max_turn_requests"
        case _:
            return "cancelled"


def format_usage(usage: Usage) -> dict[str, int]:
    """Return the tokens of a turn; what is none is left out."""
    counts = {
        "inputTokens": usage.prompt_tokens,
        "outputTokens": usage.completion_tokens,
        "totalTokens": usage.prompt_tokens + usage.completion_tokens,
    }
    more = {"thoughtTokens": usage.reasoning_tokens, "cachedReadTokens": usage.cached_tokens}
    return {**counts, **{name: value for name, value in more.items() if value}}


def make_usage_update(used: int, window: int | None, usage: Usage) -> Update | None:
    """Return how much of the model's window is used; None if it is not known how large it is."""
    if window is None:
        return None
    update: Update = {"sessionUpdate": "usage_update", "used": used, "size": window}
    if usage.known_cost is not None:
        update["cost"] = {"amount": usage.known_cost, "currency": "USD"}
    return update

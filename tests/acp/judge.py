"""A judge of what an agent says over the Agent Client Protocol: it names each deviation.

The schema is that of the official library, and what no schema says is in the rules here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from acp import schema
from pydantic import BaseModel, ValidationError

RESULTS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/close": schema.CloseSessionResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/prompt": schema.PromptResponse,
}

OF_A_TURN = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan")

CODES = (-32700, -32600, -32601, -32602, -32603, -32002)


@dataclass
class Judge:
    """What was said so far; `deviations` are sentences."""

    deviations: list[str] = field(default_factory=list)
    requests: dict[Any, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    asked: set[Any] = field(default_factory=set)
    calls: dict[tuple[str, str], str] = field(default_factory=dict)
    """The statuses of calls, by their session and id."""
    cancelled: set[str] = field(default_factory=set)
    answered: set[Any] = field(default_factory=set)
    told_at_rest: set[str] = field(default_factory=set)
    """The sessions of which a turn may be told without a prompt: they were loaded in it."""

    def hear(self, line: bytes) -> None:
        """Take a line of the editor's."""
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        params = message.get("params", {})
        match message.get("method"):
            case "session/cancel":
                self.cancelled.add(_session(params))
            case None if "result" in message or "error" in message:
                self.asked.discard(message.get("id"))
            case method if isinstance(message.get("id"), int | str):
                params = params if isinstance(params, dict) else {}
                self.requests[message["id"]] = (str(method), params)
                if method == "session/prompt":
                    self.cancelled.discard(_session(params))
                if method in ("session/load", "session/resume"):
                    self.calls = {k: v for k, v in self.calls.items() if k[0] != _session(params)}

    def judge(self, line: bytes) -> None:
        """Take a line of the agent's, and note how it deviates."""
        self.deviations += self._find(line)

    def end(self) -> None:
        """Note which requests have no answer."""
        self.deviations += [f"no answer to {name}" for name, _ in self.requests.values()]

    def _find(self, line: bytes) -> Iterator[str]:
        try:
            message = json.loads(line)
        except ValueError:
            yield f"no message: {line!r}"
            return
        if message.get("jsonrpc") != "2.0" or not line.endswith(b"\n"):
            yield f"no JSON-RPC line: {line!r}"
        is_answer = "method" not in message
        # An answer to what has no id has null, as JSON-RPC wants it.
        yield from (f"null at {path}" for path in _nulls(message) if path != ("id",))
        if is_answer:
            yield from self._judge_answer(message)
        elif message["method"] == "session/update":
            yield from self._judge_update(message["params"])
        elif message["method"] == "session/request_permission":
            self.asked.add(message["id"])
            yield from _validate(schema.RequestPermissionRequest, message["params"])
            call = message["params"]["toolCall"]["toolCallId"]
            if (message["params"]["sessionId"], call) not in self.calls:
                yield f"permission for a call that was not told of: {call}"
        elif message["method"] != "$/cancel_request":
            yield f"unknown method {message['method']}"

    def _judge_answer(self, message: dict[str, Any]) -> Iterator[str]:
        if ("result" in message) == ("error" in message):
            yield "an answer has a result or an error"
        name = message.get("id")
        if name is None:
            return
        if name not in self.requests:
            yield f"an answer too many: {name}"
            return
        method, params = self.requests.pop(name)
        if "error" in message:
            yield from _validate(schema.Error, message["error"])
            if message["error"]["code"] not in CODES:
                yield f"unknown code {message['error']['code']}"
            if method == "session/prompt" and _session(params) in self.cancelled:
                yield "a cancelled prompt fails"
            return
        if method in RESULTS:
            yield from _validate(RESULTS[method], message["result"])
        if method == "session/prompt":
            yield from self._judge_end(_session(params), message["result"])
        if method in ("session/load", "session/resume"):
            self.told_at_rest.add(_session(params))

    def _judge_end(self, session_id: str, result: dict[str, Any]) -> Iterator[str]:
        reason = result.get("stopReason")
        if session_id in self.cancelled and reason not in ("cancelled", "end_turn"):
            yield f"a cancelled prompt ends with {reason}"
        if reason == "end_turn":
            pending = [
                name
                for (of, name), status in self.calls.items()
                if of == session_id and status in ("pending", "in_progress")
            ]
            yield from (f"a turn ends before its call {name}" for name in pending)
        self.told_at_rest.discard(session_id)

    def _judge_update(self, params: dict[str, Any]) -> Iterator[str]:
        yield from _validate(schema.SessionNotification, params)
        session_id, update = params["sessionId"], params["update"]
        kind = update["sessionUpdate"]
        at_work = {method for method, asked in self.requests.values() if _is_of(asked, session_id)}
        if kind == "user_message_chunk" and "session/load" not in at_work:
            yield "a message of the user is told of outside session/load"
        may_tell = at_work & {"session/prompt", "session/load"} or session_id in self.told_at_rest
        if kind in OF_A_TURN and not may_tell:
            yield f"{kind} after the result"
        if kind == "tool_call":
            name = (session_id, update["toolCallId"])
            if name in self.calls:
                yield f"the call {name[1]} is told of twice"
            self.calls[name] = update["status"]
        if kind == "tool_call_update":
            yield from self._judge_call(session_id, update)

    def _judge_call(self, session_id: str, update: dict[str, Any]) -> Iterator[str]:
        name = (session_id, update["toolCallId"])
        known = self.calls.get(name)
        if known is None:
            yield f"an update of a call that was not told of: {name[1]}"
        if known in ("completed", "failed"):
            yield f"an update of the call {name[1]}, which has ended"
        self.calls[name] = str(update.get("status", known))


def _session(params: dict[str, Any]) -> str:
    return str(params.get("sessionId", ""))


def _is_of(params: dict[str, Any], session_id: str) -> bool:
    return _session(params) == session_id


def _validate(kind: type[BaseModel], fields: Any) -> Iterator[str]:
    try:
        kind.model_validate(fields)
    except ValidationError as error:
        yield f"{kind.__name__}: {error}"


def _nulls(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of nulls, but for those in what a model has sent to a tool."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, each in value.items():
            if key != "rawInput":
                yield from _nulls(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _nulls(each, (*path, number))

"""The end of a run: its outcome, what waits for a person, and what it has cost."""

from typing import Any

from perdure.agent.loop.start import PendingCall
from perdure.agent.loop.status import Status
from perdure.events.usage import Usage
from perdure.gateway.ag_ui.calls import ToolCalls
from perdure.gateway.turns.parts import Asked

INTERRUPT_REASON = "tool_call"
"""The protocol's reason of an interrupt that asks whether a tool may be called."""

RESPONSE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether the tool may be called."},
        "reason": {"type": "string", "description": "What the agent is told if it may not."},
    },
    "required": ["approved"],
}
"""The schema of the payload that answers an interrupt."""

MAX_SHOWN_CHARS = 500


def list_interrupts(asked: Asked | None, calls: ToolCalls) -> list[dict[str, Any]]:
    """List what waits for a person; its id is that of the call."""
    return [_describe(call, calls) for call in asked.calls] if asked is not None else []


def _describe(waiting: PendingCall, calls: ToolCalls) -> dict[str, Any]:
    call = calls.known.get(waiting.tool_call_id)
    arguments = call.arguments if call is not None else ""
    shown = arguments if len(arguments) <= MAX_SHOWN_CHARS else f"{arguments[:MAX_SHOWN_CHARS]}…"
    return {
        "id": waiting.tool_call_id,
        "reason": INTERRUPT_REASON,
        "message": f"May {waiting.tool_name} be called? {shown}".strip(),
        "toolCallId": calls.show(waiting.tool_call_id),
        "responseSchema": RESPONSE_SCHEMA,
        "metadata": {"toolName": waiting.tool_name, "risk": waiting.risk},
    }


def describe_end(
    status: Status, reason: str | None, interrupts: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the outcome of a run that has not failed."""
    if interrupts:
        return {"type": "interrupt", "interrupts": interrupts}
    was_stopped = status in ("paused", "closed") or (status == "idle" and reason is not None)
    return {"type": "cancelled" if was_stopped else "success"}


def format_usage(usage: Usage, model: str | None) -> list[dict[str, Any]] | None:
    """Return the tokens of a run; None if it has asked no model."""
    counts = {
        "inputTokens": usage.prompt_tokens,
        "outputTokens": usage.completion_tokens,
        "totalTokens": usage.prompt_tokens + usage.completion_tokens,
        "reasoningTokens": usage.reasoning_tokens,
        "cachedInputTokens": usage.cached_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }
    found = {name: count for name, count in counts.items() if count}
    if not found:
        return None
    return [{**({"model": model} if model else {}), **found}]

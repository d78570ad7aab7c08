"""The items of a response and of a conversation."""

from typing import Any, Literal, TypeAlias

from perdure.gateway.openai.projections.ids import format_approval_id, format_item_id
from perdure.gateway.turns.parts import Called, Reasoning, Returned, Text

Item: TypeAlias = dict[str, Any]

ToolItems: TypeAlias = Literal["mcp_call", "function_call"]
"""The items that calls of tools are shown as.

`mcp_call` says that the server has run the tool. Some chat UIs know a `function_call` with its
output alone.
"""

SERVER_LABEL = "perdure"


def message_item(text: Text) -> Item:
    """Return what the agent begins to say."""
    return {
        "id": format_item_id("msg", text.item_id),
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }


def text_content(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def end_message(item: Item, text: Text) -> Item:
    """Return a message with its whole text."""
    phase = "final_answer" if text.final else "commentary"
    content = [text_content(text.whole)]
    return {**item, "status": "completed", "content": content, "phase": phase}


def reasoning_item(reasoning: Reasoning) -> Item:
    return {
        "id": format_item_id("rs", reasoning.item_id),
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": reasoning.text}],
        "status": "completed",
    }


def call_item(call: Called, kind: ToolItems, *, was_approved: bool = False) -> Item:
    """Return a call of a tool that has no result yet; `was_approved` by a person."""
    if kind == "function_call":
        return {
            "id": format_item_id("fc", call.item_id, call.call_id),
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.tool_name,
            "arguments": call.arguments,
            "status": "in_progress",
        }
    return {
        "id": format_item_id("mcp", call.item_id, call.call_id),
        "type": "mcp_call",
        "server_label": SERVER_LABEL,
        "name": call.tool_name,
        "arguments": call.arguments,
        "output": None,
        "error": None,
        "status": "in_progress",
        "approval_request_id": format_approval_id(call.call_id) if was_approved else None,
    }


def end_call(item: Item, returned: Returned | None) -> Item:
    """Return a call with its result; without one it is incomplete."""
    if returned is None:
        return {**item, "status": "incomplete"}
    if item["type"] == "function_call":
        return {**item, "status": "completed"}
    if returned.is_error:
        content = [{"type": "text", "text": returned.text}]
        error = {"type": "mcp_tool_execution_error", "content": content}
        return {**item, "status": "failed", "error": error}
    return {**item, "status": "completed", "output": returned.text}


def call_output_item(item: Item, returned: Returned) -> Item:
    """Return the result of a `function_call` as an item of its own.

    Its output is a list of parts, as Open WebUI has it: a text alone breaks the chat there.
    """
    return {
        "id": f"fco_{item['id'].removeprefix('fc_')}",
        "type": "function_call_output",
        "call_id": returned.call_id,
        "output": [{"type": "input_text", "text": returned.text}],
        "status": "completed",
    }


def approval_item(call: Called) -> Item:
    """Return the request for a person's approval of a call."""
    return {
        "id": format_approval_id(call.call_id),
        "type": "mcp_approval_request",
        "server_label": SERVER_LABEL,
        "name": call.tool_name,
        "arguments": call.arguments,
    }


def user_item(item_id: str, text: str) -> Item:
    """Return a message of a user."""
    return {
        "id": item_id,
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": [{"type": "input_text", "text": text}],
    }

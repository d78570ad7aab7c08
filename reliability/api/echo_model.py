"""A model that says what it was told, so that each user's conversations say that user's words."""

import json
from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

MAX_CHARS = 500


class EchoModel:
    """The route of OpenAI's chat; a message `write WORD` is answered by a call of a tool."""

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self.answer, methods=["POST"])])

    async def answer(self, request: Request) -> JSONResponse:
        body = await request.json()
        message = _answer(body["messages"], bool(body.get("tools")))
        reason = "tool_calls" if "tool_calls" in message else "stop"
        return JSONResponse(
            {
                "id": "echo",
                "object": "chat.completion",
                "model": "echo",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
        )


def _answer(messages: Sequence[dict[str, Any]], may_call: bool) -> dict[str, Any]:
    told = _text_of([it for it in messages if it["role"] == "user"][-1])
    called = any(it["role"] == "tool" for it in messages)
    if not (may_call and told.startswith("write ") and not called):
        return {"role": "assistant", "content": f"You said: {told[:MAX_CHARS]}"}
    arguments = {"command": "create", "path": "plan.txt", "file_text": told}
    function = {"name": "file_editor", "arguments": json.dumps(arguments)}
    call = {"id": "call_write", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content)

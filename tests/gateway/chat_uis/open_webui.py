"""Open WebUI's own server, and what its page asks of it."""

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.gateway.chat_uis.environment import OPEN_WEBUI
from tests.gateway.openai.stage import OpenAiStage

START_SECONDS, TURN_SECONDS = 100, 60

HEADERS = {"X-Conversation-Id": "{{CHAT_ID}}", "X-Perdure-Task": "{{TASK}}"}
"""The headers of a connection, as docs/clients/openai.md has them."""

TOOL_ITEMS = {"X-Perdure-Tool-Items": "function_call"}

CONNECTIONS = {
    "chat": {"prefix_id": "chat", "headers": HEADERS},
    "responses": {
        "prefix_id": "responses",
        "api_type": "responses",
        "headers": {**HEADERS, **TOOL_ITEMS},
    },
}

TASKS = {"title_generation": True, "tags_generation": True, "follow_up_generation": True}


@dataclass
class WebChat:
    """A chat of Open WebUI's, of which the server keeps what was said."""

    model: str
    chat_id: str | None = None
    last: str | None = None
    messages: list[dict[str, str]] = field(default_factory=list)


@dataclass
class OpenWebUi:
    """Open WebUI, and its first user, who may do all."""

    http: httpx.AsyncClient

    async def models(self) -> list[str]:
        found = (await self.http.get("/api/models")).json()
        return sorted(model["id"] for model in found["data"])

    async def say(self, chat: WebChat, text: str) -> dict[str, Any]:
        """Say something in a chat, as the page does; return the message of its answer."""
        asked, answered = str(uuid.uuid4()), str(uuid.uuid4())
        chat.messages.append({"role": "user", "content": text})
        message = {"id": asked, "parentId": chat.last, "role": "user", "content": text}
        body: dict[str, Any] = {
            "model": chat.model,
            "stream": True,
            "messages": chat.messages,
            "parent_id": chat.last,
            "user_message": {**message, "models": [chat.model]},
            "message_ids": [{"model_id": chat.model, "message_id": answered}],
            "background_tasks": TASKS,
            "session_id": "none",
            **({"chat_id": chat.chat_id} if chat.chat_id else {}),
        }
        said = await self.http.post("/api/chat/completions", json=body)
        assert said.status_code == 200, said.text
        chat.chat_id, chat.last = said.json()["chat_id"], answered
        found = await self.wait_for(chat, answered)
        chat.messages.append({"role": "assistant", "content": found["content"]})
        return found

    async def wait_for(self, chat: WebChat, message_id: str) -> dict[str, Any]:
        """Wait until a message is done, and return it."""
        async with asyncio.timeout(TURN_SECONDS):
            while True:
                found = (await self.http.get(f"/api/v1/chats/{chat.chat_id}")).json()
                message: dict[str, Any] = found["chat"]["history"]["messages"][message_id]
                if message.get("done"):
                    return message
                await asyncio.sleep(0.2)

    async def title(self, chat: WebChat) -> str:
        return str((await self.http.get(f"/api/v1/chats/{chat.chat_id}")).json()["title"])


@asynccontextmanager
async def serve_open_webui(stage: OpenAiStage, folder: Path) -> AsyncIterator[OpenWebUi]:
    """Run Open WebUI over a gateway while inside, with a connection of each kind."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = str(OPEN_WEBUI.place / "bin" / "open-webui")
    with (folder / "open-webui.log").open("wb") as log:
        program = await asyncio.create_subprocess_exec(
            *(command, "serve", "--host", "127.0.0.1", "--port", str(port)),
            env=environment(stage, folder),
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            await wait_until_up(http, program, folder / "open-webui.log")
            yield await sign_up(http, stage)
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()


def environment(stage: OpenAiStage, folder: Path) -> dict[str, str]:
    """Return the variables of the server, which asks nothing of the network but the gateway."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "DATA_DIR": str(folder),
        "STATIC_DIR": str(folder / "static"),
        "WEBUI_SECRET_KEY": "none",
        "OFFLINE_MODE": "true",
        "ENABLE_OLLAMA_API": "false",
        "RAG_EMBEDDING_ENGINE": "openai",
        "RAG_OPENAI_API_BASE_URL": stage.gateway.url,
        "ANONYMIZED_TELEMETRY": "false",
        "DEFAULT_MODEL_METADATA": '{"capabilities": {"builtin_tools": false}}',
    }


async def wait_until_up(
    http: httpx.AsyncClient, program: asyncio.subprocess.Process, log: Path
) -> None:
    async with asyncio.timeout(START_SECONDS):
        while program.returncode is None:
            try:
                if (await http.get("/health")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.5)
    raise RuntimeError(log.read_text())


async def sign_up(http: httpx.AsyncClient, stage: OpenAiStage) -> OpenWebUi:
    """Make the first user, and connect the server with the gateway."""
    who = {"name": "Anna", "email": "anna@example.org", "password": "one-of-hers"}
    made = await http.post("/api/v1/auths/signup", json=who)
    http.headers["Authorization"] = f"Bearer {made.json()['token']}"
    url, key = f"{stage.gateway.url}/openai/v1", stage.anna.api_key
    connections = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [url] * len(CONNECTIONS),
        "OPENAI_API_KEYS": [key] * len(CONNECTIONS),
        "OPENAI_API_CONFIGS": {
            str(index): {"enable": True, **it} for index, it in enumerate(CONNECTIONS.values())
        },
    }
    (await http.post("/openai/config/update", json=connections)).raise_for_status()
    return OpenWebUi(http)

"""Two users with things of each kind, all of which have a word of their user's."""

import asyncio
import json
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

from perdure.storage.credentials.api_keys import create_api_key
from perdure.storage.store import Store

IMAGES = {
    "anna": (b"\x89PNG\r\n\x1a\nanna", "data:image/png;base64,iVBORw0KGgphbm5h"),
    "ben": (b"\x89PNG\r\n\x1a\nben!", "data:image/png;base64,iVBORw0KGgpiZW4h"),
}

CONVERSATIONS, BATCHES, KEYS, OTHERS = 24, 4, 20, 4
PARALLEL = 2
"""Conversations of a user that work at once: one more than three suspends another."""


@dataclass
class CanaryUser:
    """A user with a key of every scope, and the ids of what the user has."""

    user_id: str
    key: str
    canary: str
    """A word that is in everything of this user's, and in nothing of anybody else's."""
    conversations: list[str] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    discussions: list[str] = field(default_factory=list)
    memories: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    schedules: list[str] = field(default_factory=list)
    blob: str = ""


async def make_canary_user(store: Store, url: str, user_id: str) -> CanaryUser:
    """Make the things of a user by requests to the gateway."""
    made = await create_api_key(store, user_id, "fuzz", ("read", "write", "admin"))
    key = made.secret
    canary = f"canary-{user_id}-{sha256(key.encode()).hexdigest()[:12]}"
    user = CanaryUser(user_id, key, canary, blob=sha256(IMAGES[user_id][0]).hexdigest())
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        room = asyncio.Semaphore(PARALLEL)

        async def make_one() -> str:
            async with room:
                return await _make_conversation(client, user)

        user.conversations = list(await asyncio.gather(*(make_one() for _ in range(CONVERSATIONS))))
        for nth in range(BATCHES):
            user.batches.append(await _make_batch(client, f"{user_id}s-batch-{nth}", canary))
        for _ in range(KEYS):
            another = await _request(client, "POST", "/v1/keys", {"name": canary})
            user.keys.append(another["key"]["id"])
        for nth in range(OTHERS):
            await _make_others(client, user, nth)
    return user


async def _make_others(client: httpx.AsyncClient, user: CanaryUser, nth: int) -> None:
    """Make a discussion, a memory, an agent, a secret and a schedule with the word of the user."""
    word, name = user.canary, f"{user.user_id}s-{nth}"
    agents = [{"id": speaker, "agent": "default"} for speaker in ("ada", "bob")]
    discussion = {"topic": word, "agents": agents}
    body = {"discussion": discussion, "id": name}
    await _request(client, "POST", "/v1/discussions", body)
    user.discussions.append(name)
    memory = await _request(client, "POST", "/v1/memories", {"text": f"{word} {nth}"})
    user.memories.append(memory["id"])
    agent = {"description": word, "instructions": word}
    await _request(client, "PUT", f"/v1/agents/{name}", agent)
    user.agents.append(name)
    secret = f"{user.user_id}_secret_{nth}".upper()
    handed_in = {"value": f"value {word}", "description": word}
    await _request(client, "PUT", f"/v1/secrets/{secret}", handed_in)
    user.secrets.append(secret)
    schedule = {"text": word, "cron": ["0 8 1 1 *"]}
    await _request(client, "POST", f"/v1/schedules/{name}", schedule)
    user.schedules.append(name)


async def _make_conversation(client: httpx.AsyncClient, user: CanaryUser) -> str:
    """Make a conversation that has this word in its messages, title, tags, values and files."""
    word = user.canary
    body = {"text": f"write {word}", "images": [IMAGES[user.user_id][1]], "tags": [word]}
    started = await _request(client, "POST", "/v1/conversations", body)
    conversation_id = str(started["id"])
    path = f"/v1/conversations/{conversation_id}"
    while (await _request(client, "GET", path))["status"]["status"] != "finished":
        await asyncio.sleep(0.2)
    await _request(client, "PATCH", path, {"title": word, "state": {"color": word}})
    return conversation_id


async def _make_batch(client: httpx.AsyncClient, name: str, word: str) -> str:
    batch = {"name": name, "scorers": ["match"]}
    samples = [{"input": f"say {word}", "target": word}]
    await _request(client, "POST", "/v1/batches", {"batch": batch, "samples": samples})
    path = f"/v1/batches/{name}"
    while (await _request(client, "GET", path))["progress"]["status"] != "finished":
        await asyncio.sleep(0.2)
    return name


async def _request(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    response = await client.request(method, path, json=body)
    assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
    return response.json() if response.content else None


def write_canary_users(path: Path, users: list[CanaryUser]) -> None:
    path.write_text(json.dumps([asdict(user) for user in users]))

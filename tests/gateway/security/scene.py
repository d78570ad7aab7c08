"""Things of Anna's that nobody else may see, and the ids by which others may ask for them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import temporalio.client
from pydantic import SecretStr

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.client.ids import new_conversation_id
from perdure.models.router import ModelRouter
from perdure.operations.worker.process import workspace_queue
from perdure.storage.files import FileStore
from tests.gateway.security.routes import Ids
from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.secrets.keys import key_setting
from tests.workflows.discussion.debate import script, wants

CANARY = "violet-4711"
"""A word that is in everything of Anna's, and in nothing of anybody else's."""

IMAGE = b"\x89PNG\r\n\x1a\nviolet-4711"
IMAGE_URL = "data:image/png;base64,iVBORw0KGgp2aW9sZXQtNDcxMQ=="

RATES = dict.fromkeys(("read", "write", "costly", "failure", "report"), 6e6)
"""No request is one too many."""

ABSENT = Ids(
    conversation_id=new_conversation_id(),
    name="no_such_thing",
    key_id="0" * 16,
    path="no-such-file.txt",
    sha256="0" * 64,
)


@asynccontextmanager
async def open_stage(
    temporal: temporalio.client.Client, folder: Path, **settings: Any
) -> AsyncIterator[GatewayStage]:
    """Serve a gateway with a worker and a store of its own while inside, for several tests."""
    store = FileStore(folder / "store")
    client = Client(temporal, store, task_queue=f"test-{folder.name}")
    home = workspace_queue(folder / "workspaces", client.task_queue)
    resources = Resources(store, ModelRouter(), folder / "workspaces", home=home)
    world = ConversationHarness(client, resources, folder)
    settings = {"gateway_rates": RATES, **settings}
    async with world.worker(), open_gateway(world, **settings) as stage:
        yield stage


CACHES = (["index"], ["memory-index"], ["memory-changes"])
"""The folders of a user whose content is made anew from the rest."""


async def make_annas(stage: GatewayStage) -> Ids:
    """Make a conversation with files, values and grants, a batch, a discussion and a key of
    Anna's."""
    write = {"command": "create", "path": "plan.txt", "file_text": f"{CANARY}\n"}
    agent = stage.harness.spec(
        tool_call_answer(("file_editor", write)),
        *[text_answer(f"It is {CANARY}.")] * 20,
        tools=("file_editor",),
    )
    body = {"text": f"Plan {CANARY}.", "agent": as_json(agent), "images": [IMAGE_URL]}
    started = await stage.anna.post("/v1/conversations", json=body)
    assert started.status_code == 201, started.text
    conversation_id = started.json()["id"]
    await stage.wait_until(conversation_id, "finished")
    path = f"/v1/conversations/{conversation_id}"
    note = {"title": CANARY, "tags": [CANARY], "state": {"color": CANARY}}
    assert (await stage.anna.patch(path, json=note)).status_code == 200
    batch = {
        "name": "annas_sums",
        "agent": as_json(stage.harness.spec(*[text_answer(CANARY)] * 9, tools=("think",))),
        "scorers": ["match"],
    }
    samples = [{"id": "violet", "input": f"What is {CANARY}?", "target": CANARY}]
    made = await stage.anna.post("/v1/batches", json={"batch": batch, "samples": samples})
    assert made.status_code == 201, made.text
    name = str(batch["name"])
    path = f"/v1/batches/{name}"
    while (shown := (await stage.anna.get(path)).json())["progress"]["status"] != "finished":
        await asyncio.sleep(0.2)
    session_id = await make_discussion(stage)
    memory_id = await make_reusable(stage, name)
    key = await stage.anna.post("/v1/keys", json={"name": CANARY})
    webhook = await stage.anna.post("/v1/webhooks", json={"url": f"https://8.8.8.8/{CANARY}"})
    assert webhook.status_code == 201, webhook.text
    blob = sha256(IMAGE).hexdigest()
    address = await stage.anna.post("/v1/addresses", json={"conversation_id": conversation_id})
    assert address.status_code == 201, address.text
    ids = Ids(conversation_id, name, key.json()["key"]["id"], "plan.txt", blob)
    return ids._replace(
        sample_set=shown["sample_set"],
        session_id=session_id,
        memory_id=memory_id,
        webhook_id=webhook.json()["id"],
        address_id=address.json()["id"],
    )


async def make_reusable(stage: GatewayStage, name: str) -> str:
    """Make an agent, a secret, a schedule and a memory of Anna's; return the id of the memory."""
    agent = {"description": CANARY, "model": "openai/any"}
    assert (await stage.anna.put(f"/v1/agents/{name}", json=agent)).status_code == 200
    stage.gateway.client.secret_keys = SecretStr(key_setting("one"))
    secret = {"value": f"{CANARY} for ever", "description": "of mine"}
    assert (await stage.anna.put(f"/v1/secrets/{name}", json=secret)).is_success
    await stage.anna.delete(f"/v1/schedules/{name}")  # of another stage: Temporal keeps it
    schedule = {"text": CANARY, "cron": ["0 8 1 1 *"], "agent": name}
    assert (await stage.anna.post(f"/v1/schedules/{name}", json=schedule)).is_success
    made = await stage.anna.post("/v1/memories", json={"text": f"It was {CANARY}."})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def make_discussion(stage: GatewayStage) -> str:
    """Let an agent of Anna's discuss with itself to the end; return the discussion's id."""
    folder, session_id = stage.harness.folder, "annas-talk"
    model = script(folder, [wants(1, CANARY), f"It is {CANARY}."])
    discussion = {"topic": f"What of {CANARY}?", "agents": [{"id": "ada", "model": model}]}
    body = {"discussion": discussion, "id": session_id}
    made = await stage.anna.post("/v1/discussions", json=body)
    assert made.status_code == 201, made.text
    path = f"/v1/discussions/{session_id}"
    while (await stage.anna.get(path)).json()["status"]["status"] != "finished":
        await asyncio.sleep(0.1)
    return session_id


async def objects_of(stage: GatewayStage, *prefixes: str) -> Mapping[str, Any]:
    """Return all that the store has under these prefixes, but for caches.

    A list writes what it had to read from logs into a cache, and a search indexes memories.
    """
    store = stage.gateway.store
    found = [key for prefix in prefixes for key in await store.list(prefix)]
    keys = [key for key in found if key.split("/")[2:3] not in CACHES]
    return {key: await store.read(key) for key in keys}

"""Things of Anna's that nobody else may see, and the ids by which others may ask for them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import temporalio.client

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.client.ids import new_conversation_id
from perdure.models.router import ModelRouter
from perdure.operations.worker_process import workspace_queue
from perdure.storage.files import FileStore
from tests.gateway.security.routes import Ids
from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness, text_answer, tool_call_answer

CANARY = "violet-4711"
"""A word that is in everything of Anna's, and in nothing of anybody else's."""

IMAGE = b"\x89PNG\r\n\x1a\nviolet-4711"
IMAGE_URL = "data:image/png;base64,iVBORw0KGgp2aW9sZXQtNDcxMQ=="

RATES = dict.fromkeys(("read", "write", "costly", "failure", "report"), 6e6)
"""No request is one too many."""

ABSENT = Ids(
    conversation_id=new_conversation_id(),
    name="no-such-batch",
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


async def make_annas(stage: GatewayStage) -> Ids:
    """Make a conversation with files, values and grants, a batch and a key of Anna's."""
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
        "name": "annas-sums",
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
    key = await stage.anna.post("/v1/keys", json={"name": CANARY})
    blob = sha256(IMAGE).hexdigest()
    ids = Ids(conversation_id, name, key.json()["key"]["id"], "plan.txt", blob)
    return ids._replace(sample_set=shown["sample_set"])


async def objects_of(stage: GatewayStage, *prefixes: str) -> Mapping[str, Any]:
    """Return all that the store has under these prefixes, once Anna's workflows are idle."""
    store = stage.gateway.store
    keys = [key for prefix in prefixes for key in await store.list(prefix)]
    return {key: await store.read(key) for key in keys}

"""The payload keys of a client and a worker, which come from their settings and nowhere else."""

import asyncio
import base64
import signal
import sys
import uuid
from pathlib import Path

import pytest
from pydantic import SecretStr

from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.settings.settings import Settings

KEYS = f"k1:{base64.b64encode(bytes(32)).decode()}"

WORKER = """
import asyncio, sys
from perdure.settings.settings import Settings
from perdure.worker import run
store, data, queue, keys = sys.argv[1:]
places = {"store": store, "data": data, "task_queue": queue}
asyncio.run(run(Settings(**places, payload_keys=keys, sandbox="none")))
"""


def settings_of(folder: Path, keys: str | None) -> Settings:
    return Settings(
        store=f"file://{folder / 'store'}",
        data=folder,
        task_queue=f"test-{uuid.uuid4()}",
        sandbox="none",
        payload_keys=None if keys is None else SecretStr(keys),
    )


async def start(settings: Settings) -> Conversation:
    client = await Client.connect(settings)
    return await client.start("rosebud", Agent(model=ModelSpec(name="scripted:nothing")))


async def is_readable_in_temporal(conversation: Conversation) -> bool:
    history = await conversation.handle.fetch_history()
    return any(b"rosebud" in event.SerializeToString() for event in history.events)


@pytest.mark.parametrize("keys", [None, KEYS], ids=["none", "one"])
async def test_a_client_encrypts_with_the_keys_of_its_settings_alone(
    keys: str | None,
    temporal_server: TemporalServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal_server.address)
    if keys is None:
        monkeypatch.setenv("PERDURE_PAYLOAD_KEYS", KEYS)
    conversation = await start(settings_of(tmp_path, keys))
    assert await is_readable_in_temporal(conversation) == (keys is None)
    await conversation.handle.terminate()


@pytest.mark.long
async def test_a_worker_encrypts_with_the_keys_of_its_settings(
    temporal_server: TemporalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal_server.address)
    settings = settings_of(tmp_path, KEYS)
    arguments = (str(settings.store), str(settings.data), settings.task_queue, KEYS)
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, *arguments)
    conversation = await start(settings)
    async with asyncio.timeout(60):
        state = await conversation.wait_for_turn()
    worker.send_signal(signal.SIGTERM)
    assert await worker.wait() == 0
    assert state.status == "error", "the worker has read the message, and its model has no script"
    assert not await is_readable_in_temporal(conversation)
    await conversation.handle.terminate()

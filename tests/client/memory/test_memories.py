"""The memories of a client, by the settings of the client."""

from pathlib import Path

import pytest

from perdure.client.http.client import HttpClient
from perdure.client.memory.http_memories import HttpMemories
from perdure.client.memory.memories import Memories
from perdure.errors import Invalid
from perdure.gateway.serve import connect_client
from perdure.settings.settings import Settings


async def test_the_memories_of_a_client_have_its_settings(tmp_path: Path) -> None:
    memory = {"embedding_model": "python:no_such_module:embed"}
    async with connect_client(Settings(store=f"file://{tmp_path}", memory=memory)) as client:
        with pytest.raises(Invalid, match="no_such_module"):
            Memories.from_client(client)


async def test_the_memories_of_a_client_of_a_gateway_are_there() -> None:
    client = HttpClient("http://127.0.0.1:9", "key")
    found: object = Memories.from_client(client)  # type: ignore[arg-type]  # as Client.connect() is
    assert isinstance(found, HttpMemories)
    await client.close()

"""Write docs/openapi.json: `python -m tests.record_openapi`."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from perdure.client.client import Client
from perdure.gateway.app import create_app
from perdure.gateway.gateway import Gateway
from perdure.settings.settings import Settings
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect

OPENAPI = Path(__file__).parents[1] / "docs" / "openapi.json"


async def describe_api() -> dict[str, Any]:
    """Describe the native API: no request is sent for that."""
    with tempfile.TemporaryDirectory() as folder:
        temporal = await connect("127.0.0.1:1", lazy=True)
        client = Client(temporal, FileStore(Path(folder)))
        return create_app(Gateway(client, Settings())).openapi()


def encode(description: dict[str, Any]) -> str:
    return json.dumps(description, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    OPENAPI.write_text(encode(asyncio.run(describe_api())))
    print(OPENAPI)

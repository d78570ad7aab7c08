"""The operations that a conversation of one answer does on its store."""

import re
import uuid
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from bench.servers import Servers
from bench.shapes import Shape
from perdure.activities.support.resources import Resources
from perdure.agent.spec import Agent
from perdure.client.client import Client
from perdure.models.router import ModelRouter
from perdure.storage.store import Store
from perdure.temporal.connect import connect
from perdure.worker import build_worker

CONVERSATION = re.compile(r".*/conversations/[^/]+/")
NUMBER = re.compile(r"\d{6}(_[0-9a-f-]+)?")


class CountingStore:
    """A store that counts the calls of its operations, whichever it has."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.counts: Counter[str] = Counter()

    def __getattr__(self, operation: str) -> Any:
        method: Callable[..., Any] = getattr(self._store, operation)

        @wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            key = args[0] if args and isinstance(args[0], str) else ""
            self.counts[describe_operation(operation, key)] += 1
            return method(*args, **named)

        return call


def describe_operation(operation: str, key: str) -> str:
    """Return the operation and the key within its conversation, without ids and numbers."""
    return f"{operation} {NUMBER.sub('N', CONVERSATION.sub('', key))}".strip()


async def count_operations(servers: Servers) -> dict[str, int]:
    """Run a conversation on a worker in this process, and count what the worker asks of a store."""
    store, shape, queue = servers.store(on_s3=False), Shape(), f"operations-{uuid.uuid4()}"
    temporal = await connect(servers.temporal.address)
    counting = CountingStore(store)
    world = Resources(cast("Store", counting), ModelRouter(), servers.folder / "workspaces")
    agent = shape.agent("steps-0", str(servers.scripts), servers.api_base)
    async with build_worker(temporal, queue, world):
        talk = await Client(temporal, store, task_queue=queue).start(
            "Add.", Agent.model_validate(agent)
        )
        await talk.handle.result()
    return dict(sorted(counting.counts.items()))

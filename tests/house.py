"""Conversations on a real Temporal server, with a worker in this process and a scripted model."""

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.world import World
from agent.spec import Limits, ModelSpec, Spec
from client.client import Client
from tools.terminal import SESSIONS
from worker import build_worker, build_worker_at_home


@dataclass
class House:
    """A store, a queue of its own, and scripts for the model."""

    client: Client
    world: World
    folder: Path

    def spec(self, *answers: dict[str, Any], **fields: Any) -> Spec:
        """A spec whose model gives these answers."""
        path = self.folder / f"{uuid.uuid4()}.json"
        path.write_text(json.dumps({"answers": answers}))
        limits = Limits(**fields.pop("limits", {}))
        tools = fields.pop("tools", ("tests.tools_at_hand:TOOLS", "think", "finish"))
        return Spec(model=ModelSpec(name=f"scripted:{path}"), limits=limits, tools=tools, **fields)

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as workers:
            temporal = self.client.temporal
            worker = build_worker(temporal, self.client.task_queue, self.world)
            await workers.enter_async_context(worker)
            if self.world.home is not None:
                await workers.enter_async_context(build_worker_at_home(temporal, self.world))
            yield
        await self.world.mcp.close()
        await SESSIONS.close()


def says(text: str) -> dict[str, Any]:
    return {"content": text}


def calls(*named: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": args} for name, args in named], **more}


def hurry(spec: Spec) -> None:
    """The model does not let anybody wait any more between two words."""
    script = Path(spec.model.name.removeprefix("scripted:"))
    script.write_text(script.read_text().replace('"chunk_delay": 60', '"chunk_delay": 0'))


def kinds(entries: Sequence[Any]) -> list[str]:
    return [entry.event.kind for entry in entries]

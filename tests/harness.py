"""Conversations on a real Temporal server, with a worker in this process and a scripted model."""

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.activities.support.resources import Resources
from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.tools.terminal import SESSIONS
from perdure.worker import build_model_workers, build_worker, build_workspace_worker


@dataclass
class ConversationHarness:
    """Conversations with a store, a queue and scripts for the model."""

    client: Client
    resources: Resources
    folder: Path

    def spec(self, *answers: dict[str, Any], **fields: Any) -> Agent:
        """Return a spec whose model gives these answers."""
        path = self.folder / f"{uuid.uuid4()}.json"
        path.write_text(json.dumps({"answers": answers}))
        limits = Limits(**fields.pop("limits", {}))
        tools = fields.pop("tools", ("tests.example_tools:TOOLS", "think", "finish"))
        return Agent(model=ModelSpec(name=f"scripted:{path}"), limits=limits, tools=tools, **fields)

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as workers:
            temporal = self.client.temporal
            worker = build_worker(temporal, self.client.task_queue, self.resources)
            await workers.enter_async_context(worker)
            if self.resources.home is not None:
                await workers.enter_async_context(build_workspace_worker(temporal, self.resources))
            yield
        await self.resources.mcp.close()
        await SESSIONS.close()


@contextlib.asynccontextmanager
async def model_workers(harness: ConversationHarness) -> AsyncIterator[None]:
    """Run the workers of rate-limited models while inside."""
    async with contextlib.AsyncExitStack() as workers:
        for worker in build_model_workers(harness.client.temporal, harness.resources):
            await workers.enter_async_context(worker)
        yield


def text_answer(text: str) -> dict[str, Any]:
    return {"content": text}


def tool_call_answer(*named: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": args} for name, args in named], **more}


def remove_chunk_delay(spec: Agent) -> None:
    """Remove the delay between two chunks from the script of the model."""
    script = Path(spec.model.name.removeprefix("scripted:"))
    script.write_text(script.read_text().replace('"chunk_delay": 60', '"chunk_delay": 0'))


def event_kinds(entries: Sequence[Any]) -> list[str]:
    return [entry.event.kind for entry in entries]

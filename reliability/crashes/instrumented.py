"""Store, model, tools and steps of a worker, instrumented with crash points.

Each wraps a whole interface, not some calls of it: what comes new goes through here as well.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import temporalio.client
import temporalio.worker
from temporalio import activity

from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.agent.spec import Agent
from perdure.events.custom import AnyObservation
from perdure.events.messages import SystemPromptEvent
from perdure.memory.lance import LanceIndex
from perdure.memory.records import MemoryRecords
from perdure.memory.service import MemoryService
from perdure.memory.user_memory import UserMemory
from perdure.models.model import Model, OnText, Request
from perdure.sandbox.sandbox import Access, Launch, Unconfined
from perdure.storage.errors import StoreUnavailable
from perdure.storage.keys import memory_index_prefix
from perdure.storage.log.reader import LogReader
from perdure.storage.store import Store, Version
from perdure.tools.tool import Context, Tool
from reliability.crashes.bills import Bill, write_bill
from reliability.crashes.points import Points

T = TypeVar("T")

LOST = StoreUnavailable("The store does not answer: ask again.")


class InstrumentedStore:
    """A store."""

    def __init__(self, store: Store, points: Points) -> None:
        self.store = store
        self.points = points

    async def create(self, key: str, body: bytes) -> bool:
        work = partial(self.store.create, key, body)
        return await self.points.around(f"store.create {key}", work, LOST)

    async def read(self, key: str) -> bytes | None:
        work = partial(self.store.read, key)
        return await self.points.around(f"store.read {key}", work, LOST)

    async def replace(self, key: str, body: bytes) -> None:
        work = partial(self.store.replace, key, body)
        await self.points.around(f"store.replace {key}", work, LOST)

    async def read_version(self, key: str) -> Version | None:
        work = partial(self.store.read_version, key)
        return await self.points.around(f"store.read_version {key}", work, LOST)

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        work = partial(self.store.replace_version, key, body, tag)
        return await self.points.around(f"store.replace_version {key}", work, LOST)

    async def delete(self, key: str) -> None:
        await self.points.around(f"store.delete {key}", partial(self.store.delete, key), LOST)

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        work = partial(self.store.folders, prefix, after, limit)
        return await self.points.around(f"store.folders {prefix} {after}", work, LOST)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        work = partial(self.store.list, prefix, after, limit)
        return await self.points.around(f"store.list {prefix} {after}", work, LOST)

    async def close(self) -> None:
        await self.store.close()


class InstrumentedMemories(MemoryService):
    """The memories of users, whose records and index are instrumented."""

    def __init__(self, store: InstrumentedStore) -> None:
        super().__init__(store)
        self._users: dict[str, UserMemory] = {}
        self._inner, self._points = store.store, store.points

    def of_user(self, user_id: str) -> UserMemory:
        if user_id not in self._users:
            prefix = memory_index_prefix(user_id)
            index = InstrumentedIndex(lambda: self._inner, prefix, None, self._points)
            self._users[user_id] = UserMemory(MemoryRecords(self.store, user_id), index)
        return self._users[user_id]


class InstrumentedIndex(LanceIndex):
    """An index of memories: each request to LanceDB stands between two points.

    The library reaches the store by itself, so that this is as near as one can come.
    """

    def __init__(
        self, store: Callable[[], Store], prefix: str, model: str | None, points: Points
    ) -> None:
        super().__init__(store, prefix, model)
        self.points = points

    async def _guard(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self.points.around("index", partial(super()._guard, call))


class InstrumentedModel:
    """A model; every answer that it was paid for is one more in the file `bills`."""

    def __init__(self, model: Model, points: Points, bills: Path) -> None:
        self.model = model
        self.points = points
        self.bills = bills

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        number = f" {request.number}" if request.number is not None else ""
        what = f"{request.purpose or 'chat'}{number}"

        async def paid() -> Completion:
            answer = await self.model.complete(request, on_text)
            write_bill(self.bills, Bill(what, activity.info().activity_id))
            return answer

        return await self.points.around(f"model.{what}", paid)


@dataclass(frozen=True)
class InstrumentedResources(Resources):
    """A world whose tools begin and end at points."""

    points: Points = field(kw_only=True)

    def offered_tools(
        self, spec: Agent, prompt: SystemPromptEvent, log: LogReader
    ) -> Mapping[str, Tool]:
        tools = super().offered_tools(spec, prompt, log)
        return {name: self._instrument(tool) for name, tool in tools.items()}

    def _instrument(self, tool: Tool) -> Tool:
        async def run(action: Any, context: Context) -> AnyObservation:
            work = partial(tool.run, action, context)
            return await self.points.around(f"tool {tool.name} {context.seq}", work)

        return replace(tool, run=run)


@dataclass(frozen=True)
class InstrumentedSandbox(Unconfined):
    """No sandbox, but points before and behind each program that a step starts."""

    points: Points = field(kw_only=True)

    def prepare(self, workspace: Path) -> None:
        self.points.pass_by("sandbox.prepare")
        super().prepare(workspace)

    def launch(self, argv: Sequence[str], access: Access, environment: Mapping[str, str]) -> Launch:
        self.points.pass_by("sandbox.launch")
        return super().launch(argv, access, environment)


class StepInterceptor(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Every step, from before it reads anything until Temporal is to learn what came of it."""

    def __init__(self, points: Points) -> None:
        self.points = points

    def intercept_activity(
        self, next: temporalio.worker.ActivityInboundInterceptor
    ) -> temporalio.worker.ActivityInboundInterceptor:
        return _InstrumentedStep(next, self.points)


class _InstrumentedStep(temporalio.worker.ActivityInboundInterceptor):
    def __init__(self, next: temporalio.worker.ActivityInboundInterceptor, points: Points) -> None:
        super().__init__(next)
        self.points = points

    async def execute_activity(self, input: temporalio.worker.ExecuteActivityInput) -> Any:
        return await self.points.around("step", partial(self.next.execute_activity, input))

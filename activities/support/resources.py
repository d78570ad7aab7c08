"""The resources that activities share on a worker: store, models, sandbox, caches."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from perdure.activities.support.model_queues import RateLimitedQueues
from perdure.activities.support.step import (
    StepProgress,
    check_owner,
    final_failure,
    heartbeating,
    runs_without_owner,
)
from perdure.activities.support.transcript_cache import TranscriptCache
from perdure.agent.loop.attempt import Attempt
from perdure.agent.loop.steps import Task
from perdure.agent.spec import Agent
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec
from perdure.events.base import EventBase
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.messages import SystemPromptEvent
from perdure.models.model import Model, OnText
from perdure.sandbox.sandbox import UNCONFINED, Sandbox
from perdure.secrets.masking import MaskedLog
from perdure.secrets.registry import Secrets
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.cache import Cache
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from perdure.storage.snapshots.manifest import SnapshotCache
from perdure.storage.store import Store
from perdure.temporal.names import DEFAULT_USER, workspace_folder
from perdure.tools.catalog import DuplicateTool, load_tools
from perdure.tools.mcp.servers import McpSessions
from perdure.tools.tool import Tool
from perdure.user_modules import USER_MODULES

AnEvent = TypeVar("AnEvent", bound=EventBase)

CACHE_BYTES = 32 * 1024 * 1024
"""Size of the cache of parsed events, and of the cache of transcripts."""

MAX_SNAPSHOT_ENTRIES = 30_000
"""Files, links and folders of recent snapshots in memory: about 18 MB."""

MAX_CODE_VERSIONS = 10_000
"""Conversations whose turns go on with the modules with which they began."""

MAX_CACHED_BATCHES = 16
"""Batches whose samples are in memory."""


MAX_CACHED_SPECS = 256
_SPECS: Cache[str, Agent] = Cache(MAX_CACHED_SPECS)
"""The specs used last, by the hash of the entry that holds them."""


@dataclass
class OpenTurn:
    """A turn in a directory of the user's: the scan at its beginning, which returns why it failed.

    `first` is the slot of the first action that may change files.
    """

    scan: "asyncio.Task[str | None]"
    first: int | None = None


@dataclass(frozen=True)
class Resources:
    """The resources of a worker.

    `workspaces` is the folder in which conversations get a directory of their own. `home` is the
    queue of the workers that have this folder; without it, files are never kept in the store.
    """

    store: Store
    model: Model
    workspaces: Path
    entries: EntryCache = field(default_factory=lambda: EntryCache(CACHE_BYTES))
    transcripts: TranscriptCache = field(default_factory=lambda: TranscriptCache(CACHE_BYTES))
    mcp: McpSessions = field(default_factory=McpSessions)
    snapshots: SnapshotCache = field(default_factory=lambda: SnapshotCache(MAX_SNAPSHOT_ENTRIES))
    home: str | None = None
    secrets: Secrets = field(default_factory=Secrets)
    sandbox: Sandbox = UNCONFINED
    save_llm_messages: bool = True
    open_turns: dict[str, OpenTurn] = field(default_factory=dict)
    """The turns whose changes of files this worker records, by the prefix of the log."""
    model_queues: RateLimitedQueues = field(default_factory=RateLimitedQueues)
    _code_versions: dict[str, int] = field(default_factory=dict)
    """The version of the user's modules in the present turn of a conversation."""

    def log(self, user_id: str, conversation_id: str) -> EventLog:
        """Return the log of a conversation of the user whose workflow this step belongs to.

        Raises ApplicationError for another user, and if an id is invalid.
        """
        check_owner(user_id)
        try:
            return MaskedLog(self.store, user_id, conversation_id, self.entries, self.secrets)
        except ValueError as error:
            raise final_failure("BadId", str(error)) from error

    def evict(self, log: EventLog, before: int) -> None:
        """Evict a conversation that has ended, up to slot `before`."""
        self.mcp.close_conversation(log.prefix)
        self.transcripts.evict(log)
        self._code_versions.pop(log.prefix, None)
        self.entries.evict_log(log.user_id, log.conversation_id, before)

    def batch(self, user_id: str, name: str) -> BatchFolder:
        """Return the folder of a batch of the user whose workflow this step belongs to.

        Raises ApplicationError for another user, and if its name is invalid.
        """
        check_owner(user_id)
        try:
            return self._open_batch(user_id, name)
        except ValueError as error:
            raise final_failure("BadId", str(error)) from error

    async def load_sample(self, user_id: str, attempt: Attempt) -> Sample:
        folder = self.batch(user_id, attempt.batch)
        return await folder.read_sample(attempt.sample_set, attempt.chunk, attempt.line)

    @cached_property
    def _open_batch(self) -> Callable[[str, str], BatchFolder]:
        """The batches used last, each of which keeps samples in memory."""
        return lru_cache(MAX_CACHED_BATCHES)(partial(BatchFolder, self.store))

    def reload_code(self, spec: Agent, log: LogReader) -> bool:
        """Use the user's modules as they are now, for a turn that begins.

        Returns whether they have changed since this conversation's last turn on this worker.
        """
        USER_MODULES.use_client_folder(spec.code)
        before, now = self._code_versions.pop(log.prefix, None), USER_MODULES.refresh()
        self._code_versions[log.prefix] = now
        if len(self._code_versions) > MAX_CODE_VERSIONS:
            del self._code_versions[next(iter(self._code_versions))]
        return before not in (None, now)

    def own_tools(self, spec: Agent, log: LogReader) -> Mapping[str, Tool]:
        """Return an agent's tools without those of servers, as they were when the turn began.

        Raises CatalogError.
        """
        USER_MODULES.use_client_folder(spec.code)
        if log.prefix not in self._code_versions:
            self.reload_code(spec, log)
        folders = tuple(USER_MODULES.search_path)
        return _cached_tools(spec.tools, folders, self._code_versions[log.prefix])

    async def tools(
        self, spec: Agent, log: LogReader, report: OnText = lambda _: None
    ) -> list[Tool]:
        """Return an agent's tools, with those that its servers offer now. Raises CatalogError.

        `report` is called with a sentence on the servers that are starting.
        """
        own = self.own_tools(spec, log)
        if not spec.mcp:
            return list(own.values())
        workspace = self.workspace(spec, log)
        others = await self.mcp.list_tools(log.prefix, spec.mcp, workspace, report)
        if duplicates := [tool.name for tool in others if tool.name in own]:
            raise DuplicateTool(
                f"Two tools are called {duplicates[0]!r}, one of them an MCP server's: "
                "leave one out."
            )
        return [*own.values(), *others]

    def offered_tools(
        self, spec: Agent, prompt: SystemPromptEvent, log: LogReader
    ) -> Mapping[str, Tool]:
        """Return the tools of a prompt by name without asking a server. Raises CatalogError."""
        own = self.own_tools(spec, log)
        if not spec.mcp:
            return own
        make = partial(self.mcp.make_tool, log.prefix, spec.mcp, self.workspace(spec, log))
        others = {tool.name: make(tool) for tool in prompt.tools if tool.name not in own}
        return {**own, **others}

    def own_folder(self, log: LogReader) -> Path:
        """Return the conversation's own folder, which need not exist.

        A workflow of before, whose id has no user, goes on in the folder of before.
        """
        user_id = DEFAULT_USER if runs_without_owner() else log.user_id
        return self.workspaces / workspace_folder(user_id, log.conversation_id)

    def workspace(self, spec: Agent, log: LogReader) -> Path:
        """Return the working directory of a conversation, created if need be."""
        folder = Path(spec.workspace) if spec.workspace else self.own_folder(log)
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass
class Activities:
    """Activities, and the resources of their worker."""

    resources: Resources

    @asynccontextmanager
    async def begin(self, task: Task[Any]) -> AsyncIterator[tuple[EventLog, StepProgress]]:
        """Heartbeat while the body runs; yield the log and the progress of its step."""
        async with heartbeating(self.resources.secrets) as progress:
            yield self.resources.log(task.user_id, task.conversation_id), progress


async def load_event(log: EventLog, seq: int, kind: type[AnEvent]) -> AnEvent:
    event = (await log.get(seq)).event
    assert isinstance(event, kind), f"slot {seq} holds no {kind.__name__}"
    return event


async def load_spec(log: EventLog, seq: int) -> Agent:
    """Load the spec that the event in slot `seq` put in force.

    References of this step to the user's modules lead to the folder of the spec first.
    """
    entry = await log.get(seq)
    if (spec := _SPECS.get(entry.sha)) is None:
        assert isinstance(entry.event, ConversationStateUpdateEvent), f"slot {seq} holds no spec"
        spec = Agent.model_validate(entry.event.value)
        _SPECS.put(entry.sha, spec)
    USER_MODULES.use_client_folder(spec.code)
    return spec


async def load_batch(folder: BatchFolder) -> BatchSpec:
    """Load a batch as it is now. Raises ApplicationError if there is none."""
    return (await load_record(folder)).spec


async def load_record(folder: BatchFolder) -> BatchRecord:
    """Load the record of a batch. Raises ApplicationError if there is none."""
    record = await folder.load()
    if record is None:
        sentence = (
            f"There is no batch {folder.name!r} in the store of this worker: start it with "
            "`perdure batch run`, with the same store and user as the worker."
        )
        raise final_failure("BatchNotFound", sentence)
    return record


@lru_cache(maxsize=256)
def _cached_tools(
    references: tuple[str, ...],
    folders: tuple[str, ...],  # noqa: ARG001 - where modules are found
    version: int,  # noqa: ARG001 - which files they were
) -> Mapping[str, Tool]:
    """Load tools by name. Raises CatalogError."""
    return load_tools(references)

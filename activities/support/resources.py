"""The resources that activities share on a worker: store, models, sandbox, caches."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.activities.support.clone_limits import CloneLimits
from perdure.activities.support.code_versions import CodeVersions
from perdure.activities.support.list_notes import ListNotes
from perdure.activities.support.step import (
    StepProgress,
    check_owner,
    final_failure,
    heartbeating,
    is_local,
    runs_without_owner,
)
from perdure.activities.support.step_queues import StepQueues
from perdure.activities.support.store_outage import STORE_RETRY_INTERVAL
from perdure.activities.support.transcript_cache import TranscriptCache
from perdure.agent.loop.attempt import Attempt
from perdure.agent.loop.steps import Task
from perdure.agent.spec import Agent
from perdure.evaluation.sample import Sample
from perdure.events.messages import SystemPromptEvent
from perdure.memory.agent_memory import AgentMemory
from perdure.memory.service import MemoryService
from perdure.models.model import Model
from perdure.sandbox.sandbox import UNCONFINED, Sandbox
from perdure.secrets.masking import MaskedLog
from perdure.secrets.registry import Secrets
from perdure.secrets.user_secrets import RELOAD_INTERVAL, SecretsByUser, UserSecrets
from perdure.storage.batches import BatchFolder
from perdure.storage.credentials.key_ring import KeyRing
from perdure.storage.errors import StoreUnavailable
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from perdure.storage.snapshots.manifest import SnapshotCache
from perdure.storage.store import Store
from perdure.temporal.names import DEFAULT_USER, owner_of, workspace_folder
from perdure.temporal.webhooks import Patience
from perdure.tools.catalog import load_tools
from perdure.tools.delegate import DELEGATE_NAME, delegate_to
from perdure.tools.errors import DuplicateTool
from perdure.tools.finish_outputs import with_response_schema
from perdure.tools.mcp.servers import McpSessions, OnStarting
from perdure.tools.tool import Tool
from perdure.user_modules import USER_MODULES
from perdure.webhooks.networks import Networks

CACHE_BYTES = 32 * 1024 * 1024
"""Size of the cache of parsed events, and of the cache of transcripts."""

MAX_SNAPSHOT_ENTRIES = 30_000
"""Files, links and folders of recent snapshots in memory: about 18 MB."""

MAX_CACHED_BATCHES = 16
"""Batches whose samples are in memory."""


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
    """The secrets of the worker itself; `secrets_of` a user are wanted nearly everywhere."""
    secret_keys: KeyRing | None = None
    """The keys of what users hand in; without any, none of that is read."""
    sandbox: Sandbox = UNCONFINED
    clone_limits: CloneLimits = field(default_factory=CloneLimits)
    save_llm_messages: bool = True
    app_writers: tuple[str, ...] = (DEFAULT_USER,)
    """The users whose conversations may change `app:` values; `*` stands for all."""
    open_turns: dict[str, OpenTurn] = field(default_factory=dict)
    """The turns whose changes of files this worker records, by the prefix of the log."""
    webhook_networks: Networks = field(default_factory=Networks)
    """The addresses that webhooks may go to."""
    webhook_patience: Patience = field(default_factory=Patience)
    """For how long the events of conversations are posted to webhooks again."""
    queues: StepQueues = field(default_factory=StepQueues)
    memories: MemoryService | None = None
    """The memories of users; by default those of the store, found by full text."""
    code_versions: CodeVersions = field(default_factory=CodeVersions)

    def log(self, user_id: str, conversation_id: str) -> EventLog:
        """Return the log of a conversation of the user whose workflow this step belongs to.

        Raises ApplicationError for another user, and if an id is invalid.
        """
        check_owner(user_id)
        try:
            secrets = self.secrets_of(user_id)
            return MaskedLog(self.store, user_id, conversation_id, self.entries, secrets)
        except ValueError as error:
            raise final_failure("BadId", str(error)) from error

    def may_write_app(self, user_id: str) -> bool:
        return user_id in self.app_writers or "*" in self.app_writers

    def secrets_of(self, user_id: str) -> UserSecrets:
        """Return the secrets of a user, over those of the worker. Raises ApplicationError."""
        try:
            return self.secrets_by_user.of(user_id)
        except ValueError as error:
            raise final_failure("BadId", str(error)) from error

    def secrets_of_step(self) -> Secrets:
        """Return the secrets of the user whose step this is."""
        try:
            return self.secrets_of(owner_of(activity.info().workflow_id or "") or DEFAULT_USER)
        except ApplicationError:  # the id of a workflow can be anything
            return self.secrets_by_user.everyone

    def mask_of(self, user_id: str) -> Callable[[str], str]:
        """Return what masks the secrets of a user. Raises ApplicationError."""
        return self.secrets_of(user_id).mask

    async def load_secrets(self, user_id: str, max_age: float = RELOAD_INTERVAL) -> UserSecrets:
        """Read what the user has handed in, which is masked from now on, and return it.

        While the store is unavailable, what was read before counts, or an ordinary activity waits.
        """
        secrets = self.secrets_of(user_id)
        while True:
            try:
                await secrets.load(max_age)
            except StoreUnavailable:
                if is_local():  # the ordinary activity that follows waits
                    raise
                if not secrets.is_loaded:
                    await asyncio.sleep(STORE_RETRY_INTERVAL)
                    continue
            return secrets

    @cached_property
    def secrets_by_user(self) -> SecretsByUser:
        """The secrets of the users of late."""
        return SecretsByUser(self.secrets, self.store, self.secret_keys)

    def memory_of(self, spec: Agent, log: LogReader) -> AgentMemory:
        """Return the memories of a conversation's user, as far as its agent may use them."""
        memory = self._memories.of_user(log.user_id)
        app, mask = spec.memory_app, self.secrets_of(log.user_id).mask
        return AgentMemory(memory, spec.memory, log.conversation_id, app, mask)

    @cached_property
    def _memories(self) -> MemoryService:
        return self.memories or MemoryService(self.store)

    @cached_property
    def list_notes(self) -> ListNotes:
        """The summaries of conversations that the index of lists lacks so far."""
        return ListNotes(self.store)

    def evict(self, log: EventLog, before: int) -> None:
        """Evict a conversation that has ended, up to slot `before`."""
        self.mcp.close_conversation(log.prefix)
        self.transcripts.evict(log)
        self.code_versions.evict(log)
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

    def own_tools(self, spec: Agent, log: LogReader) -> Mapping[str, Tool]:
        """Return an agent's tools without those of servers, as they were when the turn began.

        Raises CatalogError.
        """
        version = self.code_versions.find(spec, log)
        tools = _cached_tools(spec.all_tools, tuple(USER_MODULES.search_path), version)
        if spec.delegates and DELEGATE_NAME in tools:
            tools = {**tools, DELEGATE_NAME: delegate_to(spec.delegates)}
        return with_response_schema(tools, spec.response_schema)

    async def tools(
        self, spec: Agent, log: LogReader, report: OnStarting = lambda _: None
    ) -> list[Tool]:
        """Return an agent's tools, with those that its servers offer now. Raises CatalogError.

        `report` is called with the names of the servers that are starting.
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
        async with self.heartbeating_for(task.user_id) as progress:
            yield self.resources.log(task.user_id, task.conversation_id), progress

    @asynccontextmanager
    async def heartbeating_for(self, user_id: str) -> AsyncIterator[StepProgress]:
        """Heartbeat while the body runs for a user, whose secrets are masked in it."""
        check_owner(user_id)
        async with heartbeating(self.resources.secrets_of(user_id)) as progress:
            if self.resources.secret_keys is not None:
                await self.resources.load_secrets(user_id)
            yield progress


@lru_cache(maxsize=256)
def _cached_tools(
    references: tuple[str, ...],
    folders: tuple[str, ...],  # noqa: ARG001 - where modules are found
    version: int,  # noqa: ARG001 - which files they were
) -> Mapping[str, Tool]:
    """Load tools by name. Raises CatalogError."""
    return load_tools(references)

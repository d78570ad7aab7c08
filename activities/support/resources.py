"""The resources that activities share on a worker: store, models, sandbox, caches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError

from perdure.activities.support.batch_cache import BatchCache
from perdure.activities.support.model_queues import RateLimitedQueues
from perdure.activities.support.transcript_cache import TranscriptCache
from perdure.agent.loop.steps import Task
from perdure.agent.spec import Agent
from perdure.events.content import ToolDefinition
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.messages import SystemPromptEvent
from perdure.events.tools import ActionEvent
from perdure.models.model import Model
from perdure.sandbox.sandbox import UNCONFINED, Sandbox
from perdure.secrets.masking import MaskedLog
from perdure.secrets.registry import Secrets
from perdure.storage.batches import BatchFolder
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.snapshots.manifest import SnapshotCache
from perdure.storage.store import Store
from perdure.tools.catalog import DuplicateTool, load_tools
from perdure.tools.mcp.servers import McpSessions
from perdure.tools.tool import Tool

CACHE_BYTES = 32 * 1024 * 1024
"""Size of the cache of parsed events, and of the cache of transcripts."""

MAX_SNAPSHOT_ENTRIES = 30_000
"""Files, links and folders of recent snapshots in memory: about 18 MB."""


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
    model_queues: RateLimitedQueues = field(default_factory=RateLimitedQueues)
    batches: BatchCache = field(default_factory=BatchCache)

    def log(self, task: Task[Any]) -> EventLog:
        """Return the log of a task. Raises ApplicationError if an id is invalid."""
        return self.log_of(task.user_id, task.conversation_id)

    def log_of(self, user_id: str, conversation_id: str) -> EventLog:
        """Return the log of a conversation. Raises ApplicationError if an id is invalid."""
        try:
            key = (user_id, conversation_id, self.entries)
            return MaskedLog(self.store, *key, self.secrets)
        except ValueError as error:
            raise ApplicationError(str(error), type="BadId", non_retryable=True) from error

    def evict(self, log: EventLog, before: int) -> None:
        """Evict a conversation that has ended, up to slot `before`."""
        self.mcp.close_conversation(log.conversation_id)
        self.transcripts.evict(log.conversation_id)
        self.entries.evict_log(log.user_id, log.conversation_id, before)

    def batch(self, user_id: str, name: str) -> BatchFolder:
        """Return a batch's folder. Raises ApplicationError if its name is invalid."""
        return self.batches.folder(self.store, user_id, name)

    async def tools(self, spec: Agent, conversation_id: str) -> list[Tool]:
        """Return an agent's tools, with those that its servers offer now. Raises CatalogError."""
        own = cached_tools(spec.tools)
        if not spec.mcp:
            return list(own.values())
        workspace = self.workspace(spec, conversation_id)
        others = await self.mcp.list_tools(conversation_id, spec.mcp, workspace)
        if duplicates := [tool.name for tool in others if tool.name in own]:
            raise DuplicateTool(
                f"Two tools are called {duplicates[0]!r}, one of them an MCP server's: "
                "leave one out."
            )
        return [*own.values(), *others]

    def offered_tools(
        self, spec: Agent, prompt: SystemPromptEvent, conversation_id: str
    ) -> Mapping[str, Tool]:
        """Return the tools of a prompt by name without asking a server. Raises CatalogError."""
        own = cached_tools(spec.tools)
        if not spec.mcp:
            return own
        workspace = self.workspace(spec, conversation_id)
        others = (tool for tool in prompt.tools if tool.name not in own)
        return {
            **own,
            **{
                tool.name: self.mcp.make_tool(conversation_id, spec.mcp, workspace, tool)
                for tool in others
            },
        }

    async def relist_tools(
        self, spec: Agent, prompt: SystemPromptEvent, conversation_id: str
    ) -> tuple[ToolDefinition, ...] | None:
        """List the tools again; return None if they are those of the prompt.

        Raises CatalogError.
        """
        own = cached_tools(spec.tools)
        own_tools = tuple(tool for tool in prompt.tools if tool.name in own)
        others = [tool for tool in prompt.tools if tool.name not in own]
        workspace = self.workspace(spec, conversation_id)
        server_tools = await self.mcp.find_changes(conversation_id, spec.mcp, workspace, others)
        return None if server_tools is None else (*own_tools, *server_tools)

    def workspace(self, spec: Agent, conversation_id: str) -> Path:
        """Return the working directory of a conversation, created if need be."""
        own = self.workspaces / conversation_id
        folder = Path(spec.workspace) if spec.workspace else own
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
        return folder


async def load_action(log: EventLog, seq: int) -> ActionEvent:
    event = (await log.get(seq)).event
    assert isinstance(event, ActionEvent), f"slot {seq} holds no action"
    return event


async def load_prompt(log: EventLog, seq: int) -> SystemPromptEvent:
    event = (await log.get(seq)).event
    assert isinstance(event, SystemPromptEvent), f"slot {seq} holds no prompt"
    return event


def read_only_tools(prompt: SystemPromptEvent) -> tuple[str, ...]:
    """Return the names of the tools that change nothing."""
    return tuple(tool.name for tool in prompt.tools if tool.annotations.readOnlyHint)


async def load_spec(log: EventLog, seq: int) -> Agent:
    """Load the spec that the event in slot `seq` put in force."""
    event = (await log.get(seq)).event
    assert isinstance(event, ConversationStateUpdateEvent), f"slot {seq} holds no spec"
    return Agent.model_validate(event.value)


@lru_cache(maxsize=256)
def cached_tools(references: tuple[str, ...]) -> Mapping[str, Tool]:
    """Load tools by name. Raises CatalogError."""
    return load_tools(references)

"""What the steps of every conversation on this worker work with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError

from activities.batch_folders import Batches
from activities.lanes import Lanes
from activities.masking import MaskedLog
from activities.transcripts import Transcripts
from agent.spec import Spec
from agent.steps import Task
from events.content import ToolDefinition
from events.control import ConversationStateUpdateEvent
from events.messages import SystemPromptEvent
from events.tools import ActionEvent
from models.model import Model
from sandbox.sandbox import NONE, Sandbox
from storage.batches import BatchFolder
from storage.cache import EntryCache
from storage.log import EventLog
from storage.snapshots.memory import Memory
from storage.store import Store
from tools.catalog import DuplicateTool, catalog
from tools.mcp.servers import McpSessions
from tools.secrets.registry import Secrets
from tools.tool import Tool

CACHE = 32 * 1024 * 1024
"""Bytes of memory for stored events that a worker keeps parsed, and as many for its transcripts."""

SNAPSHOT_ENTRIES = 30_000
"""Files, links and folders that are known of the snapshots used last: about 18 MB."""


@dataclass(frozen=True)
class World:
    """`workspaces` is the folder in which conversations get a directory of their own.

    `home` is the queue by which the workers are reached that have this folder. Without one, files
    are neither kept in the store nor looked for there.
    """

    store: Store
    model: Model
    workspaces: Path
    entries: EntryCache = field(default_factory=lambda: EntryCache(CACHE))
    transcripts: Transcripts = field(default_factory=lambda: Transcripts(CACHE))
    mcp: McpSessions = field(default_factory=McpSessions)
    snapshots: Memory = field(default_factory=lambda: Memory(SNAPSHOT_ENTRIES))
    home: str | None = None
    secrets: Secrets = field(default_factory=Secrets)
    sandbox: Sandbox = NONE
    save_llm_messages: bool = True
    lanes: Lanes = field(default_factory=Lanes)
    batches: Batches = field(default_factory=Batches)

    def log(self, task: Task[Any]) -> EventLog:
        """Raises ApplicationError where an id is none: no retry makes it one."""
        return self.log_of(task.user_id, task.conversation_id)

    def log_of(self, user_id: str, conversation_id: str) -> EventLog:
        """Raises ApplicationError where an id is none."""
        try:
            where = (user_id, conversation_id, self.entries)
            return MaskedLog(self.store, *where, self.secrets)
        except ValueError as error:
            raise ApplicationError(str(error), type="BadId", non_retryable=True) from error

    def forget(self, log: EventLog, before: int) -> None:
        """Keep nothing more of a conversation that has ended, of the slots before this one."""
        self.mcp.forget(log.conversation_id)
        self.transcripts.forget(log.conversation_id)
        self.entries.forget(log.user_id, log.conversation_id, before)

    def batch(self, user_id: str, name: str) -> BatchFolder:
        """Raises ApplicationError where there can be no such batch."""
        return self.batches.folder(self.store, user_id, name)

    async def tools(self, spec: Spec, conversation_id: str) -> list[Tool]:
        """The tools of an agent, those that its servers offer now among them.

        Raises CatalogError.
        """
        own = tools_of(spec.tools)
        if not spec.mcp:
            return list(own.values())
        place = self.workspace(spec, conversation_id)
        others = await self.mcp.tools(conversation_id, spec.mcp, place)
        if twice := [tool.name for tool in others if tool.name in own]:
            raise DuplicateTool(
                f"Two tools are called {twice[0]!r}, one of them an MCP server's: leave one out."
            )
        return [*own.values(), *others]

    def offered(
        self, spec: Spec, prompt: SystemPromptEvent, conversation_id: str
    ) -> Mapping[str, Tool]:
        """The tools that the agent was told of, by name; no server is asked.

        Raises CatalogError.
        """
        own = tools_of(spec.tools)
        if not spec.mcp:
            return own
        place = self.workspace(spec, conversation_id)
        others = (told for told in prompt.tools if told.name not in own)
        return {
            **own,
            **{told.name: self.mcp.tool(conversation_id, spec.mcp, place, told) for told in others},
        }

    async def relisted(
        self, spec: Spec, prompt: SystemPromptEvent, conversation_id: str
    ) -> tuple[ToolDefinition, ...] | None:
        """All tools as the servers offer them now; None where it is what the agent was told.

        Raises CatalogError.
        """
        own = tools_of(spec.tools)
        kept = tuple(told for told in prompt.tools if told.name in own)
        others = [told for told in prompt.tools if told.name not in own]
        place = self.workspace(spec, conversation_id)
        now = await self.mcp.changed(conversation_id, spec.mcp, place, others)
        return None if now is None else (*kept, *now)

    def workspace(self, spec: Spec, conversation_id: str) -> Path:
        """The directory that a conversation works in; it is there when this returns."""
        own = self.workspaces / conversation_id
        folder = Path(spec.workspace) if spec.workspace else own
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
        return folder


async def action_at(log: EventLog, seq: int) -> ActionEvent:
    event = (await log.at(seq)).event
    assert isinstance(event, ActionEvent), f"slot {seq} holds no action"
    return event


async def prompt_at(log: EventLog, seq: int) -> SystemPromptEvent:
    event = (await log.at(seq)).event
    assert isinstance(event, SystemPromptEvent), f"slot {seq} holds no prompt"
    return event


def read_only(prompt: SystemPromptEvent) -> tuple[str, ...]:
    """The names of the tools that change nothing."""
    return tuple(tool.name for tool in prompt.tools if tool.annotations.readOnlyHint)


async def spec_at(log: EventLog, seq: int) -> Spec:
    """The spec that the event in slot `seq` put in force."""
    event = (await log.at(seq)).event
    assert isinstance(event, ConversationStateUpdateEvent), f"slot {seq} holds no spec"
    return Spec.model_validate(event.value)


@lru_cache(maxsize=256)
def tools_of(references: tuple[str, ...]) -> Mapping[str, Tool]:
    """The tools by name; raises CatalogError."""
    return catalog(references)

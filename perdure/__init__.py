"""Agent conversations that cannot be lost.

Names are loaded at their first use: `import perdure` imports no other package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.agent.condensers import AmortizedCondenser as AmortizedCondenser
    from perdure.agent.condensers import BrowserMaskingCondenser as BrowserMaskingCondenser
    from perdure.agent.condensers import CustomCondenser as CustomCondenser
    from perdure.agent.condensers import MaskingCondenser as MaskingCondenser
    from perdure.agent.condensers import NoCondenser as NoCondenser
    from perdure.agent.condensers import PipelineCondenser as PipelineCondenser
    from perdure.agent.condensers import RecentCondenser as RecentCondenser
    from perdure.agent.condensers import SummaryCondenser as SummaryCondenser
    from perdure.agent.condensers import WindowCondenser as WindowCondenser
    from perdure.agent.discussion.pruning import BeforeSequence as BeforeSequence
    from perdure.agent.discussion.pruning import ByCount as ByCount
    from perdure.agent.discussion.pruning import ByType as ByType
    from perdure.agent.discussion.spec import DiscussionSpec as DiscussionSpec
    from perdure.agent.extensions import McpServer as McpServer
    from perdure.agent.extensions import Skills as Skills
    from perdure.agent.memory import MemoryAccess as MemoryAccess
    from perdure.agent.model_spec import ModelSpec as ModelSpec
    from perdure.agent.policies import Confirmation as Confirmation
    from perdure.agent.policies import Limits as Limits
    from perdure.agent.spec import Agent as Agent
    from perdure.agent.spec import NamedAgent as NamedAgent
    from perdure.agent.view.llm_messages import events_to_messages as events_to_messages
    from perdure.agent.view.llm_messages import to_llm_message as to_llm_message
    from perdure.agent.view.view import View as View
    from perdure.api.memories import FoundMemory as FoundMemory
    from perdure.api.memories import Memory as Memory
    from perdure.api.memories import MemoryFilter as MemoryFilter
    from perdure.cli.rendering.visualize import visualize as visualize
    from perdure.client.batch.batches import Batches as Batches
    from perdure.client.batch.handle import BatchHandle as BatchHandle
    from perdure.client.client import Client as Client
    from perdure.client.conversation import Conversation as Conversation
    from perdure.client.discussion.discussions import Discussions as Discussions
    from perdure.client.discussion.handle import DiscussionHandle as DiscussionHandle
    from perdure.client.discussion.sync import SyncDiscussions as SyncDiscussions
    from perdure.client.events.event_list import EventList as EventList
    from perdure.client.events.make import make_event as make_event
    from perdure.client.events.read import read_event as read_event
    from perdure.client.events.read import read_event_folder as read_event_folder
    from perdure.client.events.sync_event_list import SyncEventList as SyncEventList
    from perdure.client.http.client import HttpClient as HttpClient
    from perdure.client.http.conversation import HttpConversation as HttpConversation
    from perdure.client.memory.http_memories import HttpMemories as HttpMemories
    from perdure.client.memory.memories import Memories as Memories
    from perdure.client.memory.sync import SyncMemories as SyncMemories
    from perdure.client.run import run as run
    from perdure.client.sync import SyncClient as SyncClient
    from perdure.client.sync import SyncConversation as SyncConversation
    from perdure.client.sync import SyncHttpClient as SyncHttpClient
    from perdure.client.turn import TurnFailed as TurnFailed
    from perdure.client.turn import TurnResult as TurnResult
    from perdure.errors import Conflict as Conflict
    from perdure.errors import Forbidden as Forbidden
    from perdure.errors import Invalid as Invalid
    from perdure.errors import MissingExtra as MissingExtra
    from perdure.errors import NotFound as NotFound
    from perdure.errors import PerdureError as PerdureError
    from perdure.errors import TimedOut as TimedOut
    from perdure.errors import Unreachable as Unreachable
    from perdure.evaluation.sample import Sample as Sample
    from perdure.evaluation.score import Outcome as Outcome
    from perdure.evaluation.score import Score as Score
    from perdure.evaluation.spec import BatchSpec as BatchSpec
    from perdure.events.base import EventBase as EventBase
    from perdure.events.condensation import Condensation as Condensation
    from perdure.events.condensation import CondensationRequest as CondensationRequest
    from perdure.events.condensation import CondensationSummaryEvent as CondensationSummaryEvent
    from perdure.events.content import ImageContent as ImageContent
    from perdure.events.content import Message as Message
    from perdure.events.content import MessageToolCall as MessageToolCall
    from perdure.events.content import TextContent as TextContent
    from perdure.events.control import ConversationErrorEvent as ConversationErrorEvent
    from perdure.events.control import ConversationStateUpdateEvent as ConversationStateUpdateEvent
    from perdure.events.control import InterruptEvent as InterruptEvent
    from perdure.events.control import PauseEvent as PauseEvent
    from perdure.events.control import StuckEvent as StuckEvent
    from perdure.events.custom import CustomEvent as CustomEvent
    from perdure.events.discussion import AgentVisibleEvent as AgentVisibleEvent
    from perdure.events.discussion import DiscussionEvent as DiscussionEvent
    from perdure.events.entry import Entry as Entry
    from perdure.events.event import AnyEvent as AnyEvent
    from perdure.events.event import UnknownEvent as UnknownEvent
    from perdure.events.messages import MessageEvent as MessageEvent
    from perdure.events.messages import RecallEvent as RecallEvent
    from perdure.events.messages import SystemPromptEvent as SystemPromptEvent
    from perdure.events.tools import ActionEvent as ActionEvent
    from perdure.events.tools import AgentErrorEvent as AgentErrorEvent
    from perdure.events.tools import ObservationEvent as ObservationEvent
    from perdure.events.tools import UserRejectObservation as UserRejectObservation
    from perdure.events.waiting import QuestionEvent as QuestionEvent
    from perdure.events.waiting import SignalEvent as SignalEvent
    from perdure.events.waiting import WaitEvent as WaitEvent
    from perdure.exports.mcpbench import convert_events_to_jsonl as convert_events_to_jsonl
    from perdure.exports.mcpbench import convert_events_to_logs as convert_events_to_logs
    from perdure.exports.mcpbench import count_event_statistics as count_event_statistics
    from perdure.settings.settings import Settings as Settings
    from perdure.storage.discussions.service import EventLogService as EventLogService
    from perdure.storage.errors import StoreError as StoreError
    from perdure.tools.function import tool as tool
    from perdure.tools.tool import Context as Context
    from perdure.tools.tool import Tool as Tool
    from perdure.tools.tool import ToolFailed as ToolFailed

_MODULES = {
    "agent.condensers": (
        "AmortizedCondenser BrowserMaskingCondenser CustomCondenser MaskingCondenser NoCondenser "
        "PipelineCondenser RecentCondenser SummaryCondenser WindowCondenser"
    ),
    "agent.discussion.pruning": "BeforeSequence ByCount ByType",
    "agent.discussion.spec": "DiscussionSpec",
    "agent.extensions": "McpServer Skills",
    "agent.memory": "MemoryAccess",
    "agent.model_spec": "ModelSpec",
    "agent.policies": "Confirmation Limits",
    "agent.spec": "Agent NamedAgent",
    "agent.view.llm_messages": "events_to_messages to_llm_message",
    "agent.view.view": "View",
    "api.memories": "FoundMemory Memory MemoryFilter",
    "cli.rendering.visualize": "visualize",
    "client.batch.batches": "Batches",
    "client.batch.handle": "BatchHandle",
    "client.client": "Client",
    "client.conversation": "Conversation",
    "client.discussion.discussions": "Discussions",
    "client.discussion.handle": "DiscussionHandle",
    "client.discussion.sync": "SyncDiscussions",
    "client.events.event_list": "EventList",
    "client.events.make": "make_event",
    "client.events.read": "read_event read_event_folder",
    "client.events.sync_event_list": "SyncEventList",
    "client.http.client": "HttpClient",
    "client.http.conversation": "HttpConversation",
    "client.memory.http_memories": "HttpMemories",
    "client.memory.memories": "Memories",
    "client.memory.sync": "SyncMemories",
    "client.run": "run",
    "client.sync": "SyncClient SyncConversation SyncHttpClient",
    "client.turn": "TurnFailed TurnResult",
    "errors": "Conflict Forbidden Invalid MissingExtra NotFound PerdureError TimedOut Unreachable",
    "evaluation.sample": "Sample",
    "evaluation.score": "Outcome Score",
    "evaluation.spec": "BatchSpec",
    "events.base": "EventBase",
    "events.condensation": "Condensation CondensationRequest CondensationSummaryEvent",
    "events.content": "ImageContent Message MessageToolCall TextContent",
    "events.control": (
        "ConversationErrorEvent ConversationStateUpdateEvent InterruptEvent PauseEvent StuckEvent"
    ),
    "events.custom": "CustomEvent",
    "events.discussion": "AgentVisibleEvent DiscussionEvent",
    "events.entry": "Entry",
    "events.event": "AnyEvent UnknownEvent",
    "events.messages": "MessageEvent RecallEvent SystemPromptEvent",
    "events.tools": "ActionEvent AgentErrorEvent ObservationEvent UserRejectObservation",
    "events.waiting": "QuestionEvent SignalEvent WaitEvent",
    "exports.mcpbench": "convert_events_to_jsonl convert_events_to_logs count_event_statistics",
    "settings.settings": "Settings",
    "storage.discussions.service": "EventLogService",
    "storage.errors": "StoreError",
    "tools.function": "tool",
    "tools.tool": "Context Tool ToolFailed",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = getattr(import_module(f"perdure.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

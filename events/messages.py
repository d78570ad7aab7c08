"""Words: what starts a conversation, and what people and the agent say."""

from typing import Literal

from events.base import EventBase, Source
from events.content import Message, TextContent, ToolDefinition


class SystemPromptEvent(EventBase):
    """What the agent is told before anything else, and the tools it has."""

    source: Source = "agent"
    kind: Literal["SystemPromptEvent"] = "SystemPromptEvent"
    system_prompt: TextContent
    tools: tuple[ToolDefinition, ...] = ()
    dynamic_context: TextContent | None = None


class MessageEvent(EventBase):
    """Somebody said something.

    `message_id` is the sender's own name for the message: the same id is never recorded twice.
    What the system itself has to tell the agent comes from the environment, and `sender` says
    which part of it speaks.
    """

    kind: Literal["MessageEvent"] = "MessageEvent"
    llm_message: Message
    llm_response_id: str | None = None
    activated_skills: tuple[str, ...] = ()
    extended_content: tuple[TextContent, ...] = ()
    sender: str | None = None
    message_id: str | None = None


class RecallEvent(EventBase):
    """Context that a message called up: skills, facts about the workspace, memories."""

    source: Source = "environment"
    kind: Literal["RecallEvent"] = "RecallEvent"
    recall_type: Literal["WORKSPACE_CONTEXT", "KNOWLEDGE"]
    query: str
    skills: tuple[str, ...] = ()
    content: str = ""

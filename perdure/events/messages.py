"""Events of words: system prompts, messages of users and agents, recalled context."""

import operator
from typing import Any, Literal

from pydantic import Field

from perdure.events.base import ActorEvent, EventBase, Source, shorten_name
from perdure.events.content import Message, TextContent, ToolDefinition, join_text
from perdure.events.summary import EXIT_COMMAND, NO_RUN


class SystemPromptEvent(EventBase):
    """The agent's system prompt and its tools."""

    source: Source = "agent"
    kind: Literal["SystemPromptEvent"] = "SystemPromptEvent"
    system_prompt: TextContent
    tools: tuple[ToolDefinition, ...] = ()
    dynamic_context: TextContent | None = None

    def summary_fields(self) -> dict[str, Any]:
        tools = self.tools
        read_only = tuple(tool.name for tool in tools if tool.annotations.readOnlyHint)
        return {
            "repeatable": tuple(tool.name for tool in tools if tool.annotations.repeatable),
            "read_only": read_only or None,
            "polling": tuple(tool.name for tool in tools if tool.waits) or None,
            "brief": tuple(tool.name for tool in tools if tool.brief) or None,
            "suspending": tuple(tool.name for tool in tools if tool.suspends) or None,
        }


class MessageEvent(ActorEvent):
    """A message of a user, the agent or the system.

    `message_id` is the sender's id for the message: the same id is never recorded twice. A warning
    of the system to the agent comes from the environment, with its topic as `sender`.
    """

    source: Source
    kind: Literal["MessageEvent"] = "MessageEvent"
    llm_message: Message
    llm_response_id: str | None = None
    activated_skills: tuple[str, ...] = ()
    extended_content: tuple[TextContent, ...] = ()
    sender: str | None = None
    message_id: str | None = None
    truncated: bool | None = None
    """True for an answer of the model that ended at its length limit."""
    reopen: bool | None = None
    """True for a message that opens the conversation again if it is closed."""
    traceparent: str | None = None
    """The sender's span (W3C Trace Context), to which the trace of the turn is linked."""
    run: bool | None = None
    """False for a message that leaves an agent at rest."""

    def summary_fields(self) -> dict[str, Any]:
        ids = {"message_id": self.message_id, "llm_response_id": self.llm_response_id}
        # The topic of a warning.
        if self.source != "user":
            ids["key"] = self.sender
        elif self.run is False:
            ids["key"] = NO_RUN
        fields = {key: shorten_name(value) for key, value in ids.items() if value is not None}
        if self.source == "user" and join_text(self.llm_message.content).strip() == EXIT_COMMAND:
            return fields | {"value": EXIT_COMMAND}
        value = "truncated" if self.truncated else "reopen" if self.reopen else None
        return fields | ({"value": value} if value else {})


class RecallEvent(EventBase):
    """Context that a message recalled: skills, facts about the workspace, memories."""

    kind: Literal["RecallEvent"] = "RecallEvent"
    recall_type: Literal["WORKSPACE_CONTEXT", "KNOWLEDGE"]
    query: str
    skills: tuple[str, ...] = ()
    memories: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """The ids of the memories in `content`."""
    content: str = ""

    def model_text(self) -> str:
        return self.content

    def export_note(self) -> str:
        return self.content

    def summary_fields(self) -> dict[str, Any]:
        return {"value": [shorten_name(skill) for skill in self.skills]}

"""Events of words: system prompts, messages of users and agents, recalled context."""

from typing import Any, Literal

from perdure.events.base import EventBase, Source, shorten_name
from perdure.events.content import Message, TextContent, ToolDefinition


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
        }


class MessageEvent(EventBase):
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

    def summary_fields(self) -> dict[str, Any]:
        ids = {"message_id": self.message_id, "llm_response_id": self.llm_response_id}
        # The topic of a warning.
        if self.source != "user":
            ids["key"] = self.sender
        fields = {key: shorten_name(value) for key, value in ids.items() if value is not None}
        return fields | ({"value": "truncated"} if self.truncated else {})


class RecallEvent(EventBase):
    """Context that a message recalled: skills, facts about the workspace, memories."""

    kind: Literal["RecallEvent"] = "RecallEvent"
    recall_type: Literal["WORKSPACE_CONTEXT", "KNOWLEDGE"]
    query: str
    skills: tuple[str, ...] = ()
    content: str = ""

    def model_text(self) -> str:
        return self.content

    def export_note(self) -> str:
        return self.content

    def summary_fields(self) -> dict[str, Any]:
        return {"value": [shorten_name(skill) for skill in self.skills]}

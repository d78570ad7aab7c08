"""The summary of an event in a workflow: enough for decisions, and no conversation content but the
first words of a command, for the operator who sees its step.

The workflow's sandbox loads this module for every conversation: it must not know the events.
"""

from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from perdure.events.usage import Usage

EXIT_COMMAND = "/exit"
"""The message of a user that ends the turn without asking the model."""

NO_RUN = "no_run"
"""The key of a message, or of a rejection, that leaves an agent at rest."""

USUAL_SOURCES = {"ActionEvent": "agent", "ObservationEvent": "environment"}
"""The sources that an event of a kind usually has."""


def _usual_source(fields: dict[str, Any]) -> str:
    return USUAL_SOURCES.get(fields.get("kind", ""), "")


class EventSummary(BaseModel):
    """A pure projection of an entry: a few hundred bytes of JSON whatever the event holds.

    Only that of a spec may be larger: it is as long as its list of tools.
    """

    model_config = ConfigDict(frozen=True)

    seq: int
    kind: str
    source: str = Field(default_factory=_usual_source)
    """Its JSON leaves out the usual one (docs/decisions/2026-11-28-implied-fields.md)."""
    fingerprint: str
    """Equal for two events with the same content, whatever their ids and times."""
    tokens: int
    """Estimated tokens."""
    sha: str
    """The `sha` of the stored bytes."""
    tool_name: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    """The id of the action itself, or of the action that a result answers."""
    llm_response_id: str | None = None
    message_id: str | None = None
    risk: str | None = None
    is_error: bool | None = None
    """For an action: whether it could not be validated or read."""
    preview: str | None = None
    """For a command or an edit: its first words, for the operator who sees the step."""
    resources: tuple[str, ...] | None = None
    """For an action: hashes of what it reads or changes, if that is known."""
    repeatable: tuple[str, ...] | None = None
    """For a system prompt: the tools that may run a second time."""
    read_only: tuple[str, ...] | None = None
    polling: tuple[str, ...] | None = None
    """For a system prompt: the tools that an agent calls repeatedly in order to wait."""
    brief: tuple[str, ...] | None = None
    suspending: tuple[str, ...] | None = None
    """For a system prompt: the tools whose calls are waits."""
    key: str | None = None
    value: Any = None
    """The new value of a state update, or the detail of an error."""
    usage: Usage | None = None
    state_keys: dict[str, bool] | None = None
    """The keys of the conversation's own values that are new, and whether each has one now."""
    home: str | None = None
    """For an entry with `files`: the queue of the workers that have them."""

    @model_serializer(mode="wrap")
    def _leave_out_usual_source(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if self.source == USUAL_SOURCES.get(self.kind):
            fields.pop("source", None)
        return fields

"""What a workflow keeps of an event: enough to decide by, and no more of what was said
than the first words of a command, which an operator sees beside its step.

The workflow's sandbox loads this module for every conversation: it must not know the events.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

from events.usage import Usage


class Digest(BaseModel):
    """A pure projection of an entry, a few hundred bytes of JSON whatever the event holds.

    `fingerprint` is equal for two events that say the same, whatever their ids and times; `size`
    estimates tokens; `sha` is that of the stored bytes. An action `is_error` when it could not be
    validated or read. For an action `action_id` is its own id, for an answer to an action that of
    the action. Only a spec may take more room: it is as long as its list of tools.
    """

    model_config = ConfigDict(frozen=True)

    seq: int
    kind: str
    source: str
    fingerprint: str
    size: int
    sha: str
    tool_name: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    llm_response_id: str | None = None
    message_id: str | None = None
    risk: str | None = None
    is_error: bool | None = None
    headline: str | None = None
    """Of a command or an edit: its first words, for the operator who sees the step."""
    touches: tuple[str, ...] | None = None
    """Of an action: hashes of what it reads or changes, where that can be told."""
    repeatable: tuple[str, ...] | None = None
    """Of a system prompt: the tools that may be run a second time."""
    read_only: tuple[str, ...] | None = None
    waits: tuple[str, ...] | None = None
    key: str | None = None
    value: Any = None
    """Of a state update: what changed. Of an error: its code and detail."""
    usage: Usage | None = None
    home: str | None = None
    """Of an entry that tells of the files: the queue of the workers that have them."""

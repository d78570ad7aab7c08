"""The words of OpenHands' client on a conversation it started, kept for those who attach later."""

import re
from typing import Any, Final

from pydantic import Field

from perdure.agent.loop.inbox import StateNote
from perdure.events.base import Tolerant
from perdure.events.control import ConversationStateUpdateEvent
from perdure.gateway.openhands.bodies import JsonObject, StartBody, Workspace
from perdure.storage.log.event_log import EventLog

RECORD_KEY: Final = "openhands"
"""The key of the state update, at the beginning of a log, that names the record's blob."""

FIRST_EVENTS = 8
"""The number of a log's first events among which that update is."""

SECRET_FIELDS = re.compile(
    r"(?i)(.*_)?(api_key|access_key_id|secret_access_key|session_token|password|token)"
    r"|headers|extra_headers|litellm_extra_body|env|acp_env|secrets|mcp_config|mcpServers"
)
"""Names of fields whose values may be secrets."""


class OpenHandsRecord(Tolerant):
    """The client's own words on its agent, without a secret, and its workspace and tools."""

    agent: JsonObject
    workspace: Workspace = Workspace()
    tool_module_qualnames: dict[str, str] = Field(default_factory=dict)

    @property
    def streams(self) -> bool:
        """Tell whether the client wants the words of the model as they come."""
        return (self.agent.get("llm") or {}).get("stream") is True


def make_record(body: StartBody) -> OpenHandsRecord:
    """Return what is kept of a start: nothing that may be secret."""
    agent = remove_secrets(body.agent)
    assert isinstance(agent, dict), "an agent is an object"
    return OpenHandsRecord(
        agent=agent,
        workspace=body.workspace,
        tool_module_qualnames=body.tool_module_qualnames,
    )


def remove_secrets(value: Any) -> Any:
    """Return JSON with empty values in all fields that may have secrets."""
    match value:
        case dict():
            return {
                name: _empty(item) if SECRET_FIELDS.fullmatch(name) else remove_secrets(item)
                for name, item in value.items()
            }
        case list():
            return [remove_secrets(item) for item in value]
        case _:
            return value


def _empty(value: Any) -> Any:
    """Return an empty value of the same kind; that of a text or a number is none."""
    return type(value)() if isinstance(value, dict | list) else None


async def store_record(log: EventLog, record: OpenHandsRecord) -> StateNote:
    """Store a record beside the log, and return the note that names it there."""
    key = await log.store_blob(record.model_dump_json().encode())
    return StateNote(key=RECORD_KEY, value={"blob": key})


async def load_record(log: EventLog) -> OpenHandsRecord | None:
    """Load the record of a conversation; None if it was started elsewhere, or has just begun."""
    for entry in await log.read(0, FIRST_EVENTS):
        match entry.event:
            case ConversationStateUpdateEvent(key="openhands", value={"blob": str(key)}):
                if (body := await log.read_blob(key)) is not None:
                    return OpenHandsRecord.model_validate_json(body)
    return None


def least_record(model: str | None) -> OpenHandsRecord:
    """Return the record of a conversation that was started elsewhere: the least agent there is."""
    llm = {"model": model or "unknown", "usage_id": "agent"}
    return OpenHandsRecord(agent={"kind": "Agent", "llm": llm, "tools": []})

"""The state of a conversation for OpenHands' client, and a few facts beside it."""

from dataclasses import dataclass

from perdure.agent.loop.phase import SUSPENDED_REASON
from perdure.agent.loop.state import State
from perdure.agent.policies import Confirmation
from perdure.events.usage import Usage
from perdure.exports.openhands import STATUSES, openhands_metrics
from perdure.gateway.openhands.bodies import JsonObject, policy_of
from perdure.gateway.openhands.record import OpenHandsRecord
from perdure.gateway.openhands.start import split_tags

NO_USAGE = Usage()

INTERRUPTED_REASON = "interrupted by the user"


@dataclass(frozen=True)
class Facts:
    """The facts of a conversation that its state does not have; times are ISO dates in UTC."""

    conversation_id: str
    record: OpenHandsRecord
    created: str
    updated: str
    parent_id: str | None = None
    """The conversation that it was forked from."""
    parent_event_id: str | None = None
    """The last event that it shares with that."""
    uncounted: Usage = NO_USAGE
    """What was used before usage is counted: that of the shared events, where a fork resets it."""


def execution_status(state: State) -> str:
    """Return the status as OpenHands names it; what was interrupted is paused there."""
    if state.status == "idle" and state.reason in (INTERRUPTED_REASON, SUSPENDED_REASON):
        return "paused"
    return STATUSES.get(state.status, state.status)


def state_of(state: State, facts: Facts) -> JsonObject:
    """Return the state of a conversation, the value of `full_state`."""
    spec, record = state.spec, facts.record
    return {
        "id": facts.conversation_id,
        "agent": record.agent,
        "workspace": record.workspace.model_dump(),
        "persistence_dir": facts.conversation_id.replace("-", ""),
        "max_iterations": spec.limits.max_iterations if spec else 500,
        "stuck_detection": True,
        "execution_status": execution_status(state),
        "confirmation_policy": policy_of(spec.confirmation if spec else Confirmation()),
        "security_analyzer": None,
        "stats": stats_of(state, facts.uncounted),
        "activated_knowledge_skills": list(state.shown_skills),
        "invoked_skills": [],
        "secret_registry": {"secret_sources": {}},
        "tags": split_tags(spec.tags) if spec else {},
        "tool_module_qualnames": record.tool_module_qualnames,
        "forked_from_conversation_id": facts.parent_id,
        "forked_from_event_id": facts.parent_event_id,
    }


def info_of(state: State, facts: Facts) -> JsonObject:
    """Return the state of a conversation as a `ConversationInfo`."""
    return state_of(state, facts) | {
        "title": state.title,
        "created_at": facts.created,
        "updated_at": facts.updated,
        "client_tools": [],
        "hook_config": None,
    }


def stats_of(state: State, uncounted: Usage) -> JsonObject:
    if state.response_count == 0:
        return {"usage_to_metrics": {}}
    name = state.spec.model.name if state.spec else "unknown"
    metrics = openhands_metrics(name, state.usage - uncounted)
    metrics["accumulated_token_usage"] |= {
        "context_window": 0,
        "per_turn_token": 0,
        "response_id": "",
    }
    return {"usage_to_metrics": {"agent": metrics}}

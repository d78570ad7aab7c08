"""What an operator sees of a conversation in the Temporal UI."""

from datetime import datetime
from typing import Any

from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from agent.state import State, asking

STATUS = SearchAttributeKey.for_keyword("PerdureStatus")
AGENT = SearchAttributeKey.for_keyword("PerdureAgent")
USER = SearchAttributeKey.for_keyword("PerdureUser")
BATCH = SearchAttributeKey.for_keyword("PerdureBatch")
MODEL = SearchAttributeKey.for_keyword("PerdureModel")
TAGS = SearchAttributeKey.for_keyword_list("PerdureTags")
STEPS = SearchAttributeKey.for_int("PerdureSteps")
COST = SearchAttributeKey.for_float("PerdureCostUsd")
LAST_ACTIVITY = SearchAttributeKey.for_datetime("PerdureLastActivity")

ATTRIBUTES: tuple[SearchAttributeKey[Any], ...] = (
    STATUS,
    AGENT,
    USER,
    BATCH,
    MODEL,
    TAGS,
    STEPS,
    COST,
    LAST_ACTIVITY,
)
"""All that a namespace must have for a conversation to be `searchable`."""

LONGEST = 2000
"""Characters of a reason that are shown."""


def search_attributes(
    user_id: str, state: State, now: datetime
) -> list[SearchAttributeUpdate[Any]]:
    """What a conversation is found by, for a turn that begins or ends."""
    assert state.spec is not None, "a conversation that has been opened has a spec"
    return [
        STATUS.value_set(state.status),
        USER.value_set(user_id),
        MODEL.value_set(state.spec.model.name),
        *([AGENT.value_set(state.spec.agent)] if state.spec.agent else []),
        TAGS.value_set(list(state.spec.tags)),
        STEPS.value_set(state.answers),
        COST.value_set(state.spent.cost),
        LAST_ACTIVITY.value_set(now),
    ]


def details(conversation_id: str, user_id: str, state: State) -> str:
    """Where the conversation stands, as markdown."""
    lines = {
        "status": f"**{state.status}**{f' ({state.reason[:LONGEST]})' if state.reason else ''}",
        "title": state.title,
        "waits for": _waits_for(state),
        "turn": f"{state.turn}, {state.iterations} answers of the model in it",
        "events": f"{state.next_seq}, of which {state.shown} in view",
        "model": state.spec.model.name if state.spec else None,
        "tokens": f"{state.spent.prompt_tokens:,} in, {state.spent.completion_tokens:,} out",
        "cost": f"${state.spent.cost:.4f}",
        "log": f"users/{user_id}/conversations/{conversation_id}/",
    }
    return "\n".join(f"- {name}: {value}" for name, value in lines.items() if value)


def _waits_for(state: State) -> str | None:
    if waiting := asking(state):
        calls = ", ".join(f"{one.tool_name} (`{one.tool_call_id}`)" for one in waiting)
        return f"a person to accept or reject {calls}"
    if state.pending and state.status == "running":
        return ", ".join(one.tool_name for one in state.pending)
    return None

"""The search attributes and details of a conversation in the Temporal UI."""

from datetime import datetime
from typing import Any, TypeAlias

from temporalio.common import SearchAttributeKey, SearchAttributeUpdate, TypedSearchAttributes

from perdure.agent.loop.state import WAITING_STATUSES, State, actions_to_confirm
from perdure.agent.loop.wait import Wait
from perdure.events.status import describe_time, describe_wait
from perdure.events.usage import describe_cost

Key: TypeAlias = SearchAttributeKey[Any]

STATUS = SearchAttributeKey.for_keyword("PerdureStatus")
AGENT = SearchAttributeKey.for_keyword("PerdureAgent")
USER = SearchAttributeKey.for_keyword("PerdureUser")
BATCH = SearchAttributeKey.for_keyword("PerdureBatch")
MODEL = SearchAttributeKey.for_keyword("PerdureModel")
TAGS = SearchAttributeKey.for_keyword_list("PerdureTags")
STEPS = SearchAttributeKey.for_int("PerdureSteps")
COST = SearchAttributeKey.for_float("PerdureCostUsd")
LAST_ACTIVITY = SearchAttributeKey.for_datetime("PerdureLastActivity")

ATTRIBUTES: tuple[Key, ...] = (STATUS, AGENT, USER, BATCH, MODEL, TAGS, STEPS, COST, LAST_ACTIVITY)
"""The attributes that a namespace must have for a conversation to be `searchable`."""

MAX_SHOWN_REASON_CHARS = 2000
"""Length limit of a reason in the details."""


def search_attributes(user_id: str, state: State, at: datetime) -> list[SearchAttributeUpdate[Any]]:
    """Return the search attributes of a conversation whose turn begins or ends."""
    assert state.spec is not None, "a conversation that has been opened has a spec"
    return [
        STATUS.value_set(state.status),
        USER.value_set(user_id),
        MODEL.value_set(state.spec.model.name),
        *([AGENT.value_set(state.spec.agent)] if state.spec.agent else []),
        TAGS.value_set(list(state.spec.tags)),
        STEPS.value_set(state.response_count),
        COST.value_set(state.usage.cost),
        LAST_ACTIVITY.value_set(at),
    ]


def changed_attributes(
    known: TypedSearchAttributes, user_id: str, state: State, at: datetime
) -> list[SearchAttributeUpdate[Any]]:
    """Return those of the `search_attributes` that Temporal does not have yet, and the time."""
    updates = search_attributes(user_id, state, at)
    return [each for each in updates if each.key == LAST_ACTIVITY or not _is_known(known, each)]


def _is_known(known: TypedSearchAttributes, update: SearchAttributeUpdate[Any]) -> bool:
    """Tell whether Temporal has the value: of an empty list it keeps nothing."""
    value = known.get(update.key)
    return bool(value == update.value or (value is None and update.value == []))


def status_markdown(conversation_id: str, user_id: str, state: State) -> str:
    """Return the state of a conversation as markdown."""
    reason = f" ({state.reason[:MAX_SHOWN_REASON_CHARS]})" if state.reason else ""
    lines = {
        "status": f"**{state.status}**{reason}",
        "title": state.title,
        "waits for": _waits_for(state),
        "turn": f"{state.turn}, {state.iterations} answers of the model in it",
        "events": f"{state.next_seq}, of which {state.view_events} in view",
        "model": state.spec.model.name if state.spec else None,
        "tokens": f"{state.usage.prompt_tokens:,} in, {state.usage.completion_tokens:,} out",
        "cost": describe_cost(state.usage),
        "log": f"users/{user_id}/conversations/{conversation_id}/",
    }
    return "\n".join(f"- {name}: {value}" for name, value in lines.items() if value)


def _waits_for(state: State) -> str | None:
    if waiting := actions_to_confirm(state):
        calls = ", ".join(f"{call.tool_name} (`{call.tool_call_id}`)" for call in waiting)
        return f"a person to accept or reject {calls}"
    if state.wait is not None and state.status in WAITING_STATUSES:
        return _describe_wait(state.wait)
    if state.pending and state.status == "running":
        return ", ".join(call.tool_name for call in state.pending)
    return None


def _describe_wait(wait: Wait) -> str:
    if wait.question is None:
        return describe_wait(wait.until, wait.signal)
    until = f", until {describe_time(wait.until)}" if wait.until else ""
    choices = f" ({' / '.join(wait.choices)})" if wait.choices else ""
    return f"an answer to: {' '.join(wait.question.split())}{choices}{until}"

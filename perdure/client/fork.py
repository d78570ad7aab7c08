"""Forks: conversations that start from an earlier point of another one."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from perdure.agent.configure import check_changes
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.client.access import require_access
from perdure.client.conversation import Conversation
from perdure.client.fork_handle import Fork
from perdure.client.ids import new_conversation_id
from perdure.errors import Invalid, NotFound
from perdure.events.base import TIMESTAMP_FORMAT, Source
from perdure.events.control import ConversationStateUpdateEvent
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.fork import fork as start_fork
from perdure.storage.log.state import read_agent, read_state_at


class ForkClient(Protocol):
    """The part of a client that a fork needs."""

    def conversation(self, conversation_id: str, owner: str | None = None) -> Conversation: ...


async def fork(
    client: ForkClient,
    conversation_id: str,
    at: int | None = None,
    model: str | None = None,
    owner: str | None = None,
    check_agent: Callable[[Agent], None] | None = None,
    fork_id: str | None = None,
    resets_usage: bool = False,
) -> Fork[Conversation]:
    """Fork a conversation after slot `at`, by default the last one.

    The conversation may be running, and is not disturbed. The fork uses `model` if it is given. A
    closed conversation is forked just before it was closed. One of another `owner` needs the grant
    `read`; the fork is the client's own. `check_agent` raises an error for an agent that may not go
    on in it. The fork has the id `fork_id`, if there is one. With `resets_usage` OpenHands'
    client is told what the fork has used by itself. Raises Invalid and NotFound.
    """
    log = client.conversation(conversation_id, owner).log
    await require_access(log.store, "read")
    state = await _load_cut_state(log, at)
    if check_agent is not None:
        check_agent(await _read_agent(log, state))
    at = state.next_seq - 1
    value = {"conversation_id": conversation_id, "at": at}
    events = [_state_update("forked", value | ({"resets_usage": True} if resets_usage else {}))]
    if model is not None:
        events.insert(0, _state_update("spec", await _replace_model(log, state, model), "user"))
    child = client.conversation(fork_id or new_conversation_id())
    forked = await start_fork(log, child.log, state, events)
    return Fork(child, at, forked)


async def _load_cut_state(log: EventLog, at: int | None) -> State:
    """Load the state after slot `at`, from which a fork can go on."""
    end = await log.end()
    if end == 0:
        raise NotFound.for_conversation(log.conversation_id)
    if at is not None and not 0 <= at < end:
        raise Invalid(f"There is no seq {at}: the log has seqs 0 to {end - 1}.")
    state = await read_state_at(log, end if at is None else at + 1)
    if state.status == "closed":
        closed = await _find_close(log, state.next_seq)
        if at is not None:
            hint = f"Fork it at {closed - 1} or before."
            raise Invalid(f"At seq {at} the conversation is closed.", hint)
        state = await read_state_at(log, closed)
    if state.spec is None:
        message = f"At seq {state.next_seq - 1} the conversation has no agent yet."
        raise Invalid(message, "Fork it later on.")
    return state


async def _find_close(log: EventLog, end: int) -> int:
    """Find the slot before `end` that closed the conversation."""
    for seq in range(end - 1, -1, -1):
        match (await log.get(seq)).event:
            case ConversationStateUpdateEvent(key="status", value="closed"):
                return seq
    raise AssertionError("a closed conversation was closed")


async def _read_agent(log: EventLog, state: State) -> Agent:
    agent = await read_agent(log, state)
    assert agent is not None, "a cut state has an agent"
    return agent


async def _replace_model(log: EventLog, state: State, model: str) -> dict[str, Any]:
    """Return the recorded spec with another model."""
    spec = await _read_agent(log, state)
    try:
        changes = check_changes(spec, {"model": model}).changes
    except ValueError as error:
        raise Invalid(str(error)) from error
    return spec.model_dump(mode="json", exclude_none=True) | changes


def _state_update(
    key: str, value: dict[str, Any], source: Source = "environment"
) -> ConversationStateUpdateEvent:
    now = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
    return ConversationStateUpdateEvent(timestamp=now, source=source, key=key, value=value)

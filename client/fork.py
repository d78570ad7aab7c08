"""Going on from an earlier point of a conversation, in another one."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent.configure import changed
from agent.spec import Spec
from agent.state import State
from client.client import Client
from client.conversation import Conversation
from client.errors import Invalid, NotFound
from client.ids import new_conversation_id
from events.base import Source
from events.control import ConversationStateUpdateEvent
from storage.fork import fork as begin
from storage.log import EventLog
from storage.state import state_at


@dataclass(frozen=True)
class Forked:
    """A new conversation, whose events up to slot `at` are those of the one it was forked from.

    `state` is where it stands. Its workflow begins with the first message, or with `resume`.
    """

    conversation: Conversation
    at: int
    state: State


async def fork(
    client: Client, conversation_id: str, at: int | None = None, model: str | None = None
) -> Forked:
    """Fork a conversation behind slot `at`, the last one if none is named.

    It may be running; it is not disturbed. The fork asks `model` from then on, if one is named. Of
    a closed conversation, what came before it was closed is forked. Raises Invalid and NotFound.
    """
    log = client.conversation(conversation_id).log
    state = await _cut(log, at)
    events = [_updated("forked", {"conversation_id": conversation_id, "at": state.next_seq - 1})]
    if model is not None:
        events.append(_updated("spec", await _with_model(log, state, model), "user"))
    child = client.conversation(new_conversation_id())
    forked = await begin(log, child.id, state, events)
    return Forked(conversation=child, at=state.next_seq - 1, state=forked)


async def _cut(log: EventLog, at: int | None) -> State:
    """The state behind slot `at`, from which a conversation can go on."""
    end = await log.end()
    if end == 0:
        raise NotFound.of(log.conversation_id)
    if at is not None and not 0 <= at < end:
        raise Invalid(f"There is no seq {at}: the log has seqs 0 to {end - 1}.")
    state = await state_at(log, end if at is None else at + 1)
    if state.status == "closed":
        closed = await _closed(log, state.next_seq)
        if at is not None:
            raise Invalid(
                f"At seq {at} the conversation is closed.", f"Fork it at {closed - 1} or before."
            )
        state = await state_at(log, closed)
    if state.spec is None:
        raise Invalid(
            f"At seq {state.next_seq - 1} the conversation has no agent yet.", "Fork it later on."
        )
    return state


async def _closed(log: EventLog, end: int) -> int:
    """The slot before `end` by which the conversation was closed."""
    for seq in range(end - 1, -1, -1):
        event = (await log.at(seq)).event
        update = event if isinstance(event, ConversationStateUpdateEvent) else None
        if update and (update.key, update.value) == ("status", "closed"):
            return seq
    raise AssertionError("a closed conversation was closed")


async def _with_model(log: EventLog, state: State, model: str) -> dict[str, Any]:
    """The spec in force, as it was recorded, with another model."""
    event = (await log.at(state.spec_seq)).event
    assert isinstance(event, ConversationStateUpdateEvent), "the slot of a spec holds one"
    spec = Spec.model_validate(event.value)
    try:
        changes = changed(spec, {"model": model}).changes
    except ValueError as error:
        raise Invalid(str(error)) from error
    return spec.model_dump(mode="json", exclude_none=True) | changes


def _updated(
    key: str, value: dict[str, Any], source: Source = "environment"
) -> ConversationStateUpdateEvent:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return ConversationStateUpdateEvent(timestamp=now, source=source, key=key, value=value)

"""The beginning of a run: what its request says is sent once, however often it is asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.agent.loop.state import State, actions_to_confirm
from perdure.errors import ClientError
from perdure.events.base import shorten_name
from perdure.gateway.ag_ui.call import Call, name_agent
from perdure.gateway.ag_ui.context import add_context
from perdure.gateway.ag_ui.history import History, read_history
from perdure.gateway.ag_ui.ids import MessageIds, find_message_id
from perdure.gateway.ag_ui.requests import (
    Answer,
    NewMessage,
    find_new_message,
    join_instructions,
    parse_answers,
    refuse,
)
from perdure.gateway.turns.starts import find_answer
from perdure.storage.log.state import read_state

LOCKED: dict[str, str] = {
    "running": "A run of the thread is under way: wait for its end, or join it without a message.",
    "paused": "The conversation is paused: resume it on its page.",
}


@dataclass(frozen=True)
class Run:
    """A run: the slot of its turn, if it has one, and what the client has to be told before it."""

    seq: int | None
    history: History | None = None


async def begin(call: Call) -> Run:
    """Begin the turn that a request asks for, or join the newest one.

    Raises Refused, ValidationError and the errors of the client and of the store.
    """
    state = await read_state(call.conversation.log)
    _require_same_agent(call, state)
    message = find_new_message(call.body.messages, lambda name: _is_known(call, state, name))
    try:
        if call.body.resume:
            return await _resume(call, state, parse_answers(call.body.resume), message)
        if message is not None:
            return await _say(call, state, message)
    finally:
        call.gateway.followers.hint(call.user_id, call.conversation.id)
    return await come_back(call)


async def come_back(call: Call) -> Run:
    """Return the newest turn, and all that was before it."""
    history = await read_history(call.conversation.log, call.blobs)
    return Run(history.seq, history)


async def _say(call: Call, state: State, message: NewMessage) -> Run:
    if (detail := LOCKED.get(state.status)) is not None:
        raise refuse(detail, "conversation_locked", 409)
    seq = await _send(call, state, message)
    if not _is_behind(call, state):
        return Run(seq)
    return Run(seq, await read_history(call.conversation.log, call.blobs, seq))


async def _send(call: Call, state: State, message: NewMessage) -> int:
    """Send a message, and return its slot."""
    message_id = find_message_id(call.user_id, message.message_id)
    text = add_context(message.text, call.body.context or ())
    conversation = call.conversation
    if state.next_seq == 0:
        call.gateway.agents.policy.check_images(message.images)
        agent = await call.choose_agent(join_instructions(call.body.messages))
        client = call.caller.client
        await client.start(text, agent, conversation.id, message_id, message.images)
    recorded = await conversation.submit(text, message_id, images=message.images, reopen=True)
    return recorded.seq


async def _resume(
    call: Call, state: State, answers: Sequence[Answer], message: NewMessage | None
) -> Run:
    """Give answers, unless they were given; then the run goes on, or the newest one is told."""
    waiting = {action.tool_call_id for action in actions_to_confirm(state)}
    if not waiting and message is None:
        return await _join_answered(call, answers)
    if missing := sorted(waiting - {answer.call_id for answer in answers}):
        raise refuse(f"resume: answer each interrupt: {', '.join(missing)} is missing.")
    if message is None:
        seq = await _answer(call, state, [each for each in answers if each.call_id in waiting])
        return Run(seq, await read_history(call.conversation.log, call.blobs, seq))
    if waiting and any(answer.approved for answer in answers):
        raise refuse("Answer what waits first, and say something once the run has ended.")
    return await _say(call, state, message)  # refuses what waits


async def _answer(call: Call, state: State, answers: Sequence[Answer]) -> int:
    """Answer the calls that wait, and return the slot of the first answer."""
    conversation = call.conversation
    for answer in answers:
        if not answer.approved:
            await conversation.respond(False, [answer.call_id], reason=answer.reason)
    if accepted := [answer.call_id for answer in answers if answer.approved]:
        await conversation.respond(True, accepted)
    seq = await find_answer(conversation.log, state.next_seq - 1)
    if seq is None:
        raise ClientError("The answers were taken, and are not in the log yet: ask again.")
    return seq


async def _join_answered(call: Call, answers: Sequence[Answer]) -> Run:
    """Return the newest turn, if these answers are to calls of this conversation."""
    history = await read_history(call.conversation.log, call.blobs)
    calls = {each["id"] for message in history.messages for each in message.get("toolCalls", ())}
    if unknown := sorted({answer.call_id for answer in answers} - calls):
        raise refuse(f"resume: nothing waits for an answer to {', '.join(unknown)[:200]}.")
    return Run(history.seq, history)


def _require_same_agent(call: Call, state: State) -> None:
    if state.spec is not None and (name := name_agent(state.spec)) != call.agent:
        detail = f"The agent of the thread is {name}: run that, or begin another thread."
        raise refuse(detail, "agent_mismatch")


def _is_known(call: Call, state: State, client_id: str) -> bool:
    return shorten_name(find_message_id(call.user_id, client_id)) in state.message_seqs


def _is_behind(call: Call, state: State) -> bool:
    """Tell whether the client has not seen all that was before its message."""
    if state.turn == 0:
        return False
    ids = MessageIds(call.conversation.id)
    messages = call.body.messages
    if state.status == "waiting_for_confirmation" or not any(ids.is_own(it.id) for it in messages):
        return True
    newest = max(state.message_seqs, key=state.message_seqs.__getitem__, default=None)
    known = {shorten_name(find_message_id(call.user_id, it.id)) for it in messages}
    return newest is not None and newest not in known

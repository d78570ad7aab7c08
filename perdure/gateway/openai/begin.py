"""The beginning of a turn: a message, or a person's answers, sent once however often asked."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from perdure.agent.loop.state import State, actions_to_confirm
from perdure.client.conversation import Conversation
from perdure.client.ids import new_message_id
from perdure.errors import ClientError
from perdure.gateway.errors import Refused
from perdure.gateway.openai.agents import choose_agent
from perdure.gateway.openai.call import Call, RequestKey
from perdure.gateway.openai.errors import BadRequest
from perdure.gateway.openai.projections.ids import ResponseId, parse_approval_id
from perdure.gateway.openai.requests import Approval
from perdure.gateway.turns.starts import find_answer
from perdure.storage.foreign.begun_requests import BegunRequest, BegunRequests
from perdure.storage.log.state import read_state

RETRY_SECONDS = 15 * 60
"""Seconds within which a client's own retry joins the turn that it has begun, at least."""

NAMED_SECONDS = 24 * 60 * 60
"""Seconds within which a request with the same Idempotency-Key joins it, at least."""


@dataclass(frozen=True)
class Message:
    """The words of a request in a conversation; answers to approvals stand in place of a text."""

    text: str
    images: tuple[str, ...] = ()
    approvals: tuple[Approval, ...] = ()


@dataclass(frozen=True)
class Place:
    """The destination of a message: a conversation that is there, or that begins with it."""

    conversation_id: str
    is_new: bool
    message: Message


@dataclass(frozen=True)
class StartOptions:
    """The fields that a conversation that begins has over its agent."""

    model: str
    instructions: str | None = None
    tags: tuple[str, ...] = ()
    hidden: bool = False


FindPlace = Callable[[], Awaitable[Place]]


async def begin(
    call: Call, key: RequestKey, options: StartOptions, find_place: FindPlace
) -> ResponseId:
    """Begin a turn, or join the one that the same request has begun.

    Raises BadRequest, Refused and the errors of the client and of the store.
    """
    seconds = NAMED_SECONDS if key.is_named else RETRY_SECONDS
    requests = BegunRequests(call.gateway.store, seconds)
    if key.is_named or key.is_repeat:
        begun = await requests.find(call.user_id, key.text)
        if begun is not None and (found := await _find(call, begun)) is not None:
            return found
    else:
        begun = None
    place = await find_place()
    if begun is None:
        begun = await _plan(call, place)
        if key.is_named:
            begun = await requests.note_first(call.user_id, key.text, begun)
        else:
            await requests.note(call.user_id, key.text, begun)
    return await _send(call, begun, options, place.message)


async def _find(call: Call, begun: BegunRequest) -> ResponseId | None:
    """Find the turn that a request has begun, if its message is in the log."""
    conversation = await call.address(begun.conversation_id)
    if begun.message_id is None:
        seq = await find_answer(conversation.log, begun.after_seq)
    else:
        seq = (await read_state(conversation.log)).message_seqs.get(begun.message_id)
    return None if seq is None else ResponseId(conversation.id, seq)


async def _plan(call: Call, place: Place) -> BegunRequest:
    name = place.conversation_id
    if not place.message.approvals:
        return BegunRequest(conversation_id=name, message_id=new_message_id(), is_new=place.is_new)
    conversation = await call.address(name)
    after = (await read_state(conversation.log)).next_seq - 1
    return BegunRequest(conversation_id=name, after_seq=after)


async def _send(
    call: Call, begun: BegunRequest, options: StartOptions, message: Message
) -> ResponseId:
    conversation = await call.address(begun.conversation_id)
    try:
        if begun.message_id is None:
            seq = await _answer(conversation, begun.after_seq, message.approvals)
        else:
            if begun.is_new and await conversation.log.end() == 0:
                await _start(call, conversation, begun.message_id, options, message)
            recorded = await conversation.submit(
                message.text, begun.message_id, images=message.images, reopen=True
            )
            seq = recorded.seq
    finally:
        call.gateway.followers.hint(call.user_id, conversation.id)
    return ResponseId(conversation.id, seq)


async def _start(
    call: Call,
    conversation: Conversation,
    message_id: str,
    options: StartOptions,
    message: Message,
) -> None:
    """Start a conversation with its first message."""
    call.gateway.agents.policy.check_images(message.images)
    agent = await choose_agent(
        call, options.model, options.instructions, options.tags, hidden=options.hidden
    )
    client = call.caller.client
    await client.start(message.text, agent, conversation.id, message_id, message.images)


async def _answer(
    conversation: Conversation, after_seq: int, approvals: tuple[Approval, ...]
) -> int:
    """Answer the calls that wait, unless they were; return the slot of the first answer."""
    if (seq := await find_answer(conversation.log, after_seq)) is None:
        waiting = set(_waiting(await read_state(conversation.log)))
        answers = {parse_approval_id(each.request_id): each for each in approvals}
        if waiting != answers.keys():
            detail = "Answer all requests for approval of the response, and no other ones, once."
            raise BadRequest(detail, "input", "approvals_incomplete")
        for call_id, answer in answers.items():
            if not answer.approve and call_id is not None:
                await conversation.respond(False, [call_id], reason=answer.reason)
        accepted = [call_id for call_id, each in answers.items() if each.approve and call_id]
        if accepted:
            await conversation.respond(True, accepted)
        seq = await find_answer(conversation.log, after_seq)
    if seq is None:
        raise ClientError("The answers were taken, and are not in the log yet: ask again.")
    return seq


def require_free(state: State) -> None:
    """Raise Refused while a turn runs, or where a person has paused it."""
    locked = {"running": "A turn of the conversation runs: wait for its end, or cancel it."}
    locked["paused"] = "The conversation is paused: resume it on its page."
    if (detail := locked.get(state.status)) is not None:
        raise Refused(409, "conversation_locked", detail)


def _waiting(state: State) -> tuple[str, ...]:
    return tuple(action.tool_call_id for action in actions_to_confirm(state))

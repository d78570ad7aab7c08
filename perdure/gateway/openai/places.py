"""The place of a message of a response: a conversation, a fork of one, or a new one."""

from perdure.agent.loop.state import State
from perdure.client.conversation import Conversation
from perdure.client.fork import fork
from perdure.client.ids import new_conversation_id
from perdure.errors import NotFound
from perdure.gateway.openai.agents import name_agent
from perdure.gateway.openai.begin import Message, Place, require_free
from perdure.gateway.openai.call import Call
from perdure.gateway.openai.errors import BadRequest
from perdure.gateway.openai.head import is_newest, read_head, read_parts
from perdure.gateway.openai.metadata import merge_tags
from perdure.gateway.openai.projections.ids import parse_conversation_id, parse_response_id
from perdure.gateway.openai.requests import (
    ConversationParam,
    CreateResponse,
    ParsedInput,
    SpokenMessage,
    compose,
)
from perdure.gateway.turns.parts import Ended
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_agent, read_state


async def find_place(call: Call, body: CreateResponse, said: ParsedInput) -> Place:
    """Find where the message of a response belongs. Raises BadRequest, Refused, NotFound."""
    if body.conversation is not None and body.previous_response_id is not None:
        detail = "Give `conversation` or `previous_response_id`, and not both."
        raise BadRequest(detail, "previous_response_id", "mutually_exclusive_parameters")
    if body.previous_response_id is not None:
        conversation = await _follow_response(call, body.previous_response_id)
    elif body.conversation is not None:
        conversation = await _find_conversation(call, body.conversation)
    else:
        return _begin_anew(said)
    state = await read_state(conversation.log)
    if state.next_seq == 0:
        return Place(conversation.id, True, make_message(said))
    await require_same(call, conversation.log, state, body.model, said.instructions)
    require_free(state)
    await note_metadata(conversation, state, body.metadata)
    return Place(conversation.id, False, say_newest(said))


def make_message(said: ParsedInput) -> Message:
    """Return all that is said as the first message of a conversation."""
    if said.approvals:
        detail = "Name the response that asks for the approval as `previous_response_id`."
        raise BadRequest(detail, "input")
    return Message(*compose(said.messages))


def say_newest(said: ParsedInput) -> Message:
    """Return what a conversation has not heard yet: the newest words of the user, or answers."""
    if said.approvals and said.messages:
        raise BadRequest("Answer what waits first, and say something then.", "input")
    if said.approvals:
        return Message("", approvals=said.approvals)
    newest: list[SpokenMessage] = []
    for message in reversed(said.messages):
        if message.role != "user":
            break
        newest.insert(0, message)
    text = "\n\n".join(message.text for message in newest)
    images = tuple(image for message in newest for image in message.images)
    return Message(*compose([SpokenMessage("user", text, images)]))


async def require_same(
    call: Call, log: ReadableLog, state: State, model: str, instructions: str | None
) -> None:
    """Raise BadRequest if a request names another agent than before.

    So it is with other instructions, unless the installation ignores these.
    """
    assert state.spec is not None, "a conversation with events has an agent"
    if (name := name_agent(state.spec)) != model:
        detail = f"The agent of the conversation is {name}: name it, or begin another one."
        raise BadRequest(detail, "model", "model_mismatch")
    ignores = call.gateway.settings.gateway_openai_instructions == "ignore"
    if instructions is None or ignores:
        return
    agent = await read_agent(log, state)
    if agent is None or not (agent.instructions or "").endswith(instructions):
        detail = "A conversation keeps the instructions that it has begun with."
        raise BadRequest(detail, "instructions", "instructions_changed")


async def note_metadata(
    conversation: Conversation, state: State, metadata: dict[str, str] | None
) -> None:
    """Note metadata as tags of the conversation, unless it has them."""
    tags = state.spec.tags if state.spec is not None else ()
    if metadata and (merged := merge_tags(tags, metadata)) != tags:
        await conversation.note(tags=merged)


async def fork_at(call: Call, conversation: Conversation, seq: int) -> Conversation:
    """Fork a conversation after a slot; the fork is the caller's own."""
    call.gateway.rates.take("costly", call.user_id)
    return (await fork(call.caller.client, conversation.id, seq)).conversation


def _begin_anew(said: ParsedInput) -> Place:
    return Place(new_conversation_id(), True, make_message(said))


async def _find_conversation(call: Call, param: ConversationParam | str) -> Conversation:
    """Return a conversation that is there, or was made and has not begun. Raises NotFound."""
    text = param if isinstance(param, str) else param.id
    if (name := parse_conversation_id(text)) is None:
        raise no_conversation(text)
    conversation = await call.address(name)
    if await conversation.log.end() == 0 and await call.objects.load_reserved(name) is None:
        raise no_conversation(text)
    return conversation


def no_conversation(text: str) -> NotFound:
    return NotFound(f"There is no conversation {text[:60]!r}.")


async def _follow_response(call: Call, text: str) -> Conversation:
    """Return the conversation of a response if that is its newest, else a fork at its end."""
    response_id = parse_response_id(text)
    if response_id is None:
        raise _no_previous(text)
    try:
        conversation = await call.address(response_id.conversation_id)
        await read_head(conversation.log, response_id)
    except NotFound:
        raise _no_previous(text) from None
    parts, state = await read_parts(conversation.log, response_id.seq)
    if not (parts and isinstance(parts[-1], Ended)):
        require_free(state)
    if await is_newest(conversation.log, state):
        return conversation
    return await fork_at(call, conversation, state.next_seq - 1)


def _no_previous(text: str) -> BadRequest:
    detail = f"There is no response {text[:60]!r}."
    return BadRequest(detail, "previous_response_id", "previous_response_not_found")

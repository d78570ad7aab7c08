"""The conversation of a message of a chat, by the history that its client sends each time."""

import re
from collections.abc import Sequence

from starlette.requests import Request

from perdure.agent.loop.state import State
from perdure.client.ids import derive_conversation_id, new_conversation_id
from perdure.events.content import join_text
from perdure.events.messages import MessageEvent
from perdure.gateway.openai.begin import Message, Place, require_free
from perdure.gateway.openai.call import Call
from perdure.gateway.openai.places import fork_at, note_metadata, require_same
from perdure.gateway.openai.projections.ids import parse_conversation_id
from perdure.gateway.openai.requests import (
    ParsedInput,
    SpokenMessage,
    Turn,
    compose,
)
from perdure.gateway.views.idempotency import MASK
from perdure.storage.keys import is_conversation_id
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state

CHAT_HEADER = "x-conversation-id"

TASK_HEADER = "x-perdure-task"

CHAT_KEY = "conversation_id"
"""The key of the metadata that names a chat where no header does."""

UNNAMED = re.compile(r"(|new|null|none|undefined|\{\{.*\}\})", re.IGNORECASE)
"""What chat UIs send for a chat that has no name yet."""


def is_task(request: Request) -> bool:
    """Tell whether a chat UI asks for a title, tags or the like, and says nothing in the chat."""
    return not UNNAMED.fullmatch(request.headers.get(TASK_HEADER, "").strip())


def find_chat(call: Call, body: Turn) -> str | None:
    """Return the id of the conversation that a chat begins in; None for a chat without a name.

    A UUID is the conversation's own; any other name belongs to one of the user's.
    """
    named = call.request.headers.get(CHAT_HEADER) or (body.metadata or {}).get(CHAT_KEY)
    if named is None or UNNAMED.fullmatch(named.strip()):
        return None
    named = named.strip()
    if is_conversation_id(named.lower()):
        return named.lower()
    return parse_conversation_id(named) or derive_conversation_id(call.user_id, f"chat\0{named}")


async def find_place(call: Call, body: Turn, said: ParsedInput) -> Place:
    """Find where the newest message of a chat belongs.

    Where the client has changed an earlier message, the chat goes on in a fork from there.
    """
    chat = find_chat(call, body)
    compose(said.messages, "messages")  # refuses what says nothing
    if chat is None or is_task(call.request):
        return Place(new_conversation_id(), True, Message(*compose(said.messages, "messages")))
    conversation = await call.address(await call.objects.find_chat(chat))
    state = await read_state(conversation.log)
    if state.next_seq == 0:
        return Place(conversation.id, True, Message(*compose(said.messages, "messages")))
    known = await read_user_messages(conversation.log, state)
    count, rest = match_history(said.messages, [text for _, text in known])
    message = Message(*compose(rest, "messages"))
    if count == len(known):
        await require_same(call, conversation.log, state, body.model, said.instructions)
        require_free(state)
        await note_metadata(conversation, state, own_metadata(body))
        return Place(conversation.id, False, message)
    if count:
        fork = await fork_at(call, conversation, known[count][0] - 1)
        place = Place(fork.id, False, message)
    else:
        place = Place(new_conversation_id(), True, message)
    await call.objects.point_chat(chat, place.conversation_id)
    return place


def match_history(
    messages: Sequence[SpokenMessage], known: Sequence[str]
) -> tuple[int, Sequence[SpokenMessage]]:
    """Match the history that a client sends with the user's texts that a conversation has.

    Returns how many of these are in the history, and the messages that follow them: at least the
    newest one.
    """
    count = begin = 0
    for text in known:
        end = _find_end(messages, begin, text)
        if end is None:
            break
        count, begin = count + 1, end
    return count, messages[begin:]


async def read_user_messages(log: ReadableLog, state: State) -> list[tuple[int, str]]:
    """Read the slots and the texts of the user's messages, as far as the state knows them."""
    found = []
    for seq in sorted({*state.message_seqs.values()}):
        event = (await log.get(seq)).event
        if isinstance(event, MessageEvent) and event.source == "user":
            found.append((seq, join_text(event.llm_message.content)))
    return found


def _find_end(messages: Sequence[SpokenMessage], begin: int, text: str) -> int | None:
    """Find the end of the messages that were sent as `text`, with the answer to them."""
    for end in range(begin + 1, len(messages)):
        if messages[end - 1].role != "user":
            continue
        if not messages[end - 1].text.strip() and not messages[end - 1].images:
            continue
        if _is_same(compose(messages[begin:end])[0], text):
            while end < len(messages) - 1 and messages[end].role == "assistant":
                end += 1
            return end
    return None


def _is_same(sent: str, recorded: str) -> bool:
    return sent.strip() == recorded.strip() or MASK in recorded


def own_metadata(body: Turn) -> dict[str, str]:
    """Return the metadata of a request but the name of its chat."""
    return {name: value for name, value in (body.metadata or {}).items() if name != CHAT_KEY}

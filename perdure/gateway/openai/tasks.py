"""Titles, tags and the like that a chat UI asks for: they are no messages of the chat."""

from perdure.client.ask import ask
from perdure.gateway.openai.call import Call
from perdure.gateway.openai.chats import find_chat
from perdure.gateway.openai.requests import Turn, compose, parse_turn, refuse_unsupported
from perdure.gateway.turns.parts import Ended, Part, Text


async def answer_task(call: Call, body: Turn) -> tuple[Part, ...] | None:
    """Ask the agent beside the log of a chat; return the parts of its answer.

    Returns None where the chat has no conversation yet. Raises BadRequest, Refused and the errors
    of the client and of the store.
    """
    refuse_unsupported(body)
    question, _ = compose(parse_turn(body).messages)
    if (chat := find_chat(call, body)) is None:
        return None
    conversation = await call.address(await call.objects.find_chat(chat))
    if await conversation.log.end() == 0:
        return None
    call.gateway.rates.take("costly", call.user_id)
    answer = await ask(call.caller.client, conversation.id, question)
    said = Text("task", answer.text, last=True, final=True, whole=answer.text)
    return said, Ended("finished", None, answer.usage, 0)

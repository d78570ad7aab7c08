"""Tools that sign books: lists in the session state, to which each call adds its mark."""

from functools import partial
from typing import Any, Literal

from perdure.agent.loop.scopes import parse_key
from perdure.storage.conversations import creation_time
from perdure.tools.function import tool
from perdure.tools.tool import Context
from reliability.chaos.tools import heartbeat_for

OWN_BOOK = "book"
PERIOD = 60
"""Seconds: conversations that began in the same ones share books, which so stay short."""

SIGNING_TOOLS = ("sign", "sign_once")


def make_mark(action_id: str) -> str:
    """Return the mark of a call; short, as a shared value names the writes that made it."""
    return action_id[-12:]


def name_book(scope: str, conversation_id: str) -> str:
    """Return the key of a book: the conversation's own, or one of its user or of all users."""
    if scope == "own":
        return OWN_BOOK
    began = creation_time(conversation_id)
    assert began is not None, "the id of a conversation says when it began"
    return f"{scope}:book-{int(began.timestamp()) // PERIOD}"


def is_own(key: str) -> bool:
    """Tell whether a value belongs to a conversation alone."""
    return parse_key(key).scope == "own"


@tool(idempotent=True)
async def sign(scope: Literal["own", "user", "app"], seconds: float, context: Context) -> str:
    """Sign a book; a call that is made again signs it once."""
    return await _sign(scope, seconds, context)


@tool()
async def sign_once(scope: Literal["own", "user", "app"], seconds: float, context: Context) -> str:
    """Sign a book; a call that is lost is not made again."""
    return await _sign(scope, seconds, context)


async def _sign(scope: str, seconds: float, context: Context) -> str:
    await heartbeat_for(seconds, context)
    key = name_book(scope, context.conversation_id)
    await context.state.update(key, partial(_add, make_mark(context.action_id)))
    return f"signed {key}"


def _add(mark: str, marks: Any) -> list[str]:
    return [*(marks or []), mark]


TOOLS = (sign, sign_once)

"""A worker keeps the shells that are in use, and not too many of the others."""

import asyncio
from dataclasses import replace

from tests.tools.processes import alive, until
from tests.tools.talking import Talk, said, talk
from tools.shell.sessions import Sessions

__all__ = ["talk"]

RESTARTED = "[A new shell was started in the workspace"


def named(talk: Talk, name: str) -> Talk:
    """The same terminal in another conversation."""
    context = replace(talk.place.context, conversation_id=name)
    return replace(talk, place=replace(talk.place, context=context))


async def test_beyond_the_limit_the_shell_that_was_used_longest_ago_is_closed(
    talk: Talk, token: str
) -> None:
    sessions = Sessions(limit=2)
    old, older, new = (named(replace(talk, sessions=sessions), name) for name in "abc")
    await older.say(f"word=lost; (exec -a {token} sleep 600) &")
    await old.say("word=kept")
    await new.say("true")
    await until(lambda: not alive(token))
    assert await old.prints("echo $word") == "kept\n"
    assert await older.prints("echo [$word]") == "[]\n"
    await sessions.close()


async def test_a_shell_in_use_is_not_closed_for_another(talk: Talk) -> None:
    sessions = Sessions(limit=1)
    busy, other = (named(replace(talk, sessions=sessions), name) for name in "ab")
    task = busy.started("word=kept; touch begun; until [ -e go ]; do sleep 0.02; done; echo $word")
    await until((talk.place.workspace / "begun").exists)
    assert await other.prints("echo other") == "other\n"
    (talk.place.workspace / "go").touch()
    assert said(await task).startswith("kept\n")
    await sessions.close()


async def test_a_shell_that_nobody_uses_is_closed_after_a_while(talk: Talk, token: str) -> None:
    sessions = Sessions(idle=0.2)
    idle = replace(talk, sessions=sessions)
    await idle.say(f"(exec -a {token} sleep 600) &")
    await idle.say("sleep 0.3; word=kept")
    assert await idle.prints("echo $word") == "kept\n", "a call is no idleness"
    await until(lambda: not alive(token))
    assert await idle.prints("echo [$word]") == "[]\n"
    await sessions.close()


async def test_closing_ends_every_process_of_every_shell(talk: Talk, token: str) -> None:
    await asyncio.gather(
        *(named(talk, name).say(f"(exec -a {token} sleep 600) &") for name in "abc")
    )
    await until(lambda: len(alive(token)) == 3)
    await talk.sessions.close()
    assert not alive(token)

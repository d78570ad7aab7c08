"""A worker keeps shells in use, and a limited number of idle ones."""

import asyncio
from dataclasses import replace

from perdure.tools.shell.sessions import ShellSessions
from tests.tools.processes import find_processes, wait_until
from tests.tools.talking import Terminal, in_conversation, talk, text_of_result

__all__ = ["talk"]

RESTARTED = "[A new shell was started in the workspace"


def named(talk: Terminal, name: str) -> Terminal:
    """The same terminal in another conversation."""
    context = in_conversation(talk.place.context, name)
    return replace(talk, place=replace(talk.place, context=context))


async def test_beyond_the_limit_the_shell_that_was_used_longest_ago_is_closed(
    talk: Terminal, token: str
) -> None:
    sessions = ShellSessions(limit=2)
    old, older, new = (named(replace(talk, sessions=sessions), name) for name in "abc")
    await older.run(f"word=lost; (exec -a {token} sleep 600) &")
    await old.run("word=kept")
    await new.run("true")
    await wait_until(lambda: not find_processes(token))
    assert await old.run_ok("echo $word") == "kept\n"
    assert await older.run_ok("echo [$word]") == "[]\n"
    await sessions.close()


async def test_a_shell_in_use_is_not_closed_for_another(talk: Terminal) -> None:
    sessions = ShellSessions(limit=1)
    busy, other = (named(replace(talk, sessions=sessions), name) for name in "ab")
    task = busy.start("word=kept; touch begun; until [ -e go ]; do sleep 0.02; done; echo $word")
    await wait_until((talk.place.workspace / "begun").exists)
    assert await other.run_ok("echo other") == "other\n"
    (talk.place.workspace / "go").touch()
    assert text_of_result(await task).startswith("kept\n")
    await sessions.close()


async def test_an_idle_shell_is_closed_after_a_while(talk: Terminal, token: str) -> None:
    sessions = ShellSessions(idle=0.2)
    idle = replace(talk, sessions=sessions)
    await idle.run(f"(exec -a {token} sleep 600) &")
    await idle.run("sleep 0.3; word=kept")
    assert await idle.run_ok("echo $word") == "kept\n", "a call is no idleness"
    await wait_until(lambda: not find_processes(token))
    assert await idle.run_ok("echo [$word]") == "[]\n"
    await sessions.close()


async def test_closing_ends_every_process_of_every_shell(talk: Terminal, token: str) -> None:
    await asyncio.gather(
        *(named(talk, name).run(f"(exec -a {token} sleep 600) &") for name in "abc")
    )
    await wait_until(lambda: len(find_processes(token)) == 3)
    await talk.sessions.close()
    assert not find_processes(token)

"""A call that is cancelled ends its command, and the shell goes on."""

import asyncio

import pytest

from tests.tools.processes import alive, until
from tests.tools.talking import Talk, cancelled, printed, said, talk

__all__ = ["talk"]

RESTARTED = "[A new shell was started in the workspace"


async def test_a_cancelled_command_ends_and_the_shell_goes_on(talk: Talk, token: str) -> None:
    await talk.say("word=kept")
    before = (await talk.say("true")).metadata.pid
    task = talk.started(f"echo so far; (exec -a {token} sleep 600); touch never")
    await until(lambda: alive(token))
    await cancelled(task)
    assert not alive(token)
    assert talk.place.progress[-1].startswith("so far\n")
    after = await talk.say("echo $word; ls")
    assert said(after).startswith("kept\n[Command"), "of the cancelled command nothing is left"
    assert after.metadata.pid == before


async def test_what_was_said_before_a_cancellation_is_told_first(talk: Talk) -> None:
    task = talk.started("echo so far; touch said; sleep 600")
    await until((talk.place.workspace / "said").exists)
    await cancelled(task)
    assert talk.place.progress[-1].rstrip() == "so far"


async def test_a_time_limit_of_the_callers_is_a_cancellation(talk: Talk, token: str) -> None:
    await talk.say("true")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await talk.say(f"echo so far; (exec -a {token} sleep 600)")
    assert not alive(token)
    assert talk.place.progress[-1].startswith("so far\n")
    assert await talk.prints("echo on") == "on\n"


async def test_cancelling_while_waiting_ends_the_command_that_is_waited_for(
    talk: Talk, token: str
) -> None:
    await talk.impatient().say(f"(exec -a {token} sleep 600)")
    task = asyncio.create_task(talk.type(""))
    await asyncio.sleep(0.05)
    await cancelled(task)
    assert not alive(token)
    assert await talk.prints("echo on") == "on\n"


async def test_a_command_that_cannot_be_interrupted_takes_its_shell_along(
    talk: Talk, token: str
) -> None:
    stubborn = f"trap '' INT; while :; do (exec -a {token} sleep 600); touch going; done"
    task = talk.started(stubborn)
    await until(lambda: alive(token))
    await cancelled(task)
    assert not alive(token)
    assert said(await talk.say("true")).startswith(RESTARTED)


async def test_cancelling_twice_leaves_nobody_and_the_next_call_waits(
    talk: Talk, token: str
) -> None:
    await talk.say("word=kept")
    task = talk.started(
        f"trap '' INT; for i in $(seq 20); do (exec -a {token} sleep 600) & done; wait"
    )
    await until(lambda: len(alive(token)) == 20)
    task.cancel()
    await asyncio.sleep(0)
    await cancelled(task)
    assert (await talk.say("true")).exit_code == 0
    assert not alive(token)


async def test_cancelling_at_any_moment_leaves_nobody_and_a_shell_that_works(
    talk: Talk, token: str
) -> None:
    for turn in range(16):
        task = talk.started(f"(setsid bash -c 'exec -a {token} sleep 600' &); sleep 600")
        await asyncio.sleep(turn * 0.003)
        await cancelled(task)
        assert not alive(token)
        assert printed(await talk.say("echo on")) == "on\n"


async def test_an_older_background_job_is_not_the_cancelled_commands(
    talk: Talk, token: str
) -> None:
    await talk.say(f"(exec -a {token} sleep 600) &")
    await until(lambda: alive(token))
    await asyncio.sleep(0.02)  # processes are told apart by a clock of a hundred ticks a second
    task = talk.started("sleep 600 & sleep 600; touch never")
    await asyncio.sleep(0.1)
    await cancelled(task)
    assert await talk.prints("jobs -r | wc -l; kill %1") == "1\n"

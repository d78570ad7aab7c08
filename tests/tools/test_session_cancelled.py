"""A cancelled call kills its command, and the shell stays."""

import asyncio

import pytest

from tests.tools.processes import find_processes, wait_until
from tests.tools.talking import Terminal, cancel, output_of, talk, text_of_result

__all__ = ["talk"]

RESTARTED = "[A new shell was started in the workspace"


async def test_a_cancelled_command_ends_and_the_shell_goes_on(talk: Terminal, token: str) -> None:
    await talk.run("word=kept")
    before = (await talk.run("true")).metadata.pid
    task = talk.start(f"echo so far; (exec -a {token} sleep 600); touch never")
    await wait_until(lambda: find_processes(token))
    await cancel(task)
    assert not find_processes(token)
    assert talk.place.progress[-1].startswith("so far\n")
    after = await talk.run("echo $word; ls")
    assert text_of_result(after).startswith("kept\n[Command"), (
        "of the cancelled command nothing is left"
    )
    assert after.metadata.pid == before


async def test_output_before_a_cancellation_is_reported_first(talk: Terminal) -> None:
    task = talk.start("echo so far; touch said; sleep 600")
    await wait_until((talk.place.workspace / "said").exists)
    await cancel(task)
    assert talk.place.progress[-1].rstrip() == "so far"


async def test_a_time_limit_of_the_callers_is_a_cancellation(talk: Terminal, token: str) -> None:
    await talk.run("true")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await talk.run(f"echo so far; (exec -a {token} sleep 600)")
    assert not find_processes(token)
    assert talk.place.progress[-1].startswith("so far\n")
    assert await talk.run_ok("echo on") == "on\n"


async def test_cancelling_while_waiting_ends_the_command_that_is_waited_for(
    talk: Terminal, token: str
) -> None:
    await talk.with_short_timeouts().run(f"(exec -a {token} sleep 600)")
    task = asyncio.create_task(talk.type(""))
    await asyncio.sleep(0.05)
    await cancel(task)
    assert not find_processes(token)
    assert await talk.run_ok("echo on") == "on\n"


async def test_a_command_that_cannot_be_interrupted_takes_its_shell_along(
    talk: Terminal, token: str
) -> None:
    stubborn = f"trap '' INT; while :; do (exec -a {token} sleep 600); touch going; done"
    task = talk.start(stubborn)
    await wait_until(lambda: find_processes(token))
    await cancel(task)
    assert not find_processes(token)
    assert text_of_result(await talk.run("true")).startswith(RESTARTED)


async def test_cancelling_twice_leaves_no_process_and_the_next_call_waits(
    talk: Terminal, token: str
) -> None:
    await talk.run("word=kept")
    task = talk.start(
        f"trap '' INT; for i in $(seq 20); do (exec -a {token} sleep 600) & done; wait"
    )
    await wait_until(lambda: len(find_processes(token)) == 20)
    task.cancel()
    await asyncio.sleep(0)
    await cancel(task)
    assert (await talk.run("true")).exit_code == 0
    assert not find_processes(token)


async def test_cancelling_at_any_moment_leaves_no_process_and_a_working_shell(
    talk: Terminal, token: str
) -> None:
    for turn in range(16):
        task = talk.start(f"(setsid bash -c 'exec -a {token} sleep 600' &); sleep 600")
        await asyncio.sleep(turn * 0.003)
        await cancel(task)
        assert not find_processes(token)
        assert output_of(await talk.run("echo on")) == "on\n"


async def test_an_older_background_job_is_not_the_cancelled_commands(
    talk: Terminal, token: str
) -> None:
    await talk.run(f"(exec -a {token} sleep 600) &")
    await wait_until(lambda: find_processes(token))
    await asyncio.sleep(0.02)  # processes are told apart by a clock of a hundred ticks a second
    task = talk.start("sleep 600 & sleep 600; touch never")
    await asyncio.sleep(0.1)
    await cancel(task)
    assert await talk.run_ok("jobs -r | wc -l; kill %1") == "1\n"

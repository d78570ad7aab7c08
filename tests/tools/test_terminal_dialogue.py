"""A command that takes its time is asked about, answered and interrupted."""

import asyncio

from tests.tools.processes import until
from tests.tools.talking import LONG, SOON, Talk, printed, said, talk

__all__ = ["talk"]

FINISHED = "[Command finished with exit code 0]"


async def test_a_silent_command_is_asked_about_and_runs_on(talk: Talk) -> None:
    asked = await talk.hears(
        "echo first; until [ -e go ]; do sleep 0.02; done; echo last", "first\n"
    )
    assert (asked.exit_code, asked.metadata.exit_code) == (-1, -1)
    assert asked.timeout
    assert not asked.is_error
    assert said(asked).startswith(
        f"first\n[No new output for {SOON:g} seconds: the command still runs"
    )
    again = await talk.impatient().type("")
    assert printed(again) == ""
    assert said(again) != said(asked), "waiting must not look like a loop"
    (talk.place.workspace / "go").touch()
    done = await talk.type("")
    assert said(done) == f"last\n{FINISHED}"
    assert not done.timeout


async def test_a_command_that_goes_on_printing_is_waited_for(talk: Talk) -> None:
    patient = talk.with_patience(silence=0.4, reply=0.4)
    ticking = "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done"
    assert await patient.prints(ticking) == "1\n2\n3\n4\n5\n"


async def test_a_timeout_counts_also_while_something_is_printed(talk: Talk) -> None:
    asked = await talk.say("while :; do echo on; sleep 0.02; done", timeout=0.3)
    assert asked.timeout
    assert printed(asked).startswith("on\non\n")
    assert "[Not done within the `timeout` of 0.3 seconds: the command still runs" in said(asked)


async def test_a_timeout_takes_the_place_of_the_patience_with_silence(talk: Talk) -> None:
    assert await talk.impatient().prints(f"sleep {2 * SOON}; echo done", timeout=30) == "done\n"


async def test_one_command_runs_at_a_time(talk: Talk) -> None:
    await talk.impatient().say("until [ -e go ]; do sleep 0.02; done")
    refused = await talk.say("touch never")
    assert refused.is_error
    assert refused.exit_code == -1
    assert "not run, because the command before it is still running" in said(refused)
    assert "`C-c`" in said(refused)
    (talk.place.workspace / "go").touch()
    await talk.type("")
    assert not (talk.place.workspace / "never").exists()


async def test_where_nothing_runs_there_is_nobody_to_take_input(talk: Talk) -> None:
    for text in ("", "yes", "C-c"):
        refused = await talk.type(text)
        assert refused.is_error
        assert said(refused).startswith("No command is running")
    assert await talk.prints("echo fine") == "fine\n"


async def test_input_reaches_who_asks(talk: Talk) -> None:
    await talk.hears("read -r -p 'Name? ' name; echo \"Hello $name.\"", "Name? \n")
    assert printed(await talk.type("Grace Hopper")) == "Hello Grace Hopper.\n"


async def test_a_program_is_talked_to_until_its_input_ends(talk: Talk) -> None:
    await talk.impatient().say("cat; echo over")
    answer = printed(await talk.impatient().type("one\ntwo"))
    while "two" not in answer:  # it is still starting
        answer += printed(await talk.impatient().type(""))
    assert answer == "one\ntwo\n"
    assert printed(await talk.type("C-d")) == "over\n"


async def test_python_answers_line_by_line(talk: Talk) -> None:
    await talk.impatient().say("python3 -q -i")
    answer = printed(await talk.impatient().type("print(6 * 7)"))
    while "42" not in answer:  # it is still starting
        answer += printed(await talk.impatient().type(""))
    assert (await talk.type("exit(5)")).exit_code == 5


async def test_after_input_the_silence_is_short(talk: Talk) -> None:
    quick = talk.with_patience(silence=LONG, reply=SOON)
    await talk.hears("echo cat; cat", "cat\n")
    answered = await quick.type("line")
    assert f"[No new output for {SOON:g} seconds" in said(answered)


async def test_input_that_nobody_read_is_no_command_and_no_later_input(talk: Talk) -> None:
    await talk.impatient().say("read -r one; sleep 0.2")
    await talk.type("first\ntouch never\nsecond")
    assert await talk.prints("read -r -t 0.1 more || echo nothing; ls") == "nothing\n"


async def test_input_that_comes_too_late_is_told_with_the_end(talk: Talk) -> None:
    await talk.impatient().say("until [ -e go ]; do sleep 0.02; done; echo done")
    session = await talk.session()
    (talk.place.workspace / "go").touch()
    await until(lambda: not session.busy)
    late = await talk.type("hello")
    assert late.is_error
    assert said(late) == (
        f"done\n[The command had ended before, so this input was not sent.]\n{FINISHED}"
    )


async def test_what_ended_meanwhile_is_told_before_the_next_command(talk: Talk) -> None:
    await talk.hears(
        "echo one; until [ -e go ]; do sleep 0.02; done; printf two; (exit 4)", "one\n"
    )
    (talk.place.workspace / "go").touch()
    session = await talk.session()
    await until(lambda: not session.busy)
    assert said(await talk.say("echo three")) == (
        f"two\n[The command before ended with exit code 4]\nthree\n{FINISHED}"
    )


async def test_c_c_interrupts(talk: Talk) -> None:
    await talk.impatient().say("sleep 600; touch never")
    started = asyncio.get_running_loop().time()
    interrupted = await talk.say("C-c")
    assert asyncio.get_running_loop().time() - started < 5
    assert interrupted.exit_code == 128 + 2
    assert await talk.prints("ls") == ""


async def test_c_c_interrupts_who_never_reads_what_is_typed(talk: Talk) -> None:
    impatient = talk.impatient()
    await impatient.say("sleep 600")
    for _ in range(3):
        await impatient.type("\n".join(["x" * 4_000] * 10))
    assert (await talk.type("C-c")).exit_code == 128 + 2


async def test_c_c_ends_a_loop_of_the_shells_own(talk: Talk) -> None:
    await talk.impatient().say("while :; do :; done; touch never")
    assert (await talk.type("C-c")).exit_code == 128 + 2
    assert await talk.prints("ls; echo on") == "on\n"


async def test_c_z_suspends_a_job_for_another_day(talk: Talk) -> None:
    await talk.impatient().say("while :; do sleep 600; done")
    assert (await talk.type("C-z")).exit_code == 128 + 20
    assert "Stopped" in await talk.prints("jobs")
    await talk.impatient().say("fg")
    assert (await talk.type("C-c")).exit_code == 128 + 2
    assert await talk.prints("jobs; echo on") == "on\n"


async def test_a_reset_ends_what_runs_and_starts_anew(talk: Talk) -> None:
    await talk.say("cd /; word=kept")
    await talk.impatient().say("sleep 600")
    again = await talk.say("echo [$word]; pwd", reset=True)
    assert again.exit_code == 0
    assert said(again).startswith("[The shell was reset: a new one was started in the workspace")
    assert f"]\n[]\n{talk.place.workspace}\n" in said(again)


async def test_a_reset_alone_is_enough(talk: Talk) -> None:
    await talk.say("word=kept")
    alone = await talk.say("", reset=True)
    assert (alone.exit_code, alone.is_error) == (0, False)
    assert said(alone).startswith("[The shell was reset")
    assert said(await talk.say("echo [$word]")) == f"[]\n{FINISHED}"

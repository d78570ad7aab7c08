"""A long-running command is awaited, given input and interrupted."""

import asyncio

from tests.tools.processes import wait_until
from tests.tools.talking import LONG, SHORT, Terminal, output_of, talk, text_of_result

__all__ = ["talk"]

FINISHED = "[Command finished with exit code 0]"


async def test_a_silent_command_is_asked_about_and_runs_on(talk: Terminal) -> None:
    observation = await talk.run_until_output(
        "echo first; until [ -e go ]; do sleep 0.02; done; echo last", "first\n"
    )
    assert (observation.exit_code, observation.metadata.exit_code) == (-1, -1)
    assert observation.timeout
    assert not observation.is_error
    assert text_of_result(observation).startswith(
        f"first\n[No new output for {SHORT:g} seconds: the command still runs"
    )
    again = await talk.with_short_timeouts().type("")
    assert output_of(again) == ""
    assert text_of_result(again) != text_of_result(observation), "waiting must not look like a loop"
    (talk.place.workspace / "go").touch()
    done = await talk.type("")
    assert text_of_result(done) == f"last\n{FINISHED}"
    assert not done.timeout


async def test_a_command_that_goes_on_printing_is_waited_for(talk: Terminal) -> None:
    patient = talk.with_timeouts(silence=0.4, reply=0.4)
    ticking = "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done"
    assert await patient.run_ok(ticking) == "1\n2\n3\n4\n5\n"


async def test_a_timeout_counts_also_while_something_is_printed(talk: Terminal) -> None:
    observation = await talk.run("while :; do echo on; sleep 0.02; done", timeout=0.3)
    assert observation.timeout
    assert output_of(observation).startswith("on\non\n")
    assert (
        "[Not done within the `timeout` of 0.3 seconds: the command still runs"
        in text_of_result(observation)
    )


async def test_a_timeout_takes_the_place_of_the_patience_with_silence(talk: Terminal) -> None:
    assert (
        await talk.with_short_timeouts().run_ok(f"sleep {2 * SHORT}; echo done", timeout=30)
        == "done\n"
    )


async def test_one_command_runs_at_a_time(talk: Terminal) -> None:
    await talk.with_short_timeouts().run("until [ -e go ]; do sleep 0.02; done")
    refused = await talk.run("touch never")
    assert refused.is_error
    assert refused.exit_code == -1
    assert "not run, because the command before it is still running" in text_of_result(refused)
    assert "`C-c`" in text_of_result(refused)
    (talk.place.workspace / "go").touch()
    await talk.type("")
    assert not (talk.place.workspace / "never").exists()


async def test_input_without_a_running_command_is_refused(talk: Terminal) -> None:
    for text in ("", "yes", "C-c"):
        refused = await talk.type(text)
        assert refused.is_error
        assert text_of_result(refused).startswith("No command is running")
    assert await talk.run_ok("echo fine") == "fine\n"


async def test_input_reaches_who_asks(talk: Terminal) -> None:
    await talk.run_until_output("read -r -p 'Name? ' name; echo \"Hello $name.\"", "Name? \n")
    assert output_of(await talk.type("Grace Hopper")) == "Hello Grace Hopper.\n"


async def test_a_program_is_talked_to_until_its_input_ends(talk: Terminal) -> None:
    await talk.with_short_timeouts().run("cat; echo over")
    answer = output_of(await talk.with_short_timeouts().type("one\ntwo"))
    while "two" not in answer:  # it is still starting
        answer += output_of(await talk.with_short_timeouts().type(""))
    assert answer == "one\ntwo\n"
    assert output_of(await talk.type("C-d")) == "over\n"


async def test_python_answers_line_by_line(talk: Terminal) -> None:
    await talk.with_short_timeouts().run("python3 -q -i")
    answer = output_of(await talk.with_short_timeouts().type("print(6 * 7)"))
    while "42" not in answer:  # it is still starting
        answer += output_of(await talk.with_short_timeouts().type(""))
    assert (await talk.type("exit(5)")).exit_code == 5


async def test_after_input_the_silence_is_short(talk: Terminal) -> None:
    quick = talk.with_timeouts(silence=LONG, reply=SHORT)
    await talk.run_until_output("echo cat; cat", "cat\n")
    answered = await quick.type("line")
    assert f"[No new output for {SHORT:g} seconds" in text_of_result(answered)


async def test_unread_input_is_discarded(
    talk: Terminal,
) -> None:
    await talk.with_short_timeouts().run("read -r one; sleep 0.2")
    await talk.type("first\ntouch never\nsecond")
    assert await talk.run_ok("read -r -t 0.1 more || echo nothing; ls") == "nothing\n"


async def test_late_input_is_reported_with_the_end_of_the_command(talk: Terminal) -> None:
    await talk.with_short_timeouts().run("until [ -e go ]; do sleep 0.02; done; echo done")
    session = await talk.session()
    (talk.place.workspace / "go").touch()
    await wait_until(lambda: not session.busy)
    late = await talk.type("hello")
    assert late.is_error
    assert text_of_result(late) == (
        f"done\n[The command had ended before, so this input was not sent.]\n{FINISHED}"
    )


async def test_an_end_between_calls_is_reported_before_the_next_command(talk: Terminal) -> None:
    await talk.run_until_output(
        "echo one; until [ -e go ]; do sleep 0.02; done; printf two; (exit 4)", "one\n"
    )
    (talk.place.workspace / "go").touch()
    session = await talk.session()
    await wait_until(lambda: not session.busy)
    assert text_of_result(await talk.run("echo three")) == (
        f"two\n[The command before ended with exit code 4]\nthree\n{FINISHED}"
    )


async def test_c_c_interrupts(talk: Terminal) -> None:
    await talk.with_short_timeouts().run("sleep 600; touch never")
    started = asyncio.get_running_loop().time()
    interrupted = await talk.run("C-c")
    assert asyncio.get_running_loop().time() - started < 5
    assert interrupted.exit_code == 128 + 2
    assert await talk.run_ok("ls") == ""


async def test_c_c_interrupts_who_never_reads_what_is_typed(talk: Terminal) -> None:
    impatient = talk.with_short_timeouts()
    await impatient.run("sleep 600")
    for _ in range(3):
        await impatient.type("\n".join(["x" * 4_000] * 10))
    assert (await talk.type("C-c")).exit_code == 128 + 2


async def test_c_c_ends_a_loop_of_the_shells_own(talk: Terminal) -> None:
    await talk.with_short_timeouts().run("while :; do :; done; touch never")
    assert (await talk.type("C-c")).exit_code == 128 + 2
    assert await talk.run_ok("ls; echo on") == "on\n"


async def test_c_z_suspends_a_job_for_another_day(talk: Terminal) -> None:
    await talk.with_short_timeouts().run("while :; do sleep 600; done")
    assert (await talk.type("C-z")).exit_code == 128 + 20
    assert "Stopped" in await talk.run_ok("jobs")
    await talk.with_short_timeouts().run("fg")
    assert (await talk.type("C-c")).exit_code == 128 + 2
    assert await talk.run_ok("jobs; echo on") == "on\n"


async def test_a_reset_ends_what_runs_and_starts_anew(talk: Terminal) -> None:
    await talk.run("cd /; word=kept")
    await talk.with_short_timeouts().run("sleep 600")
    again = await talk.run("echo [$word]; pwd", reset=True)
    assert again.exit_code == 0
    assert text_of_result(again).startswith(
        "[The shell was reset: a new one was started in the workspace"
    )
    assert f"]\n[]\n{talk.place.workspace}\n" in text_of_result(again)


async def test_a_reset_alone_is_enough(talk: Terminal) -> None:
    await talk.run("word=kept")
    alone = await talk.run("", reset=True)
    assert (alone.exit_code, alone.is_error) == (0, False)
    assert text_of_result(alone).startswith("[The shell was reset")
    assert text_of_result(await talk.run("echo [$word]")) == f"[]\n{FINISHED}"

"""A shell persists between calls until it ends."""

import asyncio
import os
import signal

import pytest

from perdure.tools.tool import Context
from tests.tools.processes import find_processes, wait_until
from tests.tools.talking import Terminal, in_conversation, output_of, talk, text_of_result

__all__ = ["talk"]

RESTARTED = "[A new shell was started in the workspace"
ENDED = "[The shell ended with it"


async def test_a_shells_state_persists_between_calls(talk: Terminal) -> None:
    await talk.run("mkdir -p 'a b' && cd 'a b'; exported=1; export exported; plain=2")
    await talk.run('declare -A table=([key]=3); greet() { echo "Hello $1"; }; set -- x y z')
    await talk.run("alias shout='echo LOUD'; shopt -s extglob; umask 027; false")
    assert await talk.run_ok("echo $?; bash -c 'echo $exported'; echo $plain ${table[key]} $#") == (
        "1\n1\n2 3 3\n"
    )
    assert await talk.run_ok("greet you; shout; shopt -q extglob && umask") == (
        "Hello you\nLOUD\n0027\n"
    )


async def test_the_working_directory_is_reported(talk: Terminal) -> None:
    workspace = str(talk.place.workspace)
    moved = await talk.run("mkdir deep && cd deep")
    assert moved.metadata.working_dir == f"{workspace}/deep"
    assert text_of_result(moved).endswith(f"\n[Current working directory: {workspace}/deep]")
    back = await talk.run("cd ..; echo $$")
    assert back.metadata.working_dir == workspace
    assert "directory" not in text_of_result(back)
    assert back.metadata.pid == int(output_of(back))


async def test_background_jobs_outlast_their_command(talk: Terminal, token: str) -> None:
    await talk.run(f"(exec -a {token} sleep 600) & job=$!")
    await wait_until(lambda: len(find_processes(token)) == 1)
    assert await talk.run_ok("kill -0 $job && jobs -r | wc -l") == "1\n"


async def test_output_of_a_background_job_comes_with_the_next_command(
    talk: Terminal,
) -> None:
    await talk.run("(until [ -e go ]; do sleep 0.02; done; echo ready; touch said) &")
    (talk.place.workspace / "go").touch()
    await wait_until((talk.place.workspace / "said").exists)
    assert await talk.run_ok("echo next") == "ready\nnext\n"


async def test_a_background_job_that_never_stops_printing_is_read_slowly(
    talk: Terminal,
) -> None:
    await talk.run("yes &")
    session = await talk.session()
    before = session.output.bytes  # while the command itself ran, everything was read at once
    await asyncio.sleep(0.5)
    assert session.output.bytes - before < 2_000_000
    assert (await talk.run("kill %1; wait")).exit_code == 0


@pytest.mark.parametrize(
    "odd",
    [
        "echo 'unbalanced",
        "if true",
        "echo $(",
        ")",
        "cat <<END\nno end",
        "break",
        "break 9",
        "continue 2",
        "return 4",
        "set -u; echo $undefined",
        "echo ${undefined:?must be set}",
        "set -x; set -v",
        "exec > /dev/null 2>&1",
        "exec < /dev/null",
        "stty sane",
        "stty raw -echo; stty -a >/dev/null",
        "IFS=x; set -f; set -o noclobber",
        "trap 'echo debug' DEBUG; trap 'echo err' ERR; trap '' INT TERM",
        "PS1='$ '; PROMPT_COMMAND='echo prompting'",
        "history; fc -l",
        "kill -INT $$",
        "printf() { :; }; read() { :; }; exit() { :; }; alias while=if",
        "mkdir gone && cd gone && rmdir ../gone",
        "# a comment only",
        "echo \x1e; printf '\\036%s' $__perdure_nonce",
        "exec 60<&-",
        "((",
        "true &",
    ],
)
async def test_nothing_that_is_odd_upsets_the_shell(talk: Terminal, odd: str) -> None:
    await talk.run("word=kept")
    observation = await talk.run(odd, timeout=20)
    assert observation.exit_code != -1
    proof = talk.place.workspace / "proof"
    again = await talk.run(f'echo "[$word]" > {proof}', timeout=20)
    assert again.exit_code == 0
    assert proof.read_text() == "[kept]\n"
    assert RESTARTED not in text_of_result(again)


async def test_many_breaks_do_not_wear_the_shell_out(talk: Terminal) -> None:
    for _ in range(100):
        await talk.run("break")
    assert await talk.run_ok("echo on") == "on\n"


async def test_a_command_of_200_kilobytes_is_run_as_it_is(talk: Terminal) -> None:
    text = "é'\"\\$x\t!`" * 20_000
    await talk.run_ok(f"cat > long <<'END'\n{text}\nEND")
    assert (talk.place.workspace / "long").read_text() == f"{text}\n"


async def test_an_exit_ends_the_shell_and_the_next_command_gets_a_new_one(
    talk: Terminal,
) -> None:
    await talk.run("cd /; word=lost")
    ended = await talk.run("exit 3")
    assert ended.exit_code == 3
    assert not ended.is_error
    assert text_of_result(ended).startswith(f"[Command finished with exit code 3]\n{ENDED}")
    again = await talk.run("echo [$word]; pwd")
    assert text_of_result(again).startswith(RESTARTED)
    assert f"]\n[]\n{talk.place.workspace}\n" in text_of_result(again)
    assert RESTARTED not in text_of_result(await talk.run("true"))


@pytest.mark.parametrize(
    ("command", "exit_code", "last"),
    [
        ("echo last; kill -KILL $$", 128 + 9, "last\n"),
        ("exec echo last", 0, "last\n"),
        ("set -e; echo last; false; echo never", 1, "last\n"),
        ("trap 'echo last' EXIT; exit 7", 7, "last\n"),
        ("exec 3>&1; kill -HUP $$; sleep 600", 128 + 1, ""),
        ("seq 100000 | tail -n 99999 >/dev/null; echo last; exit", 0, "last\n"),
    ],
)
async def test_every_end_of_a_shell_is_reported_with_its_last_output(
    talk: Terminal, command: str, exit_code: int, last: str
) -> None:
    ended = await talk.run(command)
    assert ended.exit_code == exit_code
    assert output_of(ended).startswith(last)
    assert ENDED in text_of_result(ended)
    assert text_of_result(await talk.run("echo again")).startswith(RESTARTED)


async def test_a_shell_that_is_killed_between_two_calls_is_replaced(talk: Terminal) -> None:
    pid = (await talk.run("true")).metadata.pid
    os.kill(pid, signal.SIGKILL)
    session = await talk.session()
    await wait_until(lambda: session.closed)
    again = await talk.run("echo again")
    assert text_of_result(again).startswith(RESTARTED)
    assert again.metadata.pid != pid


async def test_a_command_that_comes_when_the_shell_has_just_ended_is_not_said_to_have_run(
    talk: Terminal, token: str
) -> None:
    pid = (await talk.run(f"(exec -a {token} sleep 600) &")).metadata.pid
    os.kill(pid, signal.SIGKILL)  # its background gets a moment longer
    late = await talk.run("touch never")
    assert text_of_result(late).startswith("[This was not run: the shell had just ended.")
    assert (late.exit_code, late.is_error) == (-1, True)
    assert not (talk.place.workspace / "never").exists()


async def test_background_processes_end_with_the_shell(talk: Terminal, token: str) -> None:
    stays = f"setsid bash -c 'exec -a {token} sleep 600' &"
    await talk.run(f"{stays} {stays} echo started")
    ended = await talk.run("exit")
    assert not find_processes(token)
    assert "[Ended with the shell: 2 processes in the background]" in text_of_result(ended)


async def test_an_unobserved_end_of_the_shell_is_reported_to_the_next_call(talk: Terminal) -> None:
    await talk.run_until_output(
        "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 5", "one\n"
    )
    session = await talk.session()
    (talk.place.workspace / "go").touch()
    await wait_until(lambda: session.closed)
    observation = await talk.type("")
    assert observation.exit_code == 5
    assert text_of_result(observation).startswith(
        f"two\n[Command finished with exit code 5]\n{ENDED}"
    )
    assert text_of_result(await talk.type("")).startswith(RESTARTED)


async def test_conversations_do_not_mix(talk: Terminal, token: str) -> None:
    def context(number: int) -> Context:
        return in_conversation(talk.place.context, f"{token}-{number}")

    async def converse(number: int) -> None:
        await talk.run(
            f"mkdir -p d{number} && cd d{number}; mine={number}", context=context(number)
        )
        for _ in range(5):
            said_again = await talk.run_ok("echo $mine; basename $PWD", context=context(number))
            assert said_again == f"{number}\nd{number}\n"

    await asyncio.gather(*map(converse, range(6)))


async def test_calls_of_one_conversation_take_turns(talk: Terminal) -> None:
    await asyncio.gather(*(talk.run(f"echo {n} >> all; sleep 0.01") for n in range(5)))
    lines = (await talk.run_ok("cat all")).split()
    assert sorted(lines) == [str(n) for n in range(5)]

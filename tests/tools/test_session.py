"""A shell lasts from call to call, whatever is done in it, until it ends."""

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from tests.tools.processes import alive, until
from tests.tools.talking import Talk, printed, said, talk
from tools.tool import Context

__all__ = ["talk"]

RESTARTED = "[A new shell was started in the workspace"
ENDED = "[The shell ended with it"


async def test_what_a_shell_keeps_is_kept_from_call_to_call(talk: Talk) -> None:
    await talk.say("mkdir -p 'a b' && cd 'a b'; exported=1; export exported; plain=2")
    await talk.say('declare -A table=([key]=3); greet() { echo "Hello $1"; }; set -- x y z')
    await talk.say("alias shout='echo LOUD'; shopt -s extglob; umask 027; false")
    assert await talk.prints("echo $?; bash -c 'echo $exported'; echo $plain ${table[key]} $#") == (
        "1\n1\n2 3 3\n"
    )
    assert await talk.prints("greet you; shout; shopt -q extglob && umask") == (
        "Hello you\nLOUD\n0027\n"
    )


async def test_the_working_directory_is_told_as_it_is(talk: Talk) -> None:
    workspace = str(talk.place.workspace)
    moved = await talk.say("mkdir deep && cd deep")
    assert moved.metadata.working_dir == f"{workspace}/deep"
    assert said(moved).endswith(f"\n[Current working directory: {workspace}/deep]")
    back = await talk.say("cd ..; echo $$")
    assert back.metadata.working_dir == workspace
    assert "directory" not in said(back)
    assert back.metadata.pid == int(printed(back))


async def test_background_jobs_outlast_their_command(talk: Talk, token: str) -> None:
    await talk.say(f"(exec -a {token} sleep 600) & job=$!")
    await until(lambda: len(alive(token)) == 1)
    assert await talk.prints("kill -0 $job && jobs -r | wc -l") == "1\n"


async def test_what_a_background_job_prints_comes_with_the_next_command(talk: Talk) -> None:
    await talk.say("(until [ -e go ]; do sleep 0.02; done; echo ready; touch said) &")
    (talk.place.workspace / "go").touch()
    await until((talk.place.workspace / "said").exists)
    assert await talk.prints("echo next") == "ready\nnext\n"


async def test_a_background_job_that_never_stops_printing_is_read_slowly(talk: Talk) -> None:
    await talk.say("yes &")
    session = await talk.session()
    await asyncio.sleep(0.5)
    assert session.output.bytes < 2_000_000
    assert (await talk.say("kill %1; wait")).exit_code == 0


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
async def test_nothing_that_is_odd_upsets_the_shell(talk: Talk, odd: str) -> None:
    await talk.say("word=kept")
    observation = await talk.say(odd, timeout=20)
    assert observation.exit_code != -1
    proof = talk.place.workspace / "proof"
    again = await talk.say(f'echo "[$word]" > {proof}', timeout=20)
    assert again.exit_code == 0
    assert proof.read_text() == "[kept]\n"
    assert RESTARTED not in said(again)


async def test_many_breaks_do_not_wear_the_shell_out(talk: Talk) -> None:
    for _ in range(100):
        await talk.say("break")
    assert await talk.prints("echo on") == "on\n"


async def test_a_command_of_200_kilobytes_is_run_as_it_is(talk: Talk) -> None:
    text = "é'\"\\$x\t!`" * 20_000
    await talk.prints(f"cat > long <<'END'\n{text}\nEND")
    assert (talk.place.workspace / "long").read_text() == f"{text}\n"


async def test_an_exit_ends_the_shell_and_the_next_command_gets_a_new_one(talk: Talk) -> None:
    await talk.say("cd /; word=lost")
    ended = await talk.say("exit 3")
    assert ended.exit_code == 3
    assert not ended.is_error
    assert said(ended).startswith(f"[Command finished with exit code 3]\n{ENDED}")
    again = await talk.say("echo [$word]; pwd")
    assert said(again).startswith(RESTARTED)
    assert f"]\n[]\n{talk.place.workspace}\n" in said(again)
    assert RESTARTED not in said(await talk.say("true"))


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
async def test_however_a_shell_ends_its_end_and_its_last_words_are_told(
    talk: Talk, command: str, exit_code: int, last: str
) -> None:
    ended = await talk.say(command)
    assert ended.exit_code == exit_code
    assert printed(ended).startswith(last)
    assert ENDED in said(ended)
    assert said(await talk.say("echo again")).startswith(RESTARTED)


async def test_a_shell_that_is_killed_between_two_calls_is_replaced(talk: Talk) -> None:
    pid = (await talk.say("true")).metadata.pid
    os.kill(pid, signal.SIGKILL)
    session = await talk.session()
    await until(lambda: session.over)
    again = await talk.say("echo again")
    assert said(again).startswith(RESTARTED)
    assert again.metadata.pid != pid


async def test_a_command_that_comes_when_the_shell_has_just_ended_is_not_said_to_have_run(
    talk: Talk, token: str
) -> None:
    pid = (await talk.say(f"(exec -a {token} sleep 600) &")).metadata.pid
    os.kill(pid, signal.SIGKILL)  # its background gets a moment longer
    late = await talk.say("touch never")
    assert said(late).startswith("[This was not run: the shell had just ended.")
    assert (late.exit_code, late.is_error) == (-1, True)
    assert not (talk.place.workspace / "never").exists()


async def test_what_was_left_in_the_background_ends_with_the_shell(talk: Talk, token: str) -> None:
    stays = f"setsid bash -c 'exec -a {token} sleep 600' &"
    await talk.say(f"{stays} {stays} echo started")
    ended = await talk.say("exit")
    assert not alive(token)
    assert "[Ended with the shell: 2 processes in the background]" in said(ended)


async def test_an_end_while_nobody_waits_is_told_to_who_asks(talk: Talk) -> None:
    await talk.hears("echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 5", "one\n")
    session = await talk.session()
    (talk.place.workspace / "go").touch()
    await until(lambda: session.over)
    asked = await talk.type("")
    assert asked.exit_code == 5
    assert said(asked).startswith(f"two\n[Command finished with exit code 5]\n{ENDED}")
    assert said(await talk.type("")).startswith(RESTARTED)


async def test_conversations_do_not_mix(talk: Talk, token: str) -> None:
    def context(number: int) -> Context:
        return replace(talk.place.context, conversation_id=f"{token}-{number}")

    async def converse(number: int) -> None:
        await talk.say(
            f"mkdir -p d{number} && cd d{number}; mine={number}", context=context(number)
        )
        for _ in range(5):
            said_again = await talk.prints("echo $mine; basename $PWD", context=context(number))
            assert said_again == f"{number}\nd{number}\n"

    await asyncio.gather(*map(converse, range(6)))


async def test_calls_of_one_conversation_take_turns(talk: Talk) -> None:
    await asyncio.gather(*(talk.say(f"echo {n} >> all; sleep 0.01") for n in range(5)))
    lines = (await talk.prints("cat all")).split()
    assert sorted(lines) == [str(n) for n in range(5)]

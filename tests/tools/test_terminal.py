"""Commands run in the workspace; the model reads what they said and how they ended."""

import asyncio
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from events.actions import TerminalAction
from events.content import text_of
from events.observations import TerminalObservation
from tests.tools.conftest import Place
from tests.tools.processes import until
from tools.output import KEPT, SHOWN
from tools.terminal import PASSED_ON, TERMINAL, parse


async def run(place: Place, command: str, timeout: float | None = 60) -> TerminalObservation:
    observation = await TERMINAL.run(
        TerminalAction(command=command, timeout=timeout), place.context
    )
    assert isinstance(observation, TerminalObservation)
    return observation


def said(observation: TerminalObservation) -> str:
    return text_of(observation.content)


async def test_a_command_runs_in_the_workspace(place: Place) -> None:
    observation = await run(place, "pwd; echo $PWD; touch made")
    assert said(observation).splitlines() == [
        str(place.workspace),
        str(place.workspace),
        "[Command finished with exit code 0]",
    ]
    assert (place.workspace / "made").exists()
    assert observation.metadata.working_dir == str(place.workspace)
    assert observation.command == "pwd; echo $PWD; touch made"
    assert observation.full_output_save_dir is None


async def test_an_exit_code_is_a_result_and_no_error(place: Place) -> None:
    observation = await run(place, "exit 3")
    assert (observation.exit_code, observation.metadata.exit_code) == (3, 3)
    assert not observation.is_error
    assert not observation.timeout
    assert said(observation) == "[Command finished with exit code 3]"


async def test_a_shell_that_died_of_a_signal_has_128_and_its_number(place: Place) -> None:
    assert (await run(place, "kill -TERM $$")).exit_code == 128 + 15


async def test_output_and_errors_come_in_the_order_they_were_written(place: Place) -> None:
    observation = await run(place, "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
    assert said(observation).split()[:4] == ["1", "2", "3", "4"]


async def test_nobody_answers_questions(place: Place) -> None:
    observation = await run(place, "cat; read -r line || echo nothing; tty; : < /dev/tty")
    assert said(observation).startswith("nothing\nnot a tty\n")
    assert "No such device" in said(observation)


async def test_a_pipeline_dies_of_a_closed_pipe_as_in_any_shell(place: Place) -> None:
    observation = await run(place, "yes | head -1; echo ${PIPESTATUS[0]}")
    assert said(observation).split()[:2] == ["y", "141"]


async def test_bytes_that_are_no_text_are_replaced(place: Place) -> None:
    observation = await run(place, r"printf 'a\xff\xfeb\x00c\xe2\x82'")
    assert said(observation).startswith("a��b\0c�\n[Command")


async def test_text_is_read_whole_wherever_the_pipe_cuts_it(place: Place) -> None:
    observation = await run(place, "for i in $(seq 40000); do printf 'é€😀'; done")
    assert "�" not in said(observation)
    body = await place.kept(observation.full_output_save_dir)
    assert body.decode() == "é€😀" * 40_000


async def test_of_a_long_output_the_middle_is_left_out_and_the_whole_is_kept(place: Place) -> None:
    observation = await run(place, "seq 100000")
    whole = "".join(f"{n}\n" for n in range(1, 100_001))
    key = observation.full_output_save_dir
    head = said(observation).partition("\n[... ")[0]
    note, tail = _parts(said(observation))
    assert head == whole[: SHOWN // 2]
    assert note == (
        f"[... {len(whole) - SHOWN:,} characters are left out here; the whole output is kept as "
        f"{key} ...]"
    )
    assert tail == whole[-SHOWN // 2 :].rstrip() + "\n[Command finished with exit code 0]"
    assert await place.kept(key) == whole.encode()


def _parts(text: str) -> tuple[str, str]:
    start = text.index("[... ")
    end = text.index(" ...]") + len(" ...]")
    return text[start:end], text[end + 1 :]


async def test_two_hundred_megabytes_pass_through_a_bounded_memory(place: Place) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest point so far
    before = _memory("VmRSS")
    observation = await run(place, "head -c 200000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert _memory("VmHWM") - before < 3 * KEPT
    assert said(observation).startswith("xxx")
    assert said(observation).endswith("x\nend\n[Command finished with exit code 0]")
    assert "its first 32 MiB is kept as blobs/" in said(observation)
    assert await place.kept(observation.full_output_save_dir) == b"x" * KEPT


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


async def test_the_newest_output_is_told_while_the_command_runs(place: Place) -> None:
    running = "echo one; until [ -e go ]; do sleep 0.02; done; echo two"
    task = asyncio.create_task(run(place, running))
    await until(lambda: place.progress == ["one\n"])
    (place.workspace / "go").touch()
    await task
    assert place.progress[-1] == "one\ntwo\n"


async def test_a_fast_writer_is_told_of_seldom_and_briefly(place: Place) -> None:
    await run(place, "seq 1000000")
    assert len(place.progress) < 1000
    assert max(map(len, place.progress)) <= 4_000
    assert place.progress[-1].endswith("\n999999\n1000000\n")


@pytest.fixture
def secrets() -> Iterator[dict[str, str]]:
    names = ("AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "DATABASE_URL", "PYTHONPATH", "LC_PERDURE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "value-of-the-worker"))
    yield dict.fromkeys(names, "")
    for name, value in before.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value


@pytest.mark.usefixtures("secrets")
async def test_a_command_gets_none_of_the_workers_secrets(place: Place) -> None:
    lines = said(await run(place, "env -0 | tr '\\n\\0' ' \\n'")).splitlines()[:-1]
    found = dict(line.split("=", 1) for line in lines)
    assert found.pop("LC_PERDURE") == "value-of-the-worker"
    assert "value-of-the-worker" not in found.values()
    shells_own = {"PWD", "SHLVL", "_", "PERDURE_COMMAND"}
    assert {name for name in found if not name.startswith("LC_")} <= {*PASSED_ON, *shells_own}
    assert found["PATH"] == os.environ["PATH"]


async def test_a_command_may_be_as_long_as_the_system_takes(place: Place) -> None:
    command = "echo ok; #" + "x" * (128 * 1024 - 1 - 10)
    assert parse({"command": command}).command == command
    assert said(await run(place, command)).startswith("ok\n")


async def test_limits_of_the_worker_are_those_of_its_commands(place: Place) -> None:
    observation = await run(place, "ulimit -n")
    assert said(observation).split()[0] == str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


async def test_a_workspace_that_is_not_there_is_an_error(place: Place) -> None:
    place.workspace.rmdir()
    with pytest.raises(FileNotFoundError, match="workspace"):
        await run(place, "true")


def test_the_model_is_offered_a_command_and_a_timeout_only() -> None:
    parameters = TERMINAL.definition.parameters
    assert list(parameters["properties"]) == ["command", "timeout"]
    assert parameters["required"] == ["command"]
    assert parameters["additionalProperties"] is False


def test_arguments_become_an_action() -> None:
    assert parse({"command": "ls"}) == TerminalAction(command="ls")
    assert parse({"command": "ls", "timeout": "3"}) == TerminalAction(command="ls", timeout=3)
    assert parse({"command": "ls", "is_input": False, "reset": False, "timeout": None}) == (
        TerminalAction(command="ls")
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "`command` is missing."),
        ({"command": "  \n"}, "`command` is empty: give the shell command to run."),
        ({"command": "a\0b"}, "`command` holds a NUL character: write it as '\\0' for printf."),
        (
            {"command": "é" * 70_000},
            "`command` is 140,000 bytes long, and at most 131,071 can be run: write the data to a "
            "file first.",
        ),
        (
            {"command": "C-c", "is_input": True},
            "`is_input` is not available: every call is a new shell with nothing to go on with. "
            "Give everything in one `command`.",
        ),
        (
            {"command": "", "reset": True},
            "`reset` is not available: every call is a new shell with nothing to go on with. "
            "Give everything in one `command`.",
        ),
        (
            {"command": "ls", "timeout": 0},
            "`timeout`: input should be greater than 0, got 0.",
        ),
        (
            {"command": "ls", "timeout": "soon"},
            "`timeout`: input should be a valid number, unable to parse string as a number, got "
            "'soon'.",
        ),
        (
            {"command": "ls", "timeout": "inf"},
            "`timeout`: input should be a finite number, got 'inf'.",
        ),
        (
            {"command": ["ls"], "cwd": "/"},
            "`command`: input should be a valid string, got ['ls']; `cwd` is unknown here, use "
            "only `command`, `timeout`.",
        ),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(
    arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        parse(arguments)
    assert str(raised.value) == sentence


def test_the_annotations_say_the_worst() -> None:
    annotations = TERMINAL.definition.annotations
    assert annotations.destructiveHint
    assert annotations.openWorldHint
    assert not annotations.repeatable

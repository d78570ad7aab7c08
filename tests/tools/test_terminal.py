"""Commands run in the workspace; the model gets their output and exit code."""

import os
import resource
from collections.abc import Iterator

import pytest

from perdure.tools.output import MAX_STORED_BYTES
from perdure.tools.shell.waiting import SilenceTimeouts
from perdure.tools.terminal import INHERITED_VARIABLES, PAGERS, TERMINAL
from tests.memory_use import check_memory_growth
from tests.tools.processes import list_descriptors, wait_until
from tests.tools.talking import Terminal, talk, text_of_result

__all__ = ["talk"]

FINISHED = "[Command finished with exit code 0]"


async def test_a_command_runs_in_the_workspace(talk: Terminal) -> None:
    observation = await talk.run("pwd; echo $PWD; touch made")
    workspace = talk.place.workspace
    assert text_of_result(observation).splitlines() == [str(workspace), str(workspace), FINISHED]
    assert (workspace / "made").exists()
    assert observation.metadata.working_dir == str(workspace)
    assert observation.command == "pwd; echo $PWD; touch made"
    assert (observation.exit_code, observation.metadata.exit_code) == (0, 0)
    assert not observation.timeout
    assert observation.full_output_save_dir is None


async def test_an_exit_code_is_a_result_and_no_error(talk: Terminal) -> None:
    observation = await talk.run("(exit 3)")
    assert (observation.exit_code, observation.metadata.exit_code) == (3, 3)
    assert not observation.is_error
    assert text_of_result(observation) == "[Command finished with exit code 3]"


async def test_output_and_errors_come_in_the_order_they_were_written(talk: Terminal) -> None:
    assert await talk.run_ok("echo 1; echo 2 >&2; echo 3; echo 4 >&2") == "1\n2\n3\n4\n"


async def test_a_pipeline_dies_of_a_closed_pipe_as_in_any_shell(talk: Terminal) -> None:
    assert await talk.run_ok("yes | head -1; echo ${PIPESTATUS[0]}") == "y\n141\n"


@pytest.mark.parametrize(
    ("command", "prints"),
    [
        (r"printf 'a\xff\xfeb\x00c\xe2\x82\n'", "a��b\0c�\n"),
        (r"printf 'a\r\nb\r\n'", "a\r\nb\r\n"),
        (r"printf 'a\tb\bc\033[1m\n\n\n'", "a\tb\bc\033[1m\n\n\n"),
        ("echo 'grün €😀'; cat <<'END'\n  $x `y`\nEND", "grün €😀\n  $x `y`\n"),
        ("printf 'no newline'", "no newline\n"),
        ("true", ""),
    ],
)
async def test_output_is_what_was_written(talk: Terminal, command: str, prints: str) -> None:
    assert text_of_result(await talk.run(command)) == prints + FINISHED


async def test_text_is_read_whole_wherever_the_reads_cut_it(talk: Terminal) -> None:
    observation = await talk.run("for i in $(seq 40000); do printf 'é€😀'; done")
    assert "�" not in text_of_result(observation)
    body = await talk.place.stored(observation.full_output_save_dir)
    assert body.decode() == "é€😀" * 40_000


async def test_a_long_output_is_cut_in_the_middle_and_stored_whole(
    talk: Terminal,
) -> None:
    observation = await talk.run("seq 600000")
    whole = "".join(f"{n}\n" for n in range(1, 600_001))
    assert len(whole) > 4_000_000
    key = observation.full_output_save_dir
    head, note, tail = _parts(text_of_result(observation))
    assert head == whole[:15_000]
    assert note == f"4,058,895 characters are left out here; the whole output is kept as {key}"
    assert tail == whole[-15_000:] + FINISHED
    assert await talk.place.stored(key) == whole.encode()


def _parts(text: str) -> tuple[str, str, str]:
    head, _, rest = text.partition("\n[... ")
    note, _, tail = rest.partition(" ...]\n")
    return head, note, tail


@pytest.mark.long
async def test_fifty_megabytes_pass_through_a_bounded_memory(talk: Terminal) -> None:
    await talk.run("true")
    with check_memory_growth(3 * MAX_STORED_BYTES):
        observation = await talk.run("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert text_of_result(observation).startswith("xxx")
    assert text_of_result(observation).endswith(f"x\nend\n{FINISHED}")
    assert "its first 32 MiB is kept as blobs/" in text_of_result(observation)
    assert await talk.place.stored(observation.full_output_save_dir) == b"x" * MAX_STORED_BYTES


async def test_the_newest_output_is_reported_while_the_command_runs(talk: Terminal) -> None:
    task = talk.start("echo one; until [ -e go ]; do sleep 0.02; done; echo two")
    await wait_until(lambda: talk.place.progress == ["one\n"])
    (talk.place.workspace / "go").touch()
    await task
    assert talk.place.progress[-1] == "one\ntwo\n"


async def test_progress_of_a_fast_writer_is_rare_and_short(talk: Terminal) -> None:
    await talk.run("seq 1000000")
    assert len(talk.place.progress) < 1000
    assert max(map(len, talk.place.progress)) <= 4_000
    assert talk.place.progress[-1].endswith("\n999999\n1000000\n")


@pytest.fixture
def secrets() -> Iterator[None]:
    names = ("AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "DATABASE_URL", "PYTHONPATH")
    values = dict.fromkeys(names, "value-of-the-worker") | {"LC_PERDURE": "passed-on"}
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    yield
    for name, value in before.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value


@pytest.mark.usefixtures("secrets")
async def test_a_command_gets_none_of_the_workers_secrets(talk: Terminal) -> None:
    lines = (await talk.run_ok("env -0 | tr '\\n\\0' ' \\n'")).splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    assert variables.pop("LC_PERDURE") == "passed-on"
    assert not [
        item for item in variables.values() if "value-of-the-worker" in item or "<secret:" in item
    ]
    shells_own = {"PWD", "SHLVL", "_", "PERDURE_SESSION", *PAGERS}
    assert {name for name in variables if not name.startswith("LC_")} <= {
        *INHERITED_VARIABLES,
        *shells_own,
    }
    assert variables["PATH"] == os.environ["PATH"]


async def test_programs_find_a_terminal_that_can_do_little(talk: Terminal) -> None:
    prints = await talk.run_ok("echo $TERM $PAGER $GIT_PAGER; test -t 0 && test -t 1 && stty size")
    assert prints == "dumb cat cat\n50 200\n"


async def test_limits_of_the_worker_are_those_of_its_commands(talk: Terminal) -> None:
    assert await talk.run_ok("ulimit -n") == f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]}\n"


async def test_a_workspace_that_is_not_there_is_an_error(talk: Terminal) -> None:
    talk.place.workspace.rmdir()
    before = list_descriptors()
    with pytest.raises(FileNotFoundError, match="workspace"):
        await talk.run("true")
    assert not list_descriptors() - before
    talk.place.workspace.mkdir()
    assert await talk.run_ok("echo there") == "there\n"


def test_the_description_states_the_silence_timeout() -> None:
    assert f"{SilenceTimeouts().silence:.0f} seconds" in TERMINAL.definition.description


def test_the_annotations_say_the_worst() -> None:
    annotations = TERMINAL.definition.annotations
    assert annotations.destructiveHint
    assert annotations.openWorldHint
    assert not annotations.repeatable
    assert TERMINAL.resources(TERMINAL.parse({"command": "ls"})) is None

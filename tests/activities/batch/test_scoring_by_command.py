"""A command that decides what an attempt is worth."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.activities.batch.scoring import ANSWER, Scene, command, scene
from tests.sandbox.running import set_up_sandbox
from tests.tools.processes import find_processes, wait_until

__all__ = ["scene"]


async def test_a_command_gets_its_sample_and_answer(scene: Scene) -> None:
    answer = 'It\'s "42" $HOME `x`\n--end\n'
    (scene.folder / "said").write_text(answer)
    line = (
        '[ "$SAMPLE_ID $SAMPLE_TARGET" = "one 42" ] && cmp said "$PERDURE_ANSWER" && '
        'case "$PERDURE_ANSWER" in "$PWD"/*) false;; esac'
    )
    judgement = await scene.score(command(line), answer=answer)
    assert judgement.scores["command"].value is True, judgement
    assert [path.name for path in scene.folder.iterdir()] == ["said"]


@pytest.mark.parametrize("name", ["bubblewrap", "uid"])
async def test_a_sandboxed_command_reads_the_answer_and_the_files(
    open_path: Path, name: str
) -> None:
    scene, tried = Scene(open_path), set_up_sandbox(name)
    if tried.sandbox is None:
        pytest.skip(tried.why)
    (scene.folder / "said").write_text(ANSWER)
    scene.sandbox = tried.sandbox
    scene.sandbox.prepare(scene.folder)
    line = 'cmp said "$PERDURE_ANSWER" && [ "$SAMPLE_TARGET" = 42 ] && [ "$(id -u)" != 0 ]'
    judgement = await scene.score(command(line))
    assert judgement.scores["command"].value is True, judgement


async def test_the_last_line_of_a_command_may_be_the_score(scene: Scene) -> None:
    line = """echo working; seq 20000; echo '{"value": {"a": 1, "b": 0.5}}'; exit 1"""
    score = (await scene.score(command(line, reads="score"))).scores["command"]
    assert score.numbers == {"a": 1.0, "b": 0.5}


async def test_a_command_that_fails_is_wrong(scene: Scene) -> None:
    score = (await scene.score(command("echo because >&2; exit 3"))).scores["command"]
    assert (score.value, score.explanation) == (False, "because")
    assert score.metadata == {"exit_code": 3}


@pytest.mark.parametrize(
    ("line", "fields", "why"),
    [
        ("kill -9 $$", {}, "was ended by signal 9"),
        ("(kill -9 $$)", {}, "was ended by signal 9"),
        ("no-such-program", {}, "is not there"),
        ("/etc/passwd", {}, "cannot be executed"),
        ("kill -9 $PPID; sleep 60", {}, "was ended by signal 9"),
        ("echo right", {"reads": "score"}, "is no JSON"),
    ],
)
async def test_a_command_that_did_not_run_is_no_zero(
    scene: Scene, line: str, fields: dict[str, Any], why: str
) -> None:
    detail = await scene.failure_detail(command(line, **fields))
    assert detail.startswith("scorer unscorable command: ")
    assert why in detail


async def test_a_command_without_a_workspace_is_no_zero(scene: Scene) -> None:
    scene.looking = False
    assert "the workspace is not here any more" in await scene.failure_detail(command("true"))


@pytest.mark.parametrize("target", ["x" * 140_000, "a\0b"])
async def test_a_target_that_no_variable_holds_is_no_zero(scene: Scene, target: str) -> None:
    scene.target = target
    assert "SAMPLE_TARGET" in await scene.failure_detail(command("true"))


async def test_a_long_target_and_answer_reach_the_command(scene: Scene) -> None:
    scene.target = "x" * 130_000
    line = '[ ${#SAMPLE_TARGET} = 130000 ] && [ "$(wc -c <"$PERDURE_ANSWER")" = 200000 ]'
    judgement = await scene.score(command(line), answer="y" * 200_000)
    assert judgement.scores["command"].value is True, judgement


@pytest.mark.long
async def test_a_timeout_ends_a_command_and_its_children(scene: Scene) -> None:
    token = f"token{uuid.uuid4().hex}"
    line = f"setsid bash -c 'exec -a {token} sleep 600' & exec -a {token} sleep 600"
    assert "took over 2 seconds" in await scene.failure_detail(command(line, timeout=2))
    assert not find_processes(token)


async def test_cancellation_ends_a_command_and_its_children(scene: Scene) -> None:
    token = f"token{uuid.uuid4().hex}"
    task = asyncio.create_task(scene.score(command(f"exec -a {token} sleep 600")))
    await wait_until(lambda: find_processes(token))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not find_processes(token)

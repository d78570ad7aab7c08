"""`perdure batch`: from a file to the scores, and everything that can be wrong on the way."""

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cli.batch_given import given
from cli.commands.batch import COMMANDS
from cli.commands.batch_run import mode_of
from cli.main import outcome
from tests.cli.command import Ended, Perdure, interrupted, line_with

Script = Callable[..., str]

ROWS = [{"id": one, "input": f"What is {one}?", "target": one} for one in ("a", "b", "c")]

WRITTEN = """
name = "{name}"
dataset = "tasks.jsonl"
model = "scripted:answers.json"
scorers = ["includes"]

[agent]
tools = ["finish"]
"""


def written(folder: Path, rows: list[dict[str, Any]] = ROWS, more: str = "") -> tuple[str, str]:
    """The path of a batch's file, and the batch's name."""
    name = f"sums-{uuid4()}"
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "batch.toml").write_text(more + WRITTEN.format(name=name))
    return str(folder / "batch.toml"), name


def answers(folder: Path, *contents: str) -> None:
    given = [{"content": one} for one in contents]
    (folder / "answers.json").write_text(json.dumps({"answers": given}))


def refused(done: Ended, exit_code: int, code: str, *said: str) -> None:
    assert (done.code, done.error["code"]) == (exit_code, code), done
    told = f"{done.error['message']} {done.error['hint']}"
    assert all(one in told for one in said), told


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_of_itself_what_the_list_says(name: str) -> None:
    app = importlib.import_module(f"cli.commands.batch_{name}").app
    [told] = app.registered_commands
    assert told.callback.__doc__.partition("\n")[0] == COMMANDS[name]


def test_a_mode_is_one_of_three() -> None:
    assert [mode_of(*one) for one in ((False, False), (True, False), (False, True))] == [
        "missing",
        "failed",
        "rescore",
    ]


async def test_a_batch_is_run_to_its_scores_and_comes_back_without_running_again(
    perdure: Perdure, tmp_path: Path
) -> None:
    file, name = written(tmp_path)
    answers(tmp_path, "a and b")
    done = await perdure("batch", "run", file)
    assert done.code == 0, done
    assert "score     includes  0.667 ± 0.333  of 3" in done.out
    assert done.out.splitlines()[-1] == "All 3 have a score."
    assert f"s3://cli-tests/users/local/batches/{name}/results/" in done.err
    (tmp_path / "answers.json").unlink()
    again, stands, every = await asyncio.gather(
        perdure("batch", "run", file, "-ojson"),
        perdure("batch", "status", name, "--format", "json"),
        perdure("batch", "status"),
    )
    assert (again.code, again.json["done"], again.json["attempts"]) == (0, 3, 3)
    assert (stands.code, stands.json["scores"]) == (0, again.json["scores"])
    assert f"{name}: 3 of 3 done; includes 0.667 ± 0.333; " in every.out


@pytest.mark.long
async def test_what_failed_is_told_by_the_exit_code_and_run_again_by_its_name(
    perdure: Perdure, tmp_path: Path
) -> None:
    file, name = written(tmp_path)
    failed = await perdure("batch", "run", file, "--limit", "2")
    assert failed.code == 1
    assert "failures  configuration 2" in failed.out
    retry = f"2 failed: `perdure batch retry {name}` runs what is left."
    assert failed.out.splitlines()[-1] == retry
    answers(tmp_path, "a and b")
    retried = await perdure("batch", "retry", name, "-ojsonl")
    assert (retried.code, retried.lines[-1]["result"]["done"]) == (0, 2)
    whole = await perdure("batch", "run", file, "-ojson")
    assert (whole.code, whole.json["done"], whole.json["attempts"]) == (0, 3, 5)


@pytest.mark.long
async def test_a_batch_that_is_left_goes_on_and_can_be_steered(
    configured: Perdure, tmp_path: Path
) -> None:
    """No worker runs on this queue: nothing comes to its end."""
    alone = configured.where(PERDURE_TASK_QUEUE=f"cli-{uuid4()}")
    file, name = written(tmp_path)
    detached = await alone("batch", "run", file, "--detach")
    assert (detached.code, detached.out) == (0, f"{name}\n")
    async with alone.started("batch", "run", file) as process:
        await line_with(process.stderr, "it runs already")
        await line_with(process.stderr, "No worker has taken it up")
        ended = await interrupted(process)
    assert ended.code == 130
    assert f"`perdure batch status {name}`" in ended.err
    assert f"`perdure batch pause {name}`" in ended.err
    other, paused, rescored = await asyncio.gather(
        alone("batch", "run", file, "--concurrency", "3", "-ojson"),
        alone("batch", "pause", name, "-ojson"),
        alone("batch", "rescore", name, "--detach", "-ojson"),
    )
    refused(other, 4, "conflict", "another concurrency", f"perdure batch retune {name}")
    assert (paused.code, paused.json) == (0, {"batch": name})
    refused(rescored, 4, "conflict", "scoring again is not what it does")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", "key.toml"), "there is no key 'epoch'"),
        (("run", "batch.toml", "--epochs", "2", "--name", "no name"), "name: string should match"),
        (("run", "no.toml"), "no.toml cannot be read"),
        (("run", "tasks.jsonl"), "'tasks.jsonl' is no batch: name a .toml or .py file"),
        (("run", "no_such_module:batch"), "'no_such_module:batch' cannot be imported"),
        (("run", "batch.toml", "--rescore", "--retry-failed"), "--rescore runs nothing"),
        (("rescore", "other", "batch.toml"), "batch.toml is no batch other: it is sums-"),
        (("retune", "sums"), "Give one of --concurrency, --cost, --tokens and --time"),
        (("retune", "sums", "--cost", "nan"), "cost: input should be a finite number"),
    ],
)
def test_what_the_command_line_and_its_file_tell_is_refused_at_once(
    args: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    written(tmp_path)
    (tmp_path / "key.toml").write_text(f"epoch = 3\n{(tmp_path / 'batch.toml').read_text()}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    assert outcome(["batch", *args, "-o", "json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert said in f"{error['message']} {error['hint']}"


@pytest.mark.long
async def test_what_is_not_there_is_not_found(configured: Perdure, tmp_path: Path) -> None:
    file, name = written(tmp_path, [*ROWS, {"id": "d", "inptu": "?"}])
    refused(
        await configured("batch", "run", file, "-ojson"),
        2,
        "invalid",
        f"{tmp_path}/tasks.jsonl:4: there is no column 'input'",
    )
    refused(
        await configured("batch", "retry", name, "-ojson"),
        3,
        "not_found",
        f"There is no batch '{name}'",
    )


def test_what_the_command_line_changes_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    file, name = written(tmp_path)
    [batch] = given(file, {}).batches
    assert batch.agent.model.name == f"scripted:{tmp_path}/answers.json"
    assert os.environ["PYTHONPATH"] == f"{tmp_path}{os.pathsep}/somewhere"
    changes = {"models": ["openai/a", "openai/b"], "limit": 2, "ids": ["1"], "concurrency": 7}
    asked = given(file, changes)
    assert [one.name for one in asked.batches] == [f"{name}-openai-a", f"{name}-openai-b"]
    assert [one.agent.model.name for one in asked.batches] == ["openai/a", "openai/b"]
    assert {(one.limit, one.ids, one.concurrency) for one in asked.batches} == {(2, ("1",), 7)}
    assert asked.options == {"file": file}

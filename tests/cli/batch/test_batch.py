"""`perdure batch`: from a file to the scores, and its errors."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from perdure.cli.batch.start import load_batches, parse_pairs, resolve_source
from perdure.cli.declarations.batches import Run
from perdure.cli.main import run_command_line
from perdure.errors import Invalid
from tests.cli.command import CompletedCommand, Perdure, interrupt, wait_for_line
from tests.cli.terminal import open_terminal

Script = Callable[..., str]

ROWS = [{"id": text, "input": f"What is {text}?", "target": text} for text in ("a", "b", "c")]

BATCH_TOML = """
name = "{name}"
dataset = "tasks.jsonl"
model = "scripted:answers.json"
scorers = ["includes"]

[agent]
tools = ["finish"]
"""


def write_batch_file(
    folder: Path, rows: list[dict[str, Any]] = ROWS, more: str = ""
) -> tuple[str, str]:
    """Write a batch's file; return its path and the batch's name."""
    name = f"sums-{uuid4()}"
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "batch.toml").write_text(more + BATCH_TOML.format(name=name))
    return str(folder / "batch.toml"), name


def write_answers(folder: Path, *contents: str) -> None:
    documents = [{"content": content} for content in contents]
    (folder / "answers.json").write_text(json.dumps({"answers": documents}))


def assert_refused(done: CompletedCommand, exit_code: int, code: str, *parts: str) -> None:
    assert (done.code, done.error["code"]) == (exit_code, code), done
    text = f"{done.error['message']} {done.error['hint']}"
    assert all(part in text for part in parts), text


def test_the_flags_select_one_of_three_modes() -> None:
    runs = (Run(file="b"), Run(file="b", retry_failed=True), Run(file="b", rescore=True))
    assert [run.mode for run in runs] == ["missing", "failed", "rescore"]


@pytest.mark.long
async def test_a_batch_runs_to_its_scores_and_a_second_run_repeats_nothing(
    perdure: Perdure, tmp_path: Path
) -> None:
    file, name = write_batch_file(tmp_path)
    write_answers(tmp_path, "a and b")
    done = await perdure("batch", "run", file)
    assert done.code == 0, done
    assert "score     includes  0.667 ± 0.333  of 3" in done.out
    assert done.out.splitlines()[-1] == "All 3 have a score."
    assert f"s3://cli-tests/users/local/batches/{name}/results/" in done.err
    (tmp_path / "answers.json").unlink()
    again, status, all_batches = await asyncio.gather(
        perdure("batch", "run", file, "-ojson"),
        perdure("batch", "status", name, "--format", "json"),
        perdure("batch", "status"),
    )
    assert (again.code, again.json["done"], again.json["attempts"]) == (0, 3, 3)
    assert (status.code, status.json["scores"]) == (0, again.json["scores"])
    assert f"{name}: 3 of 3 done; includes 0.667 ± 0.333" in all_batches.out
    whole, sample, unknown = await asyncio.gather(
        perdure("batch", "watch", name, "-ojson"),
        perdure("batch", "watch", name, "b", "-ojsonl"),
        perdure("batch", "watch", name, "x"),
    )
    assert (whole.code, whole.json["done"]) == (0, 3)
    assert (sample.code, "What is b?" in sample.out, "a and b" in sample.out) == (0, True, True)
    assert (unknown.code, "It has a, b, c." in unknown.err) == (3, True)


@pytest.mark.long
async def test_failed_samples_give_exit_code_1_and_retry_runs_them_again(
    perdure: Perdure, tmp_path: Path
) -> None:
    file, name = write_batch_file(tmp_path)
    failed = await perdure("batch", "run", file, "--limit", "2")
    assert failed.code == 1
    assert "failures  configuration 2" in failed.out
    retry = f"2 failed: `perdure batch retry {name}` runs what is left."
    assert failed.out.splitlines()[-1] == retry
    write_answers(tmp_path, "a and b")
    retried = await perdure("batch", "retry", name, "-ojsonl")
    assert (retried.code, retried.lines[-1]["result"]["done"]) == (0, 2)
    whole = await perdure("batch", "run", file, "-ojson")
    assert (whole.code, whole.json["done"], whole.json["attempts"]) == (0, 3, 5)


@pytest.mark.long
async def test_a_detached_batch_goes_on_and_can_be_controlled(
    configured: Perdure, tmp_path: Path
) -> None:
    """No worker runs on this queue, so that nothing ends."""
    alone = configured.with_env(PERDURE_TASK_QUEUE=f"cli-{uuid4()}")
    file, name = write_batch_file(tmp_path)
    detached = await alone("batch", "run", file, "--detach")
    assert (detached.code, detached.out) == (0, f"{name}\n")
    async with alone.start("batch", "run", file) as process:
        await wait_for_line(process.stderr, "it runs already")
        await wait_for_line(process.stderr, "No worker has taken it up")
        ended = await interrupt(process)
    assert ended.code == 130
    assert f"`perdure batch status {name}`" in ended.err
    assert f"`perdure batch pause {name}`" in ended.err
    other, paused, rescored = await asyncio.gather(
        alone("batch", "run", file, "--concurrency", "3", "-ojson"),
        alone("batch", "pause", name, "-ojson"),
        alone("batch", "rescore", name, "--detach", "-ojson"),
    )
    assert_refused(other, 4, "conflict", "another concurrency", f"perdure batch retune {name}")
    assert (paused.code, paused.json) == (0, {"batch": name})
    assert_refused(rescored, 4, "conflict", "scoring again is not what it does")


@pytest.mark.long
async def test_a_sample_is_watched_over_all_its_turns_until_it_has_a_result(
    perdure: Perdure, tmp_path: Path
) -> None:
    row = {"id": "a", "input": "What is a?", "target": "a", "turns": ["And b?", "And c?"]}
    file, name = write_batch_file(tmp_path, [row])
    answers = [{"content": "One.", "delay": 2.0}, {"content": "Two.", "delay": 2.0}, "It is a."]
    (tmp_path / "answers.json").write_text(json.dumps({"answers": answers}))
    assert (await perdure("batch", "run", file, "--detach")).code == 0
    watched = await perdure("batch", "watch", name, "a", "-ojsonl")
    while watched.code == 3:  # it has not begun
        watched = await perdure("batch", "watch", name, "a", "-ojsonl")
    texts = [
        part["text"]
        for line in watched.lines
        if line["kind"] == "MessageEvent"
        for part in line["llm_message"]["content"]
    ]
    assert texts == ["What is a?", "One.", "And b?", "Two.", "And c?", "It is a."]
    assert (await perdure("batch", "results", name, "--format", "json")).code == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run", "key.toml"), "there is no key 'epoch'"),
        (("run", "batch.toml", "--epochs", "2", "--name", "no name"), "name: string should match"),
        (("run", "no.toml"), "no.toml cannot be read"),
        (("run", "tasks.jsonl"), "'tasks.jsonl' is no batch: name a .toml or .py file"),
        (
            ("run", "no_such_module:batch"),
            "module 'no_such_module' cannot be found",
        ),
        (("run", "batch.toml", "--rescore", "--retry-failed"), "--rescore runs nothing"),
        (("rescore", "other", "batch.toml"), "batch.toml is no batch other: it is sums-"),
        (("retune", "sums"), "Give one of --concurrency, --cost, --tokens and --time"),
        (("retune", "sums", "--cost", "nan"), "cost: input should be a finite number"),
    ],
)
def test_mistakes_in_the_command_line_or_its_file_are_refused_at_once(
    args: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_batch_file(tmp_path)
    (tmp_path / "key.toml").write_text(f"epoch = 3\n{(tmp_path / 'batch.toml').read_text()}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PERDURE_CODE", "")
    assert run_command_line(["batch", *args, "-o", "json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert message in f"{error['message']} {error['hint']}"


@pytest.mark.long
async def test_a_bad_row_and_an_unknown_batch_are_named(
    configured: Perdure, tmp_path: Path
) -> None:
    file, name = write_batch_file(tmp_path, [*ROWS, {"id": "d", "inptu": "?"}])
    assert_refused(
        await configured("batch", "run", file, "-ojson"),
        2,
        "invalid",
        f"{tmp_path}/tasks.jsonl:4: there is no column 'input'",
    )
    assert_refused(
        await configured("batch", "retry", name, "-ojson"),
        3,
        "not_found",
        f"There is no batch '{name}'",
    )


def test_options_of_the_command_line_change_the_batch_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PERDURE_CODE", "/somewhere")
    file, name = write_batch_file(tmp_path)
    [batch] = load_batches(file, {})
    assert batch.agent.model.name == f"scripted:{tmp_path}/answers.json"
    assert os.environ["PERDURE_CODE"] == f"{tmp_path}"
    assert sys.path[-1] == f"{tmp_path}"
    changes = {"models": ["openai/a", "openai/b"], "limit": 2, "ids": ["1"], "concurrency": 7}
    loaded = load_batches(file, changes)
    assert [batch.name for batch in loaded] == [f"{name}-openai-a", f"{name}-openai-b"]
    assert [batch.agent.model.name for batch in loaded] == ["openai/a", "openai/b"]
    assert {(batch.limit, batch.ids, batch.concurrency) for batch in loaded} == {(2, ("1",), 7)}
    assert resolve_source(file) == file


def test_a_model_of_the_command_line_is_enough(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text('name = "b"\ndataset = "x.jsonl"\n[agent]\ntools = []\n')
    [batch] = load_batches(f"{tmp_path}/b.toml", {"models": ["openai/a"]})
    assert batch.agent.model.name == "openai/a"
    with pytest.raises(Invalid, match="model"):
        load_batches(f"{tmp_path}/b.toml", {})


def test_arguments_go_to_the_batchs_function_or_else_to_the_datasets(tmp_path: Path) -> None:
    head = 'dict(name=f"b{level}", dataset="rows:make", agent={"model": "m"})'
    (tmp_path / "b.py").write_text(f"def batch(level=1):\n    return {head}\n")
    [batch] = load_batches(f"{tmp_path}/b.py", {"arguments": parse_pairs("-T", ["level=3"])})
    assert (batch.name, batch.dataset.arguments) == ("b3", {})
    (tmp_path / "b.toml").write_text('name = "b"\ndataset = "rows:make"\nmodel = "m"\n')
    arguments = parse_pairs("-T", ["level=hard", 'kinds=["a"]', "times=2"])
    [batch] = load_batches(f"{tmp_path}/b.toml", {"arguments": arguments})
    assert batch.dataset.arguments == {"level": "hard", "kinds": ["a"], "times": 2}


def test_arguments_that_nothing_takes_are_refused(tmp_path: Path) -> None:
    file, _ = write_batch_file(tmp_path)
    with pytest.raises(Invalid, match="-T is for"):
        load_batches(file, {"arguments": {"level": 1}})
    with pytest.raises(Invalid, match="is not KEY=VALUE"):
        parse_pairs("-T", ["level"])
    with pytest.raises(Invalid, match="no such field"):
        load_batches(file, {"model_fields": {"temprature": 1}})
    with pytest.raises(Invalid, match="temperature"):
        load_batches(file, {"model_fields": {"temperature": "hot"}})


def test_fields_of_the_model_can_be_changed(tmp_path: Path) -> None:
    file, _ = write_batch_file(tmp_path)
    fields = {"temperature": 0.5, "api_base": "http://localhost:1/v1"}
    loaded = load_batches(file, {"models": ["openai/a", "openai/b"], "model_fields": fields})
    models = [batch.agent.model for batch in loaded]
    assert [(m.name, m.temperature, m.api_base) for m in models] == [
        ("openai/a", 0.5, "http://localhost:1/v1"),
        ("openai/b", 0.5, "http://localhost:1/v1"),
    ]
    [batch] = load_batches(file, {"model_fields": fields})
    assert batch.agent.model.temperature == 0.5


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 200])
async def test_the_progress_of_a_batch_is_drawn_in_place_and_ends_with_its_scores(
    perdure: Perdure, tmp_path: Path, columns: int
) -> None:
    (path, _), name = write_batch_file(tmp_path), f"sums-{uuid4().hex[:8]}"
    answers = {"answers": [{"content": "It is a.", "delay": 3.0}]}
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    command = ("batch", "run", path, "--name", name)
    async with open_terminal(perdure, *command, columns=columns) as terminal:
        await terminal.wait_for("3 running")
        [head] = [line for line in terminal.lines if line.startswith(f"{name}  ")]
        assert re.search(r"  0 %  running", head)
        assert f"  see one   perdure batch watch {name} a" in terminal.lines
        await terminal.wait_for("All 3 have a score.")
        assert await terminal.wait_for_end() == 0
        lines = [line for line in terminal.lines if line]
    *_, head, samples, score, spent, end = lines
    assert re.fullmatch(rf"{name}  \S+  100 %  finished  \d+ s at work", head)
    assert samples == "  samples   3 done, 0 failed, 0 running, 0 missing of 3"
    assert (score.split()[1], spent.split()[-2:]) == ("includes", ["3", "answers"])
    assert end == "All 3 have a score."
    assert sum(" done, " in line for line in lines) == 1, "no earlier drawing is left"

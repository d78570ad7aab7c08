"""`perdure batch results`: with the store alone."""

import csv
import io
from pathlib import Path

import pyarrow.parquet

from perdure.cli.batch.results import summary_lines
from perdure.evaluation.spec import parse_batch
from perdure.evaluation.summary import summarize
from tests.cli.past_batch import (
    BATCH_FIELDS,
    BATCH_NAME,
    LOST_CONVERSATION_ID,
    InProcessCommand,
    store_only_command,
)
from tests.evaluation.results import attempt, result


def test_the_summary_counts_results_and_the_exit_code_says_that_some_are_missing(
    run_command: InProcessCommand,
) -> None:
    text, program = (
        run_command("batch", "results", BATCH_NAME),
        run_command("batch", "results", BATCH_NAME, "--format", "json", "--failed"),
    )
    assert (text.code, text.err, program.code, program.err) == (1, "", 1, "")
    assert "4 expected = 2 scored + 1 failed + 1 without a result" in text.out
    assert "mean       0.5000 ± 0.5000" in text.out
    assert "1 infrastructure, such as lost, epoch 0, attempt 0" in text.out
    assert (program.json["attempts"], program.json["counts"]["missing"]) == (4, 1)
    [failed] = program.json["failed"]
    assert (failed["sample"], failed["conversation_id"]) == ("lost", LOST_CONVERSATION_ID)


def test_a_table_has_a_row_for_every_attempt(run_command: InProcessCommand, tmp_path: Path) -> None:
    path = tmp_path / "new" / "sums.parquet"
    text, parquet, failures = (
        run_command("batch", "results", BATCH_NAME, "--format", "csv"),
        run_command("batch", "results", BATCH_NAME, "--format", "parquet", "--output", f"{path}"),
        run_command("batch", "results", BATCH_NAME, "--format", "csv", "--failed"),
    )
    assert [command.code for command in (text, parquet, failures)] == [1, 1, 1]
    rows = list(csv.DictReader(io.StringIO(text.out, newline="")))
    read = pyarrow.parquet.read_table(path).to_pylist()
    assert [(row["sample"], row["attempt"], row["score.exact"]) for row in rows] == [
        ("10", "0", "1.0"),
        ("9", "0", ""),
        ("9", "1", "0.0"),
        ("lost", "0", ""),
    ]
    assert [row["conversation_id"] for row in rows] == [row["conversation_id"] for row in read]
    failed = csv.DictReader(io.StringIO(failures.out, newline=""))
    assert [(row["sample"], row["failure_code"]) for row in failed] == [("lost", "workflow_failed")]


def test_an_unknown_batch_is_refused_with_the_names_that_exist(
    run_command: InProcessCommand, tmp_path: Path
) -> None:
    unknown, impossible, unwritable = (
        run_command("batch", "results", "nope", "--format", "json"),
        run_command("batch", "results", "a b"),
        run_command("batch", "results", BATCH_NAME, "--output", f"{tmp_path}"),
    )
    assert (unknown.code, impossible.code, unwritable.code) == (3, 2, 2)
    assert unknown.error == {
        "code": "not_found",
        "message": "There is no batch 'nope'.",
        "hint": f"There are {BATCH_NAME}.",
    }
    assert "is not the name of a batch" in impossible.err
    assert "cannot be written" in unwritable.err


async def test_parquet_can_be_written_to_a_pipe(batch_folder: Path) -> None:
    command = ("batch", "results", BATCH_NAME, "--format", "parquet")
    async with store_only_command(batch_folder).start(*command) as process:
        out, _ = await process.communicate()
    assert process.returncode == 1
    assert pyarrow.parquet.read_table(io.BytesIO(out)).num_rows == 4


def test_the_summary_has_every_reducer_group_label_and_limit() -> None:
    table = {**BATCH_FIELDS, "epochs": 2, "reducers": ["mean", "pass@2"]}
    results = [
        result("a", "C", "calm", level="easy"),
        result("b", 1.0, 1.0, level="easy", n=1).model_copy(
            update={"attempts": (attempt(1.0), attempt(0.0, 1, limit="deadline"))}
        ),
    ]
    lines = list(summary_lines(parse_batch(table), summarize(results, 4, ("mean", "pass@2")), {}))
    text = "\n".join(lines)
    assert "4 expected = 3 scored + 1 ended by a limit" in lines[1]
    assert "exact        mean       0.7500 ± 0.2500" in text
    assert "exact        pass@2     1.0000 (95 %: Wilson 0.2065 to 1.0000), 1 sample" in lines
    assert "level = easy: 0.7500 ± 0.2500, 2 samples" in text
    assert "n = 1" not in text, "a group for each sample tells nothing"
    assert "labels: 1 C, 1 calm" in text
    assert "limits       1 deadline" in text

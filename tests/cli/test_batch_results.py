"""`perdure batch results`: with the store alone."""

import csv
import io
from pathlib import Path

import pyarrow.parquet

from cli.results_shown import lines_of
from evaluation.spec import batch_of
from evaluation.tally import summary
from tests.cli.past_batch import LOST, NAME, TABLE, Within, alone
from tests.evaluation.results import attempt, result


def test_the_summary_says_what_came_of_it_and_the_exit_code_that_some_is_missing(
    within: Within,
) -> None:
    told, asked = (
        within("batch", "results", NAME),
        within("batch", "results", NAME, "--format", "json", "--failed"),
    )
    assert (told.code, told.err, asked.code, asked.err) == (1, "", 1, "")
    assert "4 expected = 2 scored + 1 failed + 1 without a result" in told.out
    assert "mean       0.5000 ± 0.5000" in told.out
    assert "1 infrastructure, such as lost, epoch 0, attempt 0" in told.out
    assert (asked.json["attempts"], asked.json["counts"]["missing"]) == (4, 1)
    [failed] = asked.json["failed"]
    assert (failed["sample"], failed["conversation_id"]) == ("lost", LOST)


def test_a_table_has_every_attempt(within: Within, tmp_path: Path) -> None:
    place = tmp_path / "new" / "sums.parquet"
    told, made, only = (
        within("batch", "results", NAME, "--format", "csv"),
        within("batch", "results", NAME, "--format", "parquet", "--output", f"{place}"),
        within("batch", "results", NAME, "--format", "csv", "--failed"),
    )
    assert [one.code for one in (told, made, only)] == [1, 1, 1]
    rows = list(csv.DictReader(io.StringIO(told.out, newline="")))
    read = pyarrow.parquet.read_table(place).to_pylist()
    assert [(row["sample"], row["attempt"], row["score.exact"]) for row in rows] == [
        ("10", "0", "1.0"),
        ("9", "0", ""),
        ("9", "1", "0.0"),
        ("lost", "0", ""),
    ]
    assert [row["conversation_id"] for row in rows] == [row["conversation_id"] for row in read]
    failed = csv.DictReader(io.StringIO(only.out, newline=""))
    assert [(row["sample"], row["failure_code"]) for row in failed] == [("lost", "workflow_failed")]


def test_what_is_not_there_is_said_with_what_is(within: Within, tmp_path: Path) -> None:
    unknown, impossible, unwritable = (
        within("batch", "results", "nope", "--format", "json"),
        within("batch", "results", "a/b"),
        within("batch", "results", NAME, "--output", f"{tmp_path}"),
    )
    assert (unknown.code, impossible.code, unwritable.code) == (3, 2, 2)
    assert unknown.error == {
        "code": "not_found",
        "message": "There is no batch 'nope'.",
        "hint": f"There are {NAME}.",
    }
    assert "is not the name of a batch" in impossible.err
    assert "cannot be written" in unwritable.err


async def test_parquet_goes_into_a_pipe(past: Path) -> None:
    command = ("batch", "results", NAME, "--format", "parquet")
    async with alone(past).started(*command) as process:
        out, _ = await process.communicate()
    assert process.returncode == 1
    assert pyarrow.parquet.read_table(io.BytesIO(out)).num_rows == 4


def test_a_person_reads_every_reducer_group_label_and_limit() -> None:
    table = {**TABLE, "epochs": 2, "reducers": ["mean", "pass@2"]}
    found = [
        result("a", "C", "calm", level="easy"),
        result("b", 1.0, 1.0, level="easy", n=1).model_copy(
            update={"attempts": (attempt(1.0), attempt(0.0, 1, limit="deadline"))}
        ),
    ]
    lines = list(lines_of(batch_of(table), summary(found, 4, ("mean", "pass@2")), {}))
    text = "\n".join(lines)
    assert "4 expected = 3 scored + 1 ended by a limit" in lines[1]
    assert "exact        mean       0.7500 ± 0.2500" in text
    assert "exact        pass@2     1.0000 (95 %: Wilson 0.2065 to 1.0000), 1 sample" in lines
    assert "level = easy: 0.7500 ± 0.2500, 2 samples" in text
    assert "n = 1" not in text, "a group for each sample tells nothing"
    assert "labels: 1 C, 1 calm" in text
    assert "limits       1 deadline" in text

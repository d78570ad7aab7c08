"""Results as a table, read by the csv module and by pyarrow."""

import csv
import io
import sys
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from perdure.datasets import results_table
from perdure.datasets.results_table import LEADING_COLUMNS, TRAILING_COLUMNS, ResultsTable, TableRow
from perdure.errors import MissingExtra
from perdure.evaluation.result import AttemptFailure, SampleResult
from perdure.evaluation.score import Score
from tests.evaluation.results import attempt

SPECIAL_CHARACTERS = 'says "x", and\r\nmore\n\r\0;=1+1\u2028\t'


def results() -> list[SampleResult]:
    failure = AttemptFailure(kind="sample", code="setup_failed", detail="No such file: a,b")
    scores = {
        "exact": Score(value="C"),
        "table": Score(value={"right": True, "style": 0.25, "mood": "calm"}),
    }
    return [
        SampleResult(
            id="=1+1",
            target=("2",),
            metadata={"level": 3, "mixed": 1, "share": 1, "on": True, "nested": {"a": [1, "ü"]}},
            attempts=(
                attempt(None, failure=failure),
                attempt("C", number=1, scores=scores, answer=SPECIAL_CHARACTERS),
                attempt(False, 1, limit="max_tokens", status="limited", answer=""),
            ),
        ),
        SampleResult(
            id="b",
            target=("2", "two"),
            metadata={"level": None, "mixed": "1", "share": 0.5, "huge": 2**70, "none": None},
            attempts=(attempt(0.5),),
        ),
    ]


def build_table(*sample_results: SampleResult) -> ResultsTable:
    made = ResultsTable(io.BytesIO())
    for result in sample_results:
        made.add(result, result.attempts)
    return made


def as_csv(made: ResultsTable) -> list[dict[str, str]]:
    file = io.BytesIO()
    made.write_csv(file)
    return list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))


def as_parquet(made: ResultsTable) -> Any:
    file = io.BytesIO()
    made.write_parquet(file)
    return pyarrow.parquet.ParquetFile(io.BytesIO(file.getvalue()))


@pytest.fixture(params=["csv", "parquet"])
def rows(request: pytest.FixtureRequest) -> list[TableRow]:
    """Return the rows as both have them: empty values left out, all else as text."""
    made = build_table(*results())
    records = as_csv(made) if request.param == "csv" else as_parquet(made).read().to_pylist()
    return [
        {name: _text(item) for name, item in row.items() if item not in (None, "")}
        for row in records
    ]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_every_attempt_is_a_row_of_its_own(rows: list[TableRow]) -> None:
    attempts = [(row["sample"], row["epoch"], row["attempt"], row["is_final"]) for row in rows]
    assert attempts == [
        ("=1+1", "0", "0", "false"),
        ("=1+1", "0", "1", "true"),
        ("=1+1", "1", "0", "true"),
        ("b", "0", "0", "true"),
    ]
    assert [row["status"] for row in rows] == ["failed", "scored", "limited", "scored"]
    assert rows[2]["limit"] == "max_tokens"
    failed = {name: item for name, item in rows[0].items() if name.startswith("failure")}
    assert failed == {
        "failure_kind": "sample",
        "failure_code": "setup_failed",
        "failure_detail": "No such file: a,b",
    }
    assert (rows[3]["cost"], rows[3]["tokens"], rows[3]["seconds"]) == ("0.5", "15", "2.0")


def test_numbers_and_words_of_scores_have_columns_of_their_own(rows: list[TableRow]) -> None:
    scores = [{name: row[name] for name in row if name.startswith("score.")} for row in rows]
    assert scores == [
        {},
        {"score.exact": "1.0", "score.table/right": "1.0", "score.table/style": "0.25"},
        {"score.exact": "0.0"},
        {"score.exact": "0.5"},
    ]
    labels = {name: item for name, item in rows[1].items() if name.startswith("label.")}
    assert labels == {"label.exact": "C", "label.table/mood": "calm"}


def test_texts_come_back_as_they_are(rows: list[TableRow]) -> None:
    assert rows[1]["answer"] == SPECIAL_CHARACTERS
    assert (rows[0]["target"], rows[3]["target"]) == ("2", '["2", "two"]')
    assert rows[0]["metadata.nested"] == '{"a": [1, "ü"]}'
    assert rows[3]["metadata.huge"] == str(2**70)
    assert [row["metadata.mixed"] for row in rows] == ["1"] * 4


def test_columns_of_parquet_have_the_types_of_their_values() -> None:
    schema = as_parquet(build_table(*results())).schema_arrow
    types = {name: str(schema.field(name).type) for name in schema.names}
    assert list(types)[: len(LEADING_COLUMNS)] == list(LEADING_COLUMNS)
    assert {name: types[f"metadata.{name}"] for name in ("level", "mixed", "share", "on")} == {
        "level": "int64",
        "mixed": "string",
        "share": "double",
        "on": "bool",
    }
    assert {types[name] for name in types if name.startswith("score.")} == {"double"}
    assert (types["metadata.none"], types["metadata.huge"]) == ("string", "string")


def test_groups_of_rows_are_small_however_many_rows_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [
        SampleResult(id=f"s{n}", attempts=(attempt(n % 2, answer="x" * 100),)) for n in range(95)
    ]
    monkeypatch.setattr(results_table, "MAX_GROUP_ROWS", 10)
    read = as_parquet(build_table(*many))
    assert read.metadata.num_row_groups == 10
    assert read.read().column("sample").to_pylist() == [item.id for item in many]
    monkeypatch.setattr(results_table, "MAX_GROUP_BYTES", 1)
    assert as_parquet(build_table(*many)).metadata.num_row_groups == 95


def test_values_beyond_the_last_column_go_into_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_table, "MAX_FREE_COLUMNS", 2)
    sample_results = [
        SampleResult(id=f"s{n}", metadata={f"k{n}": n}, attempts=(attempt(1),)) for n in range(3)
    ]
    read = as_csv(build_table(*sample_results))
    assert [row["others"] for row in read] == ["", '{"metadata.k1": 1}', '{"metadata.k2": 2}']
    assert len(read[0]) == len(LEADING_COLUMNS) + len(TRAILING_COLUMNS) + 3


def test_a_batch_without_results_has_a_header() -> None:
    assert as_csv(build_table()) == []
    assert as_parquet(build_table()).schema_arrow.names == [*LEADING_COLUMNS, *TRAILING_COLUMNS]


def test_an_error_without_pyarrow_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'perdure\[parquet\]'"):
        build_table().write_parquet(io.BytesIO())

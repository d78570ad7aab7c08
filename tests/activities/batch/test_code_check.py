"""A worker loads the code of a batch, and says what it cannot load."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from perdure.activities.batch.code_check import find_code_problem
from perdure.evaluation.spec import parse_batch
from perdure.references import add_user_folder
from perdure.storage.batches import BatchRecord

CODE = """
NUMBER = 7

def agrees(sample, outcome):
    raise AssertionError("nothing is called")

def look(place: str) -> str:
    \"\"\"Look.\"\"\"
    raise AssertionError("nothing is called")
"""


def record(scorers: list[Any], **agent: Any) -> BatchRecord:
    table = {"name": "b", "dataset": "d.jsonl", "scorers": scorers}
    spec = parse_batch({**table, "agent": {"model": "m", "tools": [], **agent}})
    return BatchRecord(spec=spec, samples="s", count=1, chunks=1, options={"file": "/x/b.toml"})


@pytest.fixture
def module(tmp_path: Path) -> str:
    name = f"code_{uuid4().hex[:12]}"
    (tmp_path / f"{name}.py").write_text(CODE)
    add_user_folder(tmp_path)
    return name


async def test_code_that_can_be_loaded_is_no_problem_and_is_not_called(module: str) -> None:
    whole = record([f"{module}:agrees", "exact"], tools=["terminal", f"{module}:look"])
    assert await find_code_problem(whole) is None


async def test_each_kind_of_code_is_named_with_where_it_was_looked_for(
    module: str, tmp_path: Path
) -> None:
    condenser = {"kind": "custom", "function": f"{module}_nowhere:plan"}
    for whole, name in (
        (record([f"{module}_nowhere:agrees"]), "the scorer"),
        (record([], tools=[f"{module}_nowhere:look"]), "the agent's tools"),
        (record([], condenser=condenser), "the condenser"),
    ):
        problem = await find_code_problem(whole)
        assert problem is not None
        assert problem.startswith(f"A worker cannot load {name}")
        assert f"'{module}_nowhere' cannot be found" in problem
        assert str(tmp_path) in problem
        assert "PERDURE_CODE=/x" in problem


async def test_a_scorer_that_is_no_function_is_a_problem(module: str) -> None:
    problem = await find_code_problem(record([f"{module}:NUMBER"]))
    assert problem is not None
    assert "it is a int, and must be a function" in problem

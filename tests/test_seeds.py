"""The table of the seeds names tests that exist, and says what is not there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "seeds.md"
HEAD = ["what it promises", "what is there", "held by"]


def list_rows() -> list[list[str]]:
    """Return the cells of each row, without the heads of the tables."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in rows if row != HEAD and set(row) != {"---"}]


ROWS = list_rows()


@cache
def list_tests(path: Path) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse(path.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, functions)}
    return {name for name in names if name.startswith("test_")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_a_test_that_exists_or_says_what_is_missing(row: list[str]) -> None:
    promise, there, held = row
    assert promise
    if not held:
        assert there.startswith("not there"), "a row without a test says that it is not there"
        return
    named = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", held)
    assert named, held
    assert named[2] in list_tests(ROOT / named[1]), held


def test_the_page_has_a_table_of_every_seed() -> None:
    heads = re.findall(r"^## (\d{3}):", PAGE.read_text(), re.MULTILINE)
    assert heads == ["000", "001", "003", "004"]
    assert PAGE.read_text().count(" | ".join(HEAD)) == 4
    assert len(ROWS) > 100

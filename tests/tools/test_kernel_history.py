"""The log tells which cells a lost kernel had run, and which names are lost with it."""

import pytest

from perdure.tools.kernel.history import Cell, list_names, read_cells
from tests.tools.cells import Notebook, notebook, result

__all__ = ["notebook"]


async def test_cells_are_read_back_to_the_first_of_their_kernel(notebook: Notebook) -> None:
    await notebook.record("old = 1", result(1))
    await notebook.record("a = 1", result(1))
    await notebook.record("b = 1 / 0", result(2, is_error=True))
    await notebook.record("c = 3", "bad_arguments")
    await notebook.record("d = 4", result(3, is_error=True, timeout=True))
    await notebook.record("e = 5", "outcome_unknown")
    assert await read_cells(await notebook.context()) == [
        Cell("a = 1", "done"),
        Cell("b = 1 / 0", "failed"),
        Cell("d = 4", "unknown"),
        Cell("e = 5", "unknown"),
    ]


async def test_no_cells_are_read_of_a_kernel_that_ended_with_its_last(notebook: Notebook) -> None:
    await notebook.record("a = 1", result(1))
    await notebook.record("exit", result(2, is_error=True, kernel_ended=True))
    assert await read_cells(await notebook.context()) == []
    await notebook.record("b = 2", "interrupted")
    assert await read_cells(await notebook.context()) == [Cell("b = 2", "unknown")]


async def test_no_cells_are_read_from_before_a_reset(notebook: Notebook) -> None:
    await notebook.record("a = 1", result(1))
    await notebook.record("", result(1).model_copy(update={"execution_count": None}), reset=True)
    await notebook.record("b = 1", result(2))
    assert await read_cells(await notebook.context()) == [Cell("b = 1", "done")]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import os.path, numpy as np\nfrom re import match", ["os", "np", "match"]),
        ("async def f(a): b = a\nclass C: d = 1", ["f", "C"]),
        ("for i in (j := [1]):\n    k, (l, *m) = i", ["i", "j", "k", "l", "m"]),
        ("%matplotlib inline\n!ls\nx = y.z[0]\ny.w = 1", ["x"]),
        ("x = (", []),
        ("x = !ls", []),
    ],
)
def test_the_names_that_a_cell_defines_are_listed(code: str, names: list[str]) -> None:
    found = list_names([Cell(code, "done")])
    assert sorted(found) == sorted(names)

"""The cells that a conversation has run in its kernel, read from its log."""

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perdure.events.actions import IPythonRunCellAction
from perdure.events.entry import Entry
from perdure.events.observations import IPythonRunCellObservation
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.storage.errors import StoreError
from perdure.tools.tool import Context

MAX_ENTRIES_SEARCHED = 1_024
"""Cells further back are of a kernel on which the model no longer relies."""
_ENTRIES_PER_READ = 32

Outcome: TypeAlias = Literal["done", "failed", "unknown"]


@dataclass(frozen=True)
class Cell:
    """A cell of the newest kernel; `unknown` if it was stopped, or lost with its worker."""

    code: str
    outcome: Outcome


async def read_cells(context: Context) -> list[Cell]:
    """Read the cells of the newest kernel, in order; none if it ended with its last one."""
    search = _Search()
    end, last = context.seq, max(0, context.seq - MAX_ENTRIES_SEARCHED)
    with suppress(StoreError):  # the note is not worth failing the cell
        while end > last and not search.is_complete:
            first = max(last, end - _ENTRIES_PER_READ)
            search.add(reversed(await context.log.read(first, end - first)))
            end = first
    return search.cells[::-1]


class _Search:
    """A search from the newest entry to the first cell of its kernel."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.is_complete = False
        self._outcomes: dict[str, tuple[Outcome, bool]] = {}
        """The outcomes by action, and whether each cell was the first of its kernel."""

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if self.is_complete:
                return
            match entry.event:
                case ObservationEvent(observation=IPythonRunCellObservation() as result) as event:
                    self.is_complete = result.kernel_ended
                    outcome: Outcome = "unknown" if result.timeout else "done"
                    outcome = "failed" if result.is_error and not result.timeout else outcome
                    self._outcomes[event.action_id] = outcome, result.execution_count == 1
                case AgentErrorEvent(action_id=str(action)) as event:
                    if event.classification in ("outcome_unknown", "interrupted"):
                        self._outcomes[action] = "unknown", False
                case ActionEvent(action=IPythonRunCellAction() as action) as event:
                    self._add_cell(action, *self._outcomes.get(event.id, (None, False)))

    def _add_cell(
        self, action: IPythonRunCellAction, outcome: Outcome | None, is_first: bool
    ) -> None:
        if outcome is not None and action.code:
            self.cells.append(Cell(action.code, outcome))
        self.is_complete = outcome is not None and (is_first or action.reset)


def list_names(cells: Iterable[Cell]) -> list[str]:
    """List the names that the cells have defined, as far as plain Python tells."""
    return list(dict.fromkeys(name for cell in cells for name in _defined_names(cell.code)))


def _defined_names(code: str) -> Iterator[str]:
    lines = (line for line in code.split("\n") if not line.startswith(("%", "!")))
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in tree.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    yield alias.asname or alias.name.partition(".")[0]
            case _:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id

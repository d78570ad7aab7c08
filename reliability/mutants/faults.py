"""Faults that can be planted in a module: one small change of its source each.

Faults that are equivalent by nature are left out, because no test can or should tell them:

- the texts of errors and logs, and what is inside `raise`, an assertion or an f-string;
- numbers from 20 upwards, fractions and the `timeout`s of calls: limits and durations by rule of
  thumb, off by one;
- a comparison with a clock is turned round, not moved by an instant;
- `return False` as `return None`, `strict=`, `flush=` and `daemon=`; log lines and waits left out;
- `__repr__` and `__str__`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "+",
}
ORDERINGS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
CLOCKS = ("monotonic", "time()", "now()", "deadline", "seconds", "expires", "elapsed", "timeout")
SMALLEST_LIMIT = 20
EQUIVALENT_KEYWORDS = ("strict", "flush", "daemon", "timeout", "exc_info", "stacklevel")
EQUIVALENT_CALLS = ("logger", "logging", "warnings", "sleep", "debug", "info", "warning")
UNTOLD = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments)
"""Statements and expressions in which no fault is planted."""


@dataclass(frozen=True)
class Fault:
    """The replacement of a source range; lines count from 1, columns are UTF-8 bytes."""

    line: int
    column: int
    end_line: int
    end_column: int
    replacement: str
    kind: str

    def plant(self, source: str) -> str:
        lines = source.encode().split(b"\n")
        first, last = lines[self.line - 1], lines[self.end_line - 1]
        changed = first[: self.column] + self.replacement.encode() + last[self.end_column :]
        return b"\n".join([*lines[: self.line - 1], changed, *lines[self.end_line :]]).decode()


def faults_of(source: str) -> list[Fault]:
    """List every fault that can be planted inside the functions of a module."""
    tree = ast.parse(source)
    faults = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if function.name not in ("__repr__", "__str__"):
            for statement in function.body:
                faults += [fault for node in _walk(statement) for fault in _faults_at(node)]
    return sorted(set(faults), key=lambda fault: (fault.line, fault.column, fault.replacement))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Walk over a tree without what is equivalent by nature."""
    if isinstance(node, UNTOLD) or (
        isinstance(node, ast.keyword) and node.arg in EQUIVALENT_KEYWORDS
    ):
        return
    if isinstance(node, ast.Call) and _is_log_call(node):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _faults_at(node: ast.AST) -> Iterator[Fault]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield _replace(node, _turned_comparison(node), "comparison")
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        values = word.join(f"({ast.unparse(value)})" for value in node.values)
        yield _replace(node, f"({values})", "and/or")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _replace(node, f"({ast.unparse(node.operand)})", "not")
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        if not any(map(_is_text, (node.left, node.right))):
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            yield _replace(node, f"({left} {ARITHMETIC[type(node.op)]} {right})", "arithmetic")
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        if node.value < SMALLEST_LIMIT:
            yield _replace(node, f"({node.value!r} + 1)", "number")
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _replace(node, repr(not node.value), "truth value")
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        if not _has_fault_of_its_own(node.test):
            yield _replace(node.test, f"(not ({ast.unparse(node.test)}))", "condition")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        if not _is_log_call(node.value):
            yield _replace(node, "pass", "statement left out")
    elif isinstance(node, ast.Return) and not _is_nothing(node.value):
        yield _replace(node, "return None", "result left out")


def _turned_comparison(node: ast.Compare) -> str:
    left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
    if isinstance(node.ops[0], ORDERINGS) and any(clock in left + right for clock in CLOCKS):
        return f"(not ({ast.unparse(node)}))"
    return f"({left} {COMPARISONS[type(node.ops[0])]} {right})"


def _has_fault_of_its_own(test: ast.expr) -> bool:
    """Check whether negating a condition is the fault that its expression has already."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    equality = isinstance(test, ast.Compare) and len(test.ops) == 1
    return negated or (equality and not isinstance(test.ops[0], ORDERINGS))  # type: ignore[attr-defined]


def _is_log_call(node: ast.expr) -> bool:
    call = node.value if isinstance(node, ast.Await) else node
    if not isinstance(call, ast.Call):
        return False
    return not {*ast.unparse(call.func).lower().split(".")}.isdisjoint(EQUIVALENT_CALLS)


def _replace(node: ast.expr | ast.stmt, replacement: str, kind: str) -> Fault:
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Fault(node.lineno, node.col_offset, end_line, end_column, replacement, kind)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str | bytes)


def _is_nothing(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in (None, False))

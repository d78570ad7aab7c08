"""The guards of the packages that pass through Temporal's sandbox."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.workflows.sandbox import PURE_PACKAGES

ROOT = Path(__file__).parents[2]
MUTATING_METHODS = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem"),
    *("popleft", "remove", "reverse", "setdefault", "sort", "update"),
}


def pure_modules() -> list[Path]:
    folders = [ROOT / package.replace(".", "/") for package in PURE_PACKAGES]
    return [
        path
        for folder in folders
        for path in (folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")])
    ]


def module_state(source: str) -> list[str]:
    """The statements by which functions of a module change what the module itself holds."""
    tree = ast.parse(source)
    names = {
        name.id
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for f in ast.walk(tree) if isinstance(f, functions) for node in ast.walk(f)]
    return [ast.unparse(node) for node in nodes if changes_state(node, names)]


def changes_state(node: ast.AST, names: set[str]) -> bool:
    """Tell whether a node rebinds one of the module's `names`, or changes the object behind it."""
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return isinstance(node.value, ast.Name) and node.value.id in names
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        mutates = node.func.attr in MUTATING_METHODS
        return mutates and isinstance(owner, ast.Name) and owner.id in names
    return isinstance(node, ast.Global)


@pytest.mark.parametrize(
    "planted",
    [
        "SEEN = []\ndef f(x):\n    SEEN.append(x)\n",
        "SEEN = {}\ndef f(x):\n    SEEN[x] = 1\n",
        "COUNT = 0\ndef f():\n    global COUNT\n    COUNT += 1\n",
    ],
)
def test_module_state_is_recognised(planted: str) -> None:
    assert module_state(planted)


def test_no_module_that_passes_through_the_sandbox_keeps_state() -> None:
    modules = pure_modules()
    assert len(modules) > 80
    state = {path.name: module_state(path.read_text()) for path in modules}
    assert {name: statements for name, statements in state.items() if statements} == {}


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("perdure/agent/loop/decide.py", "import time\nNOW = time.time()\n"),
        ("perdure/evaluation/ledger.py", "import random\n"),
        ("perdure/events/base.py", "from datetime import datetime\nNOW = datetime.now()\n"),
        ("workflows/conversation.py", "import os\nHOME = os.environ\n"),
    ],
)
def test_ruff_refuses_a_clock_randomness_and_the_environment(module: str, planted: str) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    checked = subprocess.run(
        [ruff, "check", "--select", "TID251", "--stdin-filename", ROOT / module, "-"],
        input=(ROOT / module).read_text() + planted,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "TID251" in checked.stdout

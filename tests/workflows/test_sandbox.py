"""The guards of the packages that pass through Temporal's sandbox."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import temporalio.client
from temporalio import workflow
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from perdure.activities.support.resources import Resources
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.worker import build_worker
from perdure.workflows.sandbox import PURE_PACKAGES, WorkflowSandbox

ROOT = Path(__file__).parents[2]
MUTATING_METHODS = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem"),
    *("popleft", "remove", "reverse", "setdefault", "sort", "update"),
}


CLOCKED = """
import datetime, sys
from temporalio import workflow

NOW = datetime.datetime.now() if "clocked_workflow" in sys.modules else None

@workflow.defn
class Clocked:
    @workflow.run
    async def run(self) -> None: ...
"""

CHECK_CLOCKED = """
from temporalio import workflow
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from clocked_workflow import Clocked
from perdure.workflows.sandbox import WorkflowSandbox
SandboxedWorkflowRunner.prepare_workflow(
    WorkflowSandbox(), workflow._Definition.must_from_class(Clocked)
)
"""
"""The check by which the SDK loads a workflow in the sandbox."""


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


def test_only_modules_that_define_a_workflow_are_loaded_in_the_sandbox() -> None:
    passed = set(pure_modules())
    modules = [path for path in (ROOT / "perdure/workflows").rglob("*.py") if path not in passed]
    texts = {
        str(path.relative_to(ROOT / "perdure/workflows")): path.read_text() for path in modules
    }
    assert {name for name, text in texts.items() if "@workflow.defn" in text} == {
        "ask.py",
        "batch/workflow.py",
        "conversation.py",
        "discussion/workflow.py",
        "delivery.py",
        "firing.py",
        "sessions.py",
    }
    others = {name for name, text in texts.items() if "@workflow.defn" not in text}
    inits = {"__init__.py", "batch/__init__.py", "discussion/__init__.py"}
    assert others == {*inits, "sandbox.py"}


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("perdure/agent/loop/decide.py", "import time\nNOW = time.time()\n"),
        ("perdure/evaluation/ledger.py", "import random\n"),
        ("perdure/events/base.py", "from datetime import datetime\nNOW = datetime.now()\n"),
        ("workflows/conversation.py", "import os\nHOME = os.environ\n"),
        ("workflows/loop.py", "NOW = datetime.now()\n"),
        ("workflows/step_runner.py", "import uuid\nNAME = uuid.uuid4()\n"),
        ("workflows/batch/run.py", "import random\n"),
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


async def test_every_workflow_of_a_worker_loads_in_the_sandbox(
    temporal: temporalio.client.Client, tmp_path: Path
) -> None:
    """The SDK sees to it when a worker starts, for 20 ms of CPU; ours has this test instead."""
    world = Resources(FileStore(tmp_path), ModelRouter(), tmp_path)
    workflows = build_worker(temporal, "nobody asks", world).config()["workflows"]
    assert len(workflows) == 7
    for cls in workflows:
        definition = workflow._Definition.must_from_class(cls)
        SandboxedWorkflowRunner.prepare_workflow(WorkflowSandbox(), definition)


def test_a_workflow_that_looks_at_the_clock_while_it_loads_is_refused(tmp_path: Path) -> None:
    (tmp_path / "clocked_workflow.py").write_text(CLOCKED)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CHECK_CLOCKED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "RestrictedWorkflowAccessError" in done.stderr

"""A copy of the tree with an environment of its own, and the tests that are near to a module."""

import json
import os
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reliability.mutants.nearest import Imports
from reliability.mutants.session import PLANTED, VERDICTS

ROOT = Path(__file__).parents[2]

NEAREST_FILES = 12

FAR = 99
"""The distance of what no imports connect."""

NEIGHBOURS = {
    "__init__": ("test_public_api.py",),
    "activities": ("workflows",),
    "client": ("workflows",),
    "errors": ("client", "cli"),
    "events": ("agent",),
    "operations": ("workflows",),
    "worker": ("workflows",),
}
"""Tests that are run for a module besides those of its own room."""


class Copy:
    """A copy of the working tree, with an environment that imports the product from the copy."""

    def __init__(self, target: Path) -> None:
        skipped = shutil.ignore_patterns(".venv", ".git", ".*_cache", "__pycache__", ".hypothesis")
        shutil.copytree(ROOT, target, symlinks=True, ignore=skipped)
        venv.create(target / ".venv", symlinks=True)
        # The path of the environment's packages, not its .pth files: those name ROOT.
        packages = sysconfig.get_path("purelib")
        own = sysconfig.get_path("purelib", vars={"base": str(target / ".venv")})
        (Path(own) / "mutants.pth").write_text(f"{target}\n{packages}\n")
        for program in (ROOT / ".venv/bin").resolve().iterdir():  # ripgrep and others
            if not (target / ".venv/bin" / program.name).exists():
                (target / ".venv/bin" / program.name).symlink_to(program)
        self.tree = target
        self._imports = Imports(target, [str(p.relative_to(target)) for p in _python_files(target)])

    def run(self, planted: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Plant faults, and yield each with the test that catches it."""
        reading, writing = os.pipe()
        faults = self.tree / "planted.json"
        faults.write_text(json.dumps(planted))
        tests = sorted({file for fault in planted for file in fault["files"]})
        command = [str(self.tree / ".venv/bin/python"), "-m", "pytest", "-q", "-m", ""]
        process = subprocess.Popen(
            [
                *command,
                "--timeout",
                "60",
                "-p",
                "reliability.mutants.session",
                "-p",
                "no:cacheprovider",
                *tests,
            ],
            cwd=self.tree,
            env={
                **os.environ,
                "PYTHONPATH": str(self.tree),
                "PYTHONDONTWRITEBYTECODE": "",
                PLANTED: str(faults),
                VERDICTS: str(writing),
            },
            stdout=(self.tree / "output").open("w"),
            stderr=subprocess.STDOUT,
            pass_fds=[writing],
            start_new_session=True,
        )
        os.close(writing)
        with os.fdopen(reading) as verdicts:
            yield from map(json.loads, verdicts)
        process.wait()

    def test_files(self, module: str, room: str, *, nearest_only: bool) -> tuple[list[str], int]:
        """List the test files of a module's room, nearest first, and count those that import it."""
        distances = self._imports.distances(module)
        names = (room, f"test_{room}.py", *NEIGHBOURS.get(room, ()))
        paths = [self.tree / "tests" / name for name in names]
        files = [str(file.relative_to(self.tree)) for path in paths for file in _test_files(path)]
        assert files, f"the room {room} has no tests"
        stem = Path(module).stem

        def nearness(path: str) -> tuple[bool, int]:
            named = f'"{stem}"' in (self.tree / path).read_text()  # a command of the CLI
            distance = distances.get(path, FAR)
            return f"/test_{stem}" not in path, min(distance, 1 if named else FAR)

        files.sort(key=nearness)
        importing, near = (
            sum(not nearness(path)[0] or nearness(path)[1] <= most for path in files)
            for most in (1, 2)
        )
        nearest = files[: min(near or len(files), NEAREST_FILES)]
        return nearest if nearest_only else files, importing


def _python_files(tree: Path) -> list[Path]:
    folders = ("perdure", "activities", "storage", "workflows", "tests")
    return [tree / "worker.py", *(p for name in folders for p in (tree / name).rglob("*.py"))]


def _test_files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.rglob("test_*.py"))
    return [path] if path.exists() else []

"""`python -m reliability.deviations`: plant deviations from protocols; tests must notice each.

Each is planted alone in a copy of the working tree, and the tests of its surface are run there.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from reliability.deviations.acp import ACP
from reliability.deviations.ag_ui import AG_UI
from reliability.deviations.deviation import Deviation, Surface
from reliability.deviations.mcp import MCP
from reliability.deviations.openai import OPENAI
from reliability.deviations.openhands import OPENHANDS
from reliability.mutants.suites import ROOT, Copy

SURFACES = (OPENAI, OPENHANDS, MCP, ACP, AG_UI)

MAX_SECONDS = 600


def plant(tree: Path, deviation: Deviation) -> str:
    """Plant a deviation in a tree, and return the text of its file before."""
    file = tree / deviation.file
    before = file.read_text()
    assert before.count(deviation.old) == 1, f"{deviation.name}: look at {deviation.file}"
    file.write_text(before.replace(deviation.old, deviation.new))
    return before


def find_noticing_test(tree: Path, tests: Sequence[str]) -> str | None:
    """Run tests until one fails, and return its name; None if none does."""
    command = [str(tree / ".venv/bin/python"), "-m", "pytest", "-q", "-x", "-n", "0", "-m", ""]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--timeout", "120", *tests],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_SECONDS,
    )
    if done.returncode == 0:
        return None
    failed = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("FAILED tests", "ERROR tests"))
    ]
    return failed[0].split(" - ")[0] if failed else done.stdout[-2000:]


def run(surfaces: Sequence[Surface], names: Sequence[str]) -> list[str]:
    """Plant the deviations one by one, and return the names of those that no test notices."""
    missed = []
    with tempfile.TemporaryDirectory(prefix="perdure-deviations-") as folder:
        tree = Copy(Path(folder) / "tree").tree
        link_environments(tree)
        for surface in surfaces:
            for deviation in surface.deviations:
                if names and not any(name in deviation.name for name in names):
                    continue
                before = plant(tree, deviation)
                test = find_noticing_test(tree, surface.tests)
                (tree / deviation.file).write_text(before)
                print(f"{surface.name}: {deviation.name}: {test or 'NOT NOTICED'}", flush=True)
                if test is None:
                    missed.append(f"{surface.name}: {deviation.name}")
    return missed


def link_environments(tree: Path) -> None:
    """Let the tests in a copy use the environments of clients of others."""
    for folder in (ROOT / ".venv").iterdir():
        if not (tree / ".venv" / folder.name).exists():
            (tree / ".venv" / folder.name).symlink_to(folder)


def main() -> int:
    """Exit code 0 means that each was noticed."""
    parser = argparse.ArgumentParser(prog="python -m reliability.deviations", description=__doc__)
    known = {surface.name: surface for surface in SURFACES}
    parser.add_argument("--only", nargs="+", choices=known, default=list(known), help="surfaces")
    parser.add_argument("--named", nargs="+", default=(), help="those whose names have this text")
    options = parser.parse_args()
    missed = run([known[name] for name in options.only], options.named)
    print(*(f"NOT NOTICED {name}" for name in missed), sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

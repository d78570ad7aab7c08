"""`python -m reliability.mutants`: plant faults in the product and see which the tests catch.

Each fault is planted in a copy of the working tree, and the tests of its room are run against it
for a minute and a half: the nearest by name and imports first, `long` ones that do not import the
module last. Tests that fail without the fault as well are left out; a test that hangs catches the
fault. The sample is spread over all rooms by their lines, and is a function of `--seed`. What
survives is judged in `survivors.md`. Exits 1 where fewer than `--at-least` of the faults are
caught.
"""

import argparse
import json
import queue
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from reliability.mutants.faults import Fault, faults_of
from reliability.mutants.suites import ROOT, Copy

NOT_TESTED_HERE = (
    *("perdure/sandbox/launcher.py", "perdure/sandbox/owner_map.py"),
    "perdure/tools/shell/supervisor.py",
)
"""Programs that run in processes of their own, where only `make sandbox` looks."""


@dataclass(frozen=True)
class Mutant:
    """A fault in a module; `module` is its path in the repository."""

    module: str
    room: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.module}:{self.fault.line} {self.fault.kind}: {self.fault.replacement}"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a fault."""

    mutant: Mutant
    caught_by: str | None
    """A test that fails; None where the fault survived."""


def product_modules() -> dict[str, list[str]]:
    """The modules of each room, as paths in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    rooms: dict[str, list[str]] = {}
    for path in listed:
        parts = Path(path).parts
        if parts[0] in ("activities", "storage", "workflows", "worker.py"):
            rooms.setdefault(parts[0].removesuffix(".py"), []).append(path)
        elif parts[0] == "perdure" and path not in NOT_TESTED_HERE:
            rooms.setdefault(parts[1].removesuffix(".py"), []).append(path)
    return rooms


def sample(count: int, seed: int, only: Iterable[str] = ()) -> list[Mutant]:
    """Draw `count` mutants, each room in proportion to its lines, at least two a room."""
    chance = random.Random(seed)
    rooms = product_modules()
    lines = {
        room: sum((ROOT / path).read_text().count("\n") for path in paths)
        for room, paths in rooms.items()
    }
    total = sum(lines.values())
    mutants = []
    for room, paths in sorted(rooms.items()):
        faults = [
            Mutant(path, room, fault)
            for path in paths
            for fault in faults_of((ROOT / path).read_text())
        ]
        share = max(2, round(count * lines[room] / total))
        mutants += chance.sample(faults, min(share, len(faults)))
    return [mutant for mutant in mutants if not only or mutant.room in only]


def run(
    mutants: list[Mutant], processes: int, report: Path | None, *, nearest_only: bool
) -> list[Verdict]:
    """Try every mutant without a verdict in `report`, and return all verdicts."""
    verdicts = _load_verdicts(report, mutants)
    mutants = [mutant for mutant in mutants if mutant not in {known.mutant for known in verdicts}]
    waiting: queue.SimpleQueue[tuple[str, list[Mutant]]] = queue.SimpleQueue()
    for room, of_room in groupby(mutants, key=lambda mutant: mutant.room):
        waiting.put((room, list(of_room)))
    lock = threading.Lock()

    def work(copy: Copy) -> None:
        while True:
            try:
                room, of_room = waiting.get_nowait()
            except queue.Empty:
                return
            planted = []
            for number, mutant in enumerate(of_room, 1):
                files, near = copy.test_files(mutant.module, room, nearest_only=nearest_only)
                planted.append({**asdict(mutant), "number": number, "files": files, "near": near})
            for answer in copy.run(planted):
                verdict = Verdict(of_room[answer["number"] - 1], answer["caught_by"])
                with lock:
                    verdicts.append(verdict)
                    word = f"caught by {verdict.caught_by}" if verdict.caught_by else "SURVIVED"
                    print(f"{len(verdicts):4} {verdict.mutant}: {word}", flush=True)
                    if report is not None:
                        report.write_text(json.dumps([asdict(item) for item in verdicts], indent=1))

    with tempfile.TemporaryDirectory(prefix="perdure-mutants-") as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(processes)]
        threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return verdicts


def _load_verdicts(report: Path | None, mutants: list[Mutant]) -> list[Verdict]:
    """Load the verdicts of an earlier run, on mutants of this one."""
    verdicts = []
    for row in json.loads(report.read_text()) if report is not None and report.exists() else ():
        fault = Fault(**row["mutant"].pop("fault"))
        verdicts.append(Verdict(Mutant(**row["mutant"], fault=fault), row["caught_by"]))
    return [verdict for verdict in verdicts if verdict.mutant in set(mutants)]


def print_table(verdicts: list[Verdict]) -> None:
    """Print how many faults of each room are caught, and those that are not."""
    planted = Counter(verdict.mutant.room for verdict in verdicts)
    caught = Counter(verdict.mutant.room for verdict in verdicts if verdict.caught_by)
    print(f"\n{'room':12} planted caught")
    for room in sorted(planted):
        print(f"{room:12} {planted[room]:7} {caught[room]:6}")
    print(f"{'all':12} {planted.total():7} {caught.total():6}")
    for verdict in verdicts:
        if verdict.caught_by is None:
            print(f"survived: {verdict.mutant}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m reliability.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="faults to plant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=(), help="plant faults in these rooms alone")
    parser.add_argument("--nearest", action="store_true", help="run the nearest tests alone")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--at-least", type=float, default=0.9, help="share that must be caught")
    parser.add_argument(
        "--report", type=Path, help="a JSON file of verdicts, which a run goes on from"
    )
    options = parser.parse_args()
    mutants = sample(options.count, options.seed, options.only)
    verdicts = run(mutants, options.processes, options.report, nearest_only=options.nearest)
    print_table(verdicts)
    caught = sum(verdict.caught_by is not None for verdict in verdicts)
    print(f"\n{caught} of {len(mutants)} faults caught ({caught / len(mutants):.1%})")
    return 0 if caught >= options.at_least * len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())

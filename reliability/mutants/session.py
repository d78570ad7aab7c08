"""A pytest plugin that runs the collected tests for one fault after another, each in a fork.

Modules are imported and tests collected once. The fork of a fault replaces the code of the
functions that the fault changes; the file holds the fault too, for the processes that tests start
and modules that are imported late. A test that fails without the fault as well is left out.
"""

import contextlib
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from reliability.mutants.faults import Fault

PLANTED, VERDICTS = "PERDURE_MUTANTS_PLANTED", "PERDURE_MUTANTS_VERDICTS"
"""Environment variables: the file of faults to plant, and the descriptor for the verdicts."""

FAULT_SECONDS = 90
"""Seconds after which no further test is begun for a fault: it has survived."""

HANGING_SECONDS = FAULT_SECONDS + 150
"""Seconds after which the tests of a fault hang beyond their own time-out: it is caught."""

STOPPING_SECONDS = 20
"""Seconds for the servers of a fault's tests to stop."""

_failed: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.append(report.nodeid)


def pytest_runtestloop(session: pytest.Session) -> bool:
    functions = _product_functions()
    unreliable: set[str] = set()
    with os.fdopen(int(os.environ[VERDICTS]), "w") as verdicts:
        for planted in json.loads(Path(os.environ[PLANTED]).read_text()):
            path = Path(planted["module"])
            original, modified = path.read_bytes(), path.stat().st_mtime
            changed = Fault(**planted["fault"]).plant(original.decode())
            path.write_text(changed)
            os.utime(path, (time.time(), modified + planted["number"]))  # bytecode goes by it
            pairs = _changed_codes(original.decode(), changed)
            affected = functions.get(os.path.realpath(path), [])
            try:
                items = _nearest_first(session, planted["files"], planted["near"])
                assert items, f"no test of {planted['files']} was collected"
                caught_by = _find_failing(items, unreliable, (affected, pairs), path, original)
            finally:
                path.write_bytes(original)
                os.utime(path, (time.time(), modified))
            verdicts.write(json.dumps({**planted, "caught_by": caught_by}) + "\n")
            verdicts.flush()
    return True


def _nearest_first(session: pytest.Session, files: Sequence[str], near: int) -> list[pytest.Item]:
    """Sort the tests by their files; `long` ones come last, but for those of the `near` files."""
    rank = {os.path.realpath(file): nth for nth, file in enumerate(files)}
    items = [item for item in session.items if os.path.realpath(item.path) in rank]

    def order(item: pytest.Item) -> tuple[bool, int]:
        place = rank[os.path.realpath(item.path)]
        return item.get_closest_marker("long") is not None and place >= near, place

    return sorted(items, key=order)


def _find_failing(
    items: list[pytest.Item],
    unreliable: set[str],
    swap: tuple[list[FunctionType], list[tuple[CodeType, CodeType]]],
    path: Path,
    original: bytes,
) -> str | None:
    """Return the first test that fails with the fault and passes without it."""
    while True:
        tried = [item for item in items if item.nodeid not in unreliable]
        failing = _run_in_fork(tried, swap)
        same = [item for item in tried if item.nodeid == failing]
        if not same:
            return failing
        planted, times = path.read_bytes(), path.stat()
        path.write_bytes(original)
        without = _run_in_fork(same, ([], []))
        path.write_bytes(planted)
        os.utime(path, (times.st_atime, times.st_mtime))
        if without is None:
            return failing
        unreliable.add(same[0].nodeid)


def _run_in_fork(
    items: list[pytest.Item],
    swap: tuple[list[FunctionType], list[tuple[CodeType, CodeType]]],
) -> str | None:
    """Run tests until one fails, and return it, or `time-out` or `crash`."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _swap_codes(*swap)
            failing = _run_until_failure(items)
        except BaseException as error:  # a fault may raise whatever there is
            failing = f"crash: {type(error).__name__}"
        os.write(writing, (failing or "none").encode())
        os.close(writing)
        items[0].session._setupstate.teardown_exact(None)  # stops the servers
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        is_answered = bool(select.select([answer], [], [], HANGING_SECONDS)[0])
        failing = (answer.read(4096) or "crash") if is_answered else "time-out"
    _end(child, STOPPING_SECONDS if is_answered else 0)
    return None if failing == "none" else failing


def _end(child: int, seconds: float) -> None:
    """Wait for a process to stop its servers; kill it and them after `seconds`."""
    until = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            for pid in [*_descendants(child), child]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(0.02)


def _descendants(ancestor: int) -> list[int]:
    """List the processes below another one, parents first."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    below = [ancestor]
    for pid in below:
        below += [child for child, parent in parents.items() if parent == pid]
    return below[1:]


def _run_until_failure(items: list[pytest.Item]) -> str | None:
    _failed.clear()
    deadline = time.monotonic() + FAULT_SECONDS
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if _failed or time.monotonic() > deadline:
            break
    return _failed[0] if _failed else None


def _product_functions() -> dict[str, list[FunctionType]]:
    """The functions of every imported file, by its path."""
    functions: dict[str, list[FunctionType]] = {}
    tree = str(Path.cwd())
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename.startswith(tree):
            functions.setdefault(os.path.realpath(thing.__code__.co_filename), []).append(thing)
    return functions


def _changed_codes(original: str, changed: str) -> list[tuple[CodeType, CodeType]]:
    old, new = (list(_codes(compile(text, "module", "exec"))) for text in (original, changed))
    return [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]


def _codes(code: CodeType) -> Any:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _swap_codes(functions: list[FunctionType], pairs: list[tuple[CodeType, CodeType]]) -> None:
    for function in functions:
        for old, new in pairs:
            if function.__code__ == old and len(old.co_freevars) == len(new.co_freevars):
                function.__code__ = new.replace(co_filename=function.__code__.co_filename)
                break
    sys.stdout.flush()

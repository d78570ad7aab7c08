"""Tests that fail beside others are run again, alone; others' failures stand."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FAILS_ONCE = """
from pathlib import Path

def test_fails_once():
    mark = Path(__file__).with_name("mark")
    has_failed = mark.exists()
    mark.touch()
    assert has_failed
"""
FAILS = "\ndef test_fails_{}():\n    raise AssertionError\n"
PASSES = "\ndef test_passes():\n    pass\n"


def rerun(folder: Path, *tests: str) -> tuple[int, str]:
    path = folder / "test_it.py"
    path.write_text("".join(tests))
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "tests.rerun", "-n", "2", "-c", str(folder / "pytest.ini")]
    done = subprocess.run([*command, str(path)], cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.long
def test_a_test_that_passes_alone_is_named_and_does_not_fail_the_run(tmp_path: Path) -> None:
    code, out = rerun(tmp_path, FAILS_ONCE, PASSES)
    assert code == 0, out
    assert "1 failed, 1 passed" in out
    assert out.rstrip().endswith("::test_fails_once")
    assert "PASSED IN A RERUN ONLY" in out


@pytest.mark.long
def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, out = rerun(tmp_path, FAILS_ONCE, FAILS.format(1))
    assert code == 1
    assert "PASSED IN A RERUN ONLY" not in out


@pytest.mark.long
def test_many_failed_tests_are_not_run_again(tmp_path: Path) -> None:
    code, out = rerun(tmp_path, FAILS_ONCE, *map(FAILS.format, range(3)))
    assert code == 1
    assert "RERUN" not in out


@pytest.mark.long
def test_a_run_without_tests_is_no_success(tmp_path: Path) -> None:
    assert rerun(tmp_path, "")[0] == 5

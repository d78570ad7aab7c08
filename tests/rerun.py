"""Run pytest, and rerun the few tests that fail beside others, alone: `python -m tests.rerun …`.

Four tests at once start some forty servers and workers on two cores, and what waits there for a
minute may wait in vain. A test that fails a second time, or a fourth that fails, fails the run.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MAX_RERUNS = 3
"""The number of failed tests that are run again."""

TESTS_FAILED = 1
"""The exit code of pytest for tests that failed, and for nothing else."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        options = [*sys.argv[1:], "-o", f"cache_dir={folder}"]
        code = run_pytest(options)
        if code != TESTS_FAILED:
            return code
        failed = list_failed(Path(folder))
        if not 0 < len(failed) <= MAX_RERUNS:
            return code
        print(f"\nRERUN, alone, of {len(failed)} that failed above:", *failed, sep="\n  ")
        code = run_pytest([*options, "--last-failed", "--last-failed-no-failures=none", "-n", "0"])
        if code == 0:
            print(
                "\nPASSED IN A RERUN ONLY, so look at why they failed above:", *failed, sep="\n  "
            )
        return code


def run_pytest(options: list[str]) -> int:
    sys.stdout.flush()
    return subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode


def list_failed(cache_folder: Path) -> list[str]:
    """List the ids of the tests that failed, as pytest keeps them."""
    path = cache_folder / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_bytes())) if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())

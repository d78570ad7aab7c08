"""An environment of its own for openhands-sdk, which needs a newer Python than ours.

`make openhands` runs this and then the tests that need it. Exits with 77, the convention for
skipped tests, where there is no such Python: then nothing was checked, and it says so.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.exports.environments import NOT_RUN, Environment

OPENHANDS = Environment("openhands", Path(__file__).with_name("requirements.lock"))
PYTHON = OPENHANDS.python

OLDEST = (3, 12)
NAMES = ("python3.12", "python3.13", "python3.14", "python3", "python")

MISSING = """\
NOT CHECKED: no Python 3.12 or newer was found, so openhands-sdk read nothing of what we export.
Put one on the PATH as python3.12 (pyenv's are found too) and run `make openhands` again."""


def ready() -> bool:
    """Check that the environment exists, with everything in the lock."""
    return OPENHANDS.ready()


def find_new_python() -> str | None:
    """Return the first Python found that can run openhands-sdk; None without any."""
    for command, environment in _candidates():
        code = "import json, sys; print(json.dumps([sys.executable, sys.version_info[:2]]))"
        arguments = [command, "-c", code]
        done = subprocess.run(
            arguments, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            executable, version = json.loads(done.stdout)
            if tuple(version) >= OLDEST:
                return str(executable)
    return None


def _candidates() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield commands with the environment to run them in.

    A Python of pyenv runs only once a version of it has been chosen.
    """
    pythons = [path for name in NAMES if (path := shutil.which(name))]
    yield from ((path, os.environ) for path in pythons)
    if pyenv := shutil.which("pyenv"):
        command = [pyenv, "versions", "--bare"]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        for version in listed:
            yield from ((path, os.environ | {"PYENV_VERSION": version}) for path in pythons)


def main() -> int:
    if ready():
        return 0
    python = find_new_python()
    if python is None:
        print(MISSING, file=sys.stderr)
        return NOT_RUN
    OPENHANDS.build(python)
    return 0


if __name__ == "__main__":
    sys.exit(main())

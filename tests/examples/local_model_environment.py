"""The environment of the local model, apart from ours: `make local-model` builds it.

Exits with 77 where it cannot be installed.
"""

import subprocess
import sys

from tests.exports.environments import NOT_RUN, VENV, Environment

LOCK = VENV.parent / "examples/local_model/requirements.lock"
LOCAL_MODEL = Environment("local-model", LOCK)

MISSING = """\
NOT CHECKED: the local model cannot be installed, so no real model was asked. See above why,
and run `make local-model` again."""


def main() -> int:
    if LOCAL_MODEL.ready():
        return 0
    try:
        LOCAL_MODEL.build(sys.executable)
    except subprocess.CalledProcessError:
        print(MISSING, file=sys.stderr)
        return NOT_RUN
    return 0


if __name__ == "__main__":
    sys.exit(main())

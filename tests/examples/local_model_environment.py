"""The environment of the local model, apart from ours: `make local-model` builds it.

Exits with 77 where it cannot be installed.
"""

import sys

from tests.exports.environments import VENV, Environment, build_unless_ready

LOCK = VENV.parent / "examples/local_model/requirements.lock"
LOCAL_MODEL = Environment("local-model", LOCK)

MISSING = """\
NOT CHECKED: the local model cannot be installed, so no real model was asked. See above why,
and run `make local-model` again."""


if __name__ == "__main__":
    sys.exit(build_unless_ready(LOCAL_MODEL, MISSING))

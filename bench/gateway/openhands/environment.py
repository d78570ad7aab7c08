"""An environment of its own for openhands-agent-server, which needs a newer Python than ours.

`python -m bench.gateway.openhands.environment` builds it. Exits with 77, the convention for what
was skipped, where it cannot be had: then nothing is measured, and it says so.
"""

import subprocess
import sys
from pathlib import Path

from tests.exports.environments import NOT_RUN, Environment
from tests.exports.openhands_environment import find_new_python

AGENT_SERVER = Environment("openhands-agent-server", Path(__file__).with_name("requirements.lock"))

NO_PYTHON = (
    "no Python 3.12 or newer was found for openhands-agent-server: put one on the PATH as"
    " python3.12 (pyenv's are found too)."
)
NO_PACKAGES = "openhands-agent-server cannot be installed: see above why."


def find_obstacle() -> str | None:
    """Build the environment unless it is there; return the reason where that cannot be done."""
    if AGENT_SERVER.ready():
        return None
    python = find_new_python()
    if python is None:
        return NO_PYTHON
    try:
        AGENT_SERVER.build(python)
    except (subprocess.CalledProcessError, OSError):
        return NO_PACKAGES
    return None


if __name__ == "__main__":
    if obstacle := find_obstacle():
        print(f"NOT CHECKED: {obstacle}", file=sys.stderr)
        sys.exit(NOT_RUN)

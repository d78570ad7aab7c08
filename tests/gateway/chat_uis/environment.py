"""Environments of their own for chat UIs: Open WebUI's server, and LibreChat's packages for Node.

`make chat-uis` runs this and then the tests that need them. What cannot be installed is not
checked, and it says so; exits with 77 where that is both.
"""

import sys
from pathlib import Path

from tests.exports.environments import NOT_RUN, Environment, build_unless_ready
from tests.exports.node_packages import NodePackages, build_packages_unless_ready
from tests.gateway.ag_ui.environment import NODE

HERE = Path(__file__).parent

OPEN_WEBUI = Environment("open-webui", HERE / "open_webui.lock")

LIBRECHAT = NodePackages(NODE, "librechat", HERE / "librechat")

NEWEST_PYTHON = (3, 12)
"""The newest Python that Open WebUI allows."""

NO_OPEN_WEBUI = """\
NOT CHECKED: {}, so Open WebUI was not tried. See above why, and run `make chat-uis` again."""

NO_LIBRECHAT = """\
NOT CHECKED: {} cannot be installed, so LibreChat's packages were not tried. See above why, and run
`make chat-uis` again."""


def build_open_webui() -> int:
    """Install Open WebUI unless it is there; return 0, or NOT_RUN."""
    if sys.version_info[:2] > NEWEST_PYTHON:
        print(NO_OPEN_WEBUI.format("it wants a Python older than 3.13"), file=sys.stderr)
        return NOT_RUN
    return build_unless_ready(OPEN_WEBUI, NO_OPEN_WEBUI.format("it cannot be installed"))


def main() -> int:
    return min(build_open_webui(), build_packages_unless_ready(LIBRECHAT, NO_LIBRECHAT))


if __name__ == "__main__":
    sys.exit(main())

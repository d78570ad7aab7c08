"""An environment of its own for AG-UI's client: Node, from a wheel, and packages from npm.

`make ag-ui` runs this and then the tests that need them. Exits with 77 where they cannot be
installed: then nothing was checked, and it says so.
"""

import sys
from pathlib import Path

from tests.exports.environments import Environment
from tests.exports.node_packages import NodePackages, build_packages_unless_ready

CLIENT = Path(__file__).with_name("client")
NODE = Environment("ag-ui", CLIENT / "node.lock")
PACKAGES = NodePackages(NODE, "client", CLIENT)

MISSING = """\
NOT CHECKED: {} cannot be installed, so AG-UI's own client was not tried. See above why, and run
`make ag-ui` again."""


def folder() -> Path:
    """Return the folder in which a program finds the packages."""
    return PACKAGES.place


def node() -> Path:
    return PACKAGES.node


def ready() -> bool:
    """Tell whether the client can be tried."""
    return PACKAGES.ready()


def main() -> int:
    return build_packages_unless_ready(PACKAGES, MISSING)


if __name__ == "__main__":
    sys.exit(main())

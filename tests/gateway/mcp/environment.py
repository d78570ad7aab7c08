"""An environment of its own for the conformance suite of the Model Context Protocol, in Node.

`make mcp-conformance` runs this and then the tests that need it. Exits with 77 where it cannot be
installed: then nothing was checked, and it says so.
"""

import sys
from pathlib import Path

from tests.exports.node_packages import NodePackages, build_packages_unless_ready
from tests.gateway.ag_ui.environment import NODE

PACKAGES = NodePackages(NODE, "mcp-conformance", Path(__file__).with_name("client"))

MISSING = """\
NOT CHECKED: {} cannot be installed, so the conformance suite was not run. See above why, and run
`make mcp-conformance` again."""


def main() -> int:
    return build_packages_unless_ready(PACKAGES, MISSING)


if __name__ == "__main__":
    sys.exit(main())

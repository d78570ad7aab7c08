"""An environment of its own for Schemathesis, which tries everything that OpenAPI allows.

`make fuzz-api` runs this first. Exits with 77 where it cannot be installed.
"""

import sys
from pathlib import Path

from tests.exports.environments import Environment, build_unless_ready

SCHEMATHESIS = Environment("schemathesis", Path(__file__).with_name("schemathesis.lock"))

MISSING = """\
NOT CHECKED: Schemathesis cannot be installed, so nobody tried the native API. See above why, and
run `make fuzz-api` again."""


if __name__ == "__main__":
    sys.exit(build_unless_ready(SCHEMATHESIS, MISSING))

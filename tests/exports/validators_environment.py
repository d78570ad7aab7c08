"""An environment of its own for the validators of ATIF, Mistral and Inspect.

`make validators` runs this and then the tests that need it: their packages conflict with ours.
Exits with 77 where they cannot be installed.
"""

import sys
from pathlib import Path

from tests.exports.environments import Environment, build_unless_ready

VALIDATORS = Environment("validators", Path(__file__).with_name("validators.lock"))

MISSING = """\
NOT CHECKED: the validators cannot be installed, so nobody else read what we export. See above why,
and run `make validators` again."""


if __name__ == "__main__":
    sys.exit(build_unless_ready(VALIDATORS, MISSING))

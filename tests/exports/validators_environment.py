"""An environment of its own for the validators of ATIF, Mistral and Inspect.

`make validators` runs this and then the tests that need it: their packages conflict with ours.
Exits with 77 where they cannot be installed.
"""

import subprocess
import sys
from pathlib import Path

from tests.exports.environments import NOT_RUN, Environment

VALIDATORS = Environment("validators", Path(__file__).with_name("validators.lock"))

MISSING = """\
NOT CHECKED: the validators cannot be installed, so nobody else read what we export. See above why,
and run `make validators` again."""


def main() -> int:
    if VALIDATORS.ready():
        return 0
    try:
        VALIDATORS.build(sys.executable)
    except subprocess.CalledProcessError:
        print(MISSING, file=sys.stderr)
        return NOT_RUN
    return 0


if __name__ == "__main__":
    sys.exit(main())

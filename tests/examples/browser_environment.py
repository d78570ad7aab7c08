"""The browser of examples/browser: Debian's Chromium, and Playwright's MCP server from npm.

`make browser` runs this and then the test that needs them. Exits with 77 where one of them is
missing and cannot be installed: then nothing was checked, and it says so.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.exports.environments import NOT_RUN

MCP_FILE = Path(__file__).parents[2] / "examples/browser/mcp.json"
START_TIMEOUT = 120.0

MISSING = """\
NOT CHECKED: {}, so no agent opened a page. Install it, and run `make browser` again."""


def read_command() -> tuple[str, list[str]]:
    """Return the program that the example starts, and its arguments."""
    server = json.loads(MCP_FILE.read_text())["mcpServers"]["browser"]
    return server["command"], server["args"]


def find_gap(*options: str) -> str | None:
    """Return what is missing, as a clause; `options` are npx's."""
    npx, arguments = read_command()
    browser = arguments[arguments.index("--executable-path") + 1]
    if not Path(browser).exists():
        return f"there is no {browser} (`apt-get install chromium`)"
    if shutil.which(npx) is None:
        return f"there is no `{npx}` (`apt-get install npm`)"
    package = next(word for word in arguments if word.startswith("@"))
    probe = [npx, "-y", *options, package, "--version"]
    try:
        found = subprocess.run(probe, capture_output=True, check=False, timeout=START_TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"npm did not bring {package} in {START_TIMEOUT:g} s"
    if found.returncode != 0:
        return f"npm has no {package} here"
    return None


def main() -> int:
    if gap := find_gap():
        print(MISSING.format(gap), file=sys.stderr)
        return NOT_RUN
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A browser, and an environment of its own for Playwright, which drives it.

`make page` runs this and then the tests that need them. Exits with 77 where there is no browser and
none can be installed: then nothing was checked, and it says so.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.exports.environments import NOT_RUN, Environment, build_unless_ready

PAGE = Environment("page", Path(__file__).with_name("page.lock"))

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

NO_PACKAGES = """\
NOT CHECKED: Playwright cannot be installed, so nothing of the page was tried in a browser. See
above why, and run `make page` again."""

NO_BROWSER = """\
NOT CHECKED: there is no Chromium, so nothing of the page was tried in a browser. Install it with
`apt-get install chromium`, and run `make page` again."""


def find_browser() -> str | None:
    """Return the path of a browser that Playwright can drive."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def ready() -> bool:
    """Tell whether the page can be tried in a browser."""
    return PAGE.ready() and find_browser() is not None


def packages() -> Path:
    """Return the folder of the packages of the environment."""
    return next(iter((PAGE.place / "lib").glob("python*/site-packages")))


def _install_browser() -> None:
    """Install Debian's Chromium, where that is possible."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
    for command in (["apt-get", "update", "-q"], install):
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)


def main() -> int:
    if find_browser() is None:
        _install_browser()
    if find_browser() is None:
        print(NO_BROWSER, file=sys.stderr)
        return NOT_RUN
    return build_unless_ready(PAGE, NO_PACKAGES)


if __name__ == "__main__":
    sys.exit(main())

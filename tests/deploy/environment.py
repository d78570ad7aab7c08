"""The tools that check deploy/: an environment of their own, and promtool of Debian.

`make deploy-check` runs this and then the tests that need them. What is missing is said aloud, and
is not checked: exits with 77 where nothing can be.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.exports.environments import NOT_RUN, Environment, build_unless_ready

DEPLOY = Environment("deploy", Path(__file__).with_name("deploy.lock"))

NO_PACKAGES = """\
NOT CHECKED: Helm, hadolint and the schemas of Kubernetes and Compose cannot be installed, so nobody
has read the image, the chart and compose.yaml. See above why, and run `make deploy-check` again."""

NO_PROMTOOL = """\
NOT CHECKED: there is no promtool, so the alerts were not tried. Install it with
`apt-get install prometheus`, and run `make deploy-check` again."""

NO_DOCKER = """\
NOT CHECKED: there is no Docker daemon here, so the image was not built, and compose.yaml and the
chart were not started."""


def find_promtool() -> str | None:
    """Return the path of promtool."""
    folder = DEPLOY.place / "prometheus" / "usr" / "bin"
    return shutil.which("promtool") or shutil.which("promtool", path=folder)


def fetch_promtool() -> None:
    """Unpack Debian's package without installing its server, where that is possible."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return
    folder = DEPLOY.place / "prometheus"
    folder.mkdir(parents=True, exist_ok=True)
    _run(["apt-get", "update", "-q"], folder)
    _run(["apt-get", "download", "-q", "prometheus"], folder)
    for package in folder.glob("prometheus_*.deb"):
        _run(["dpkg-deb", "-x", str(package), str(folder)], folder)


def has_docker() -> bool:
    """Tell whether a Docker daemon answers."""
    if shutil.which("docker") is None:
        return False
    return _run(["docker", "info"], Path.cwd()) == 0


def _run(command: list[str], folder: Path) -> int:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode


def main() -> int:
    code = build_unless_ready(DEPLOY, NO_PACKAGES)
    if find_promtool() is None:
        fetch_promtool()
    if find_promtool() is None:
        print(NO_PROMTOOL, file=sys.stderr)
    if not has_docker():
        print(NO_DOCKER, file=sys.stderr)
    return NOT_RUN if code == NOT_RUN and find_promtool() is None else 0


if __name__ == "__main__":
    sys.exit(main())

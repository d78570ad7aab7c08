"""Virtual environments for packages that conflict with ours."""

import hashlib
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

VENV = Path(__file__).parents[2] / ".venv"

NOT_RUN = 77
"""Exit code of skipped tests, by convention."""


@dataclass(frozen=True)
class Environment:
    """The packages of a lock, in a folder below our own environment."""

    name: str
    lock: Path

    @property
    def place(self) -> Path:
        return VENV / self.name

    @property
    def python(self) -> Path:
        return self.place / "bin" / "python"

    def ready(self) -> bool:
        """Check that it exists, with everything in the lock."""
        mark = self.place / "ready"
        return mark.exists() and mark.read_text() == self._wanted()

    def build(self, python: str) -> None:
        """Build it anew, with pip where uv cannot. Raises CalledProcessError."""
        subprocess.run([python, "-m", "venv", "--clear", self.place], check=True)
        install, into = ("pip", "install", "--quiet"), str(self.python)
        uv = (str(VENV / "bin" / "uv"), *install, "--python", into)
        pip = (into, "-m", *install, "--disable-pip-version-check", "--no-compile")
        locked = ("--no-deps", "--require-hashes", "-r", str(self.lock))
        if subprocess.run([*uv, *locked], check=False).returncode != 0:
            subprocess.run([*pip, *locked], check=True)
        (self.place / "ready").write_text(self._wanted())

    def _wanted(self) -> str:
        return hashlib.sha256(read_lock(self.lock)).hexdigest()


def read_lock(lock: Path) -> bytes:
    """Read a lock, and those that it names by `-r`."""
    body = lock.read_bytes()
    named = re.findall(rb"^-r (\S+)$", body, re.MULTILINE)
    return body + b"".join(read_lock(lock.parent / name.decode()) for name in named)


def build_unless_ready(environment: Environment, missing: str) -> int:
    """Build the environment with this Python; return 0, or NOT_RUN where it cannot be installed."""
    if environment.ready():
        return 0
    try:
        environment.build(sys.executable)
    except subprocess.CalledProcessError:
        print(missing, file=sys.stderr)
        return NOT_RUN
    return 0

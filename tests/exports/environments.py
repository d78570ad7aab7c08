"""Environments of their own, for what does not go together with what we need ourselves."""

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

VENV = Path(__file__).parents[2] / ".venv"

NOT_RUN = 77
"""How tests that were not run end, by custom."""


@dataclass(frozen=True)
class Environment:
    """What a lock names, in a folder below our own environment."""

    name: str
    lock: Path

    @property
    def place(self) -> Path:
        return VENV / self.name

    @property
    def python(self) -> Path:
        return self.place / "bin" / "python"

    def ready(self) -> bool:
        """Whether it is there, with all that the lock names."""
        mark = self.place / "ready"
        return mark.exists() and mark.read_text() == self._wanted()

    def build(self, python: str) -> None:
        """Make it anew. Raises CalledProcessError."""
        subprocess.run([python, "-m", "venv", "--clear", self.place], check=True)
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        locked = ["--no-compile", "--no-deps", "--require-hashes", "-r", str(self.lock)]
        subprocess.run([*pip, *locked], check=True)
        (self.place / "ready").write_text(self._wanted())

    def _wanted(self) -> str:
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()

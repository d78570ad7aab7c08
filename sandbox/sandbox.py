"""What a sandbox is: how a program is started behind walls, and what those walls do not stop."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sandbox.limits import Limits

UID = 60999
"""Who a root worker's tools are: a number that no system gives to anybody, below 65,536 because
containers often have no higher ones."""


class Unusable(Exception):
    """Why a sandbox cannot be had here, in one sentence that says what to do."""


@dataclass(frozen=True)
class Place:
    """What a program is given of the machine, beside the system's own files to read.

    `terminal` is a descriptor of the terminal that it may open again by its name; `passed` are the
    descriptors that it gets, under the same numbers.
    """

    workspace: Path
    network: bool = False
    reads: tuple[Path, ...] = ()
    terminal: int | None = None
    passed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Launch:
    """What to start. `over.close()` removes what was made for it, once its processes are gone."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    passed: Sequence[int]
    over: ExitStack = field(default_factory=ExitStack)


class Sandbox(Protocol):
    """`gaps` are the things that it does not protect from, each as a part of a sentence."""

    @property
    def name(self) -> str: ...

    @property
    def gaps(self) -> tuple[str, ...]: ...

    @property
    def private(self) -> bool:
        """Whether a program sees no processes but its own, and all of them end with it."""
        ...

    @property
    def limits(self) -> Limits | None:
        """What a program and all that it starts may take, where that is limited."""
        ...

    def prepare(self, workspace: Path) -> None:
        """Let programs write what is in the workspace; may take its time.

        Raises Unusable, OSError.
        """
        ...

    def launch(self, argv: Sequence[str], place: Place, environment: Mapping[str, str]) -> Launch:
        """How to start `argv` in `place`. Raises Unusable, OSError."""
        ...


@dataclass(frozen=True)
class Unconfined:
    """No walls: programs are the worker's user, and see and do what that user may."""

    name: str = "none"
    gaps: tuple[str, ...] = ("anything: commands run as the worker's own user",)
    private: bool = False
    limits: None = None

    def prepare(self, workspace: Path) -> None:
        """They can write what the worker can."""

    def launch(self, argv: Sequence[str], place: Place, environment: Mapping[str, str]) -> Launch:
        return Launch(argv, environment, place.passed)


NONE = Unconfined()


def described(sandbox: Sandbox) -> dict[str, Any]:
    """For the log: what stands between commands and the machine, and what does not."""
    return {"name": sandbox.name, "does_not_protect_from": list(sandbox.gaps)}

"""What is known at one point of a script: variables, functions, files that it wrote."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from tools.risk.marks import BREAK, HOME, UNKNOWN

MOST_VALUES = 64
"""Values that are kept of one variable; beyond, it may hold anything."""

WORK = 400_000
"""Characters and commands that are looked at before a script counts as too involved."""

PATIENCE = 1.0
"""Seconds after which a script that is still being parsed counts as too involved."""

DEEPEST = 60
"""Levels of nesting, of statements, of words in words and of shells in shells."""


class TooInvolved(Exception):
    """A script would take too long to judge; the text says what about it."""


@dataclass
class Budget:
    left: int = WORK
    depth: int = 0
    until: float = field(default_factory=lambda: time.monotonic() + PATIENCE)

    def is_late(self) -> bool:
        return time.monotonic() > self.until

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise TooInvolved("It is too involved to be judged.")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.spend(1)
        if self.depth >= DEEPEST:
            raise TooInvolved("It is nested too deeply to be judged.")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


@dataclass
class Scope:
    """`maybe` is set where a command may be skipped: what was true before may then still be.

    `cwd` has more than one path where it cannot be told which. `files` and `budget` belong to the
    whole script, everything else to one shell.
    """

    cwd: tuple[str, ...]
    variables: dict[str, tuple[str, ...]]
    budget: Budget = field(default_factory=Budget)
    files: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Node] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    maybe: bool = False

    @classmethod
    def fresh(cls, workspace: str) -> "Scope":
        known = {"HOME": HOME, "TMPDIR": "/tmp", "SHELL": "/bin/bash", "BASH": "/bin/bash"}
        known |= {"0": "bash", "IFS": " \t\n", "_": ""}
        scope = cls((workspace,), {name: (value,) for name, value in known.items()})
        scope.give(())
        return scope

    def copy(self) -> "Scope":
        """For a subshell: what it changes ends with it, except files."""
        return replace(
            self,
            variables=dict(self.variables),
            functions=dict(self.functions),
            aliases=dict(self.aliases),
        )

    def value(self, name: str) -> tuple[str, ...]:
        return self.cwd if name == "PWD" else self.variables.get(name, (UNKNOWN,))

    def assign(self, name: str, values: Iterable[str]) -> None:
        old = self.value(name) if self.maybe and name in self.variables else ()
        self.variables[name] = _few((*old, *values))

    def enter(self, directories: Iterable[str]) -> None:
        """`cd`, to one of these."""
        self.variables["OLDPWD"] = self.cwd
        self.cwd = _few((*(self.cwd if self.maybe else ()), *directories))

    def join(self, before: "Scope") -> None:
        """What was true before a command that may have been skipped may still be."""
        self.cwd = _few((*before.cwd, *self.cwd))
        for name, values in before.variables.items():
            if (now := self.variables.get(name, (UNKNOWN,))) is not values:
                self.variables[name] = _few((*values, *now))

    def give(self, arguments: Iterable[str]) -> None:
        """Set the positional parameters."""
        given = tuple(arguments)
        for position in range(1, 10):
            self.variables[str(position)] = given[position - 1 : position] or ("",)
        self.variables["@"] = self.variables["*"] = (BREAK.join(given),)


def _few(values: tuple[str, ...]) -> tuple[str, ...]:
    different = tuple(dict.fromkeys(values))
    return different if len(different) <= MOST_VALUES else (UNKNOWN,)

"""One command of a script, and what a rule may say about it."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tools.risk.finding import Finding
from tools.risk.marks import UNKNOWN
from tools.risk.places import Places


@dataclass(frozen=True)
class Call:
    """`path` is the command as given, `name` what is left of it without a directory.

    `stdin` is None where nothing is piped in; `files` is what the script is known to have written.
    """

    path: str
    name: str
    args: tuple[str, ...]
    stdin: str | None
    places: Places
    files: Mapping[str, str]

    def content(self, name: str) -> str:
        """What the file holds, as far as the script shows it."""
        if name in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
            return UNKNOWN if self.stdin is None else self.stdin
        return written(self.files, self.places.resolved(name))


def written(files: Mapping[str, str], paths: Iterable[str]) -> str:
    """What these files hold, as far as the script shows it; it is known to have written `files`."""
    return "\n".join(dict.fromkeys(files.get(path, UNKNOWN) for path in paths))


@dataclass(frozen=True)
class Script:
    """The command runs this text in a shell, with `args` as its positional parameters.

    `here` says that it is this very shell, which keeps what the text sets.
    """

    text: str
    args: tuple[str, ...] = ()
    here: bool = False


@dataclass(frozen=True)
class Argv:
    """The command runs another one."""

    words: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """The command leaves a file that holds this text."""

    name: str
    text: str


Step: TypeAlias = Finding | Script | Argv | Made
Rule: TypeAlias = Callable[[Call], Iterator[Step]]


def group(names: str, rule: Rule) -> dict[str, Rule]:
    """One rule for several commands."""
    return dict.fromkeys(names.split(), rule)


_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True)
class Options:
    """The arguments of a command, sorted; `values` holds those of the options that take one."""

    flags: frozenset[str]
    values: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Whether one is given; a long one may be cut short."""
        return any(
            flag in names
            or (len(flag) > 3 and flag[:2] == "--" and any(n.startswith(flag) for n in names))
            for flag in self.flags
        )

    def of(self, *names: str) -> list[str]:
        return [value for name, value in self.values if name in names]


def options(args: tuple[str, ...], takes: str = "", *, permute: bool = True) -> Options:
    """Sort arguments as getopt does; `takes` lists the options that are followed by a value.

    Without `permute` everything from the first operand on is one.
    """
    taking, rest = frozenset(takes.split()), deque(args)
    flags: set[str] = set()
    values: list[tuple[str, str]] = []
    operands: list[str] = []
    while rest:
        arg = rest.popleft()
        if arg == "--":
            operands += rest
            break
        if not arg.startswith("-") or arg == "-":
            operands.append(arg)
            if not permute:
                operands += rest
                break
            continue
        names, value = _taken(arg, taking)
        flags.update(names)
        if names[-1] in taking:
            if value is None:
                value = rest.popleft() if rest else ""
            values.append((names[-1], value))
        elif value is not None:
            values.append((names[-1], value))
    return Options(frozenset(flags), tuple(values), tuple(operands))


def _taken(arg: str, taking: frozenset[str]) -> tuple[list[str], str | None]:
    """The options that one argument names, and the value in it of the last one."""
    if arg.startswith("--") or arg in taking:
        name, equals, value = arg.partition("=")
        return [name], value if equals else None
    names: list[str] = []
    for at, letter in enumerate(arg[1:], start=2):
        names.append(f"-{letter}")
        if names[-1] in taking:
            return names, arg[at:] or None
    return names, None


def assignments(words: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Leading `NAME=value` words, and what comes after them."""
    count = next((at for at, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    split = (word.partition("=") for word in words[:count])
    return {name: value for name, _, value in split}, words[count:]

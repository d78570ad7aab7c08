"""Builtins that change the shell they run in, and variables that others obey."""

import re
from collections.abc import Callable, Iterator

from tools.risk.call import Call, Script, Step, options
from tools.risk.finding import high, medium
from tools.risk.marks import BREAK, HOME, UNKNOWN
from tools.risk.scope import Scope

Builtin = Callable[[Call, Scope], Iterator[Step]]

_COMMANDS = re.compile(
    r"PAGER|MANPAGER|GIT_PAGER|EDITOR|VISUAL|GIT_EDITOR|BROWSER|LESSOPEN|PROMPT_COMMAND"
    r"|GIT_(SSH_COMMAND|EXTERNAL_DIFF|SEQUENCE_EDITOR|ASKPASS|PROXY_COMMAND)|SSH_ASKPASS"
)
_LOADED = ("LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "PYTHONSTARTUP", "DYLD_INSERT_LIBRARIES")


def assigned(name: str, value: str) -> Iterator[Step]:
    """What it means that the variable now has this value."""
    if _COMMANDS.fullmatch(name) and value:
        yield Script(value)
    elif name in _LOADED and value:
        yield medium(f"It makes other programs load code of its own, with {name}.")
    elif (name == "HISTFILE" and value in ("", "/dev/null")) or (name, value) == ("HISTSIZE", "0"):
        yield high("It keeps commands out of the shell's history.")


def _cd(call: Call, scope: Scope) -> Iterator[Step]:
    names = [arg for arg in call.args if arg == "-" or not arg.startswith("-")] or [HOME]
    if call.name == "popd" or names == ["-"]:
        scope.enter(scope.value("OLDPWD"))
    else:
        scope.enter(path for name in names for path in call.places.resolved(name))
    yield from ()


def _eval(call: Call, scope: Scope) -> Iterator[Step]:  # noqa: ARG001
    yield Script(" ".join(call.args), here=True)


def _source(call: Call, scope: Scope) -> Iterator[Step]:  # noqa: ARG001
    # A file that is there already is the workspace's own; only what this script made is known.
    if call.args and (text := call.content(call.args[0])) != UNKNOWN:
        yield Script(text, here=True)


def _trap(call: Call, scope: Scope) -> Iterator[Step]:  # noqa: ARG001
    if len(call.args) > 1 and call.args[0] != "-":
        yield Script(call.args[0])


def _alias(call: Call, scope: Scope) -> Iterator[Step]:
    for arg in call.args:
        name, equals, value = arg.partition("=")
        if equals:
            scope.aliases[name] = value
            yield Script(value)


def _unalias(call: Call, scope: Scope) -> Iterator[Step]:
    for name in call.args:
        scope.aliases.pop(name, None)
    yield from ()


def _read(call: Call, scope: Scope) -> Iterator[Step]:
    """A variable may become any line or any word of the input."""
    lines = (call.stdin or UNKNOWN).splitlines() or [""]
    words = (word for line in lines for word in (line, *line.split()))
    values = tuple(words)
    for name in options(call.args, "-d -i -n -N -p -t -u -a").operands or ("REPLY",):
        scope.assign(name, values)
    for name in options(call.args, "-d -i -n -N -p -t -u -a").of("-a"):
        scope.assign(name, (BREAK.join(values),))
    yield from ()


def _mapfile(call: Call, scope: Scope) -> Iterator[Step]:
    for name in options(call.args, "-d -n -O -s -u -C -c").operands or ("MAPFILE",):
        scope.assign(name, (BREAK.join((call.stdin or UNKNOWN).splitlines()),))
    yield from ()


def _printf(call: Call, scope: Scope) -> Iterator[Step]:
    for name in options(call.args, "-v", permute=False).of("-v"):
        scope.assign(name, (UNKNOWN,))
    yield from ()


def _set(call: Call, scope: Scope) -> Iterator[Step]:
    if "--" in call.args:
        scope.give(call.args[call.args.index("--") + 1 :])
    elif call.args and not call.args[0].startswith(("-", "+")):
        scope.give(call.args)
    if call.args[:2] == ("+o", "history"):
        yield high("It keeps commands out of the shell's history.")


def _shift(call: Call, scope: Scope) -> Iterator[Step]:
    count = int(call.args[0][:3]) if call.args and call.args[0].isdecimal() else 1
    scope.give(scope.value("@")[0].split(BREAK)[count:])
    yield from ()


BUILTINS: dict[str, Builtin] = {
    **dict.fromkeys(("cd", "pushd", "popd"), _cd),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("mapfile", "readarray"), _mapfile),
    "eval": _eval,
    "trap": _trap,
    "alias": _alias,
    "unalias": _unalias,
    "read": _read,
    "printf": _printf,
    "set": _set,
    "shift": _shift,
}

"""Commands that run other commands."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tools.risk.call import Argv, Call, Options, Rule, Script, Step, assignments, group, options
from tools.risk.finding import Finding, high, medium
from tools.risk.marks import BREAK, UNKNOWN
from tools.risk.output import starts
from tools.risk.places import deleting, writing

_PRIVILEGE = high("It runs as another user, with that one's rights.")
_BACKGROUND = medium("It leaves a process running in the background.")


@dataclass(frozen=True)
class Wrapper:
    """`takes` are the options with a value; `skips` counts the operands before the command."""

    takes: str = ""
    skips: int = 0
    finding: Finding | None = None

    def __call__(self, call: Call) -> Iterator[Step]:
        if self.finding is not None:
            yield self.finding
        given = options(call.args, self.takes, permute=False)
        variables, words = assignments(given.operands[self.skips :])
        if words:
            yield Argv(words, variables)


def _su(call: Call) -> Iterator[Step]:
    yield _PRIVILEGE
    for text in options(call.args, "-c -s -g --command --shell").of("-c", "--command"):
        yield Script(text)


def _env(call: Call) -> Iterator[Step]:
    given = options(call.args, "-u -C -S --unset --chdir --split-string", permute=False)
    variables, words = assignments(given.operands)
    for text in given.of("-S", "--split-string"):
        yield Script(" ".join((text, *map(shlex.quote, words))))
        return
    if words:
        yield Argv(words, variables)


def _command(call: Call) -> Iterator[Step]:
    given = options(call.args, permute=False)
    if given.operands and not given.has("-v", "-V"):
        yield Argv(given.operands)


def _xargs(call: Call) -> Iterator[Step]:
    takes = "-I -n -P -L -d -a -E -s --max-args --max-procs --delimiter --arg-file"
    given = options(call.args, takes, permute=False)
    if not given.operands:
        return
    piped = UNKNOWN if call.stdin is None or given.of("-a", "--arg-file") else call.stdin
    words = tuple(piped.replace("\0", " ").replace(BREAK, " ").split())[:1000]
    if marker := (*given.of("-I"), *(("{}",) if given.has("-i", "--replace") else ())):
        for word in words:
            yield Argv(tuple(arg.replace(marker[0], word) for arg in given.operands))
    else:
        yield Argv((*given.operands, *words))


def _find(call: Call) -> Iterator[Step]:
    found = [f"{start.rstrip('/')}/{UNKNOWN}" for start in starts(call)]
    args = list(call.args)
    for at, arg in enumerate(args):
        if arg == "-delete":
            for name in found:
                yield from deleting(call.places, name, recursive=True)
        elif arg in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = args[at + 1 :]
            end = next((i for i, word in enumerate(rest) if word in (";", "+")), len(rest))
            for name in found:
                yield Argv(tuple(word.replace("{}", name) for word in rest[:end]))
        elif arg in ("-fprint", "-fprint0", "-fprintf", "-fls"):
            for name in args[at + 1 : at + 2]:
                yield from writing(call.places, name)


def _shell(call: Call) -> Iterator[Step]:
    given = options(call.args, "-o -O --rcfile --init-file", permute=False)
    for name in given.of("--rcfile", "--init-file"):
        yield from _script(call, name, ())
    if given.has("-c"):
        if given.operands:
            yield Script(given.operands[0], given.operands[2:])
    elif given.operands and not given.has("-s"):
        yield from _script(call, given.operands[0], given.operands[1:])
    elif call.stdin is not None:
        yield Script(call.stdin, given.operands)


def _script(call: Call, name: str, args: tuple[str, ...]) -> Iterator[Step]:
    text = call.stdin or "" if name == "-" else call.content(name)
    # A file that is there already is the workspace's own; only what this script made is known.
    if text.strip() != UNKNOWN:
        yield Script(text, args)


def _joined(call: Call) -> Iterator[Step]:
    given = options(call.args, "-n -d -t --interval", permute=False)
    if given.operands:
        yield Script(" ".join(given.operands))


def _of_option(given: Options, *names: str) -> Iterator[Step]:
    yield from (Script(text) for text in given.of(*names))


def _flock(call: Call) -> Iterator[Step]:
    given = options(call.args, "-w -E -c --timeout --command", permute=False)
    yield from _of_option(given, "-c", "--command")
    rest = given.operands[1:]
    if rest[:1] == ("-c",):
        yield from (Script(text) for text in rest[1:2])
    elif rest:
        yield Argv(rest)


def _typescript(call: Call) -> Iterator[Step]:
    given = options(call.args, "-c -E -I -O -B -T --command")
    yield from _of_option(given, "-c", "--command")
    for name in given.operands:
        yield from writing(call.places, name)


def _parallel(call: Call) -> Iterator[Step]:
    given = options(call.args, "-j -P -n -N -I --jobs --delay --timeout", permute=False)
    words = given.operands
    end = next((at for at, word in enumerate(words) if word.startswith(":::")), len(words))
    listed = words[end + 1 :] or tuple((call.stdin or UNKNOWN).split())
    template = words[:end] if any("{}" in word for word in words[:end]) else (*words[:end], "{}")
    for item in listed[:1000]:
        yield Script(" ".join(word.replace("{}", item) for word in template))


def _runner(call: Call) -> Iterator[Step]:
    """`uv run`, `poetry run` and their kind."""
    given = options(call.args, "--with --python -p -n --name --project --directory", permute=False)
    if given.operands[:1] in (("run",), ("exec",)) and len(given.operands) > 1:
        inner = options(given.operands[1:], "--with --python -p -n --name", permute=False)
        if inner.operands:
            yield Argv(inner.operands)


WRAPPERS: dict[str, Rule] = {
    "sudo": Wrapper("-u -g -h -p -C -D -R -T -r -t --user --group", finding=_PRIVILEGE),
    "doas": Wrapper("-u -C", finding=_PRIVILEGE),
    "pkexec": Wrapper("--user", finding=_PRIVILEGE),
    "runuser": Wrapper("-u -g", finding=_PRIVILEGE),
    "su": _su,
    "env": _env,
    "nohup": Wrapper(finding=_BACKGROUND),
    "setsid": Wrapper(finding=_BACKGROUND),
    "disown": Wrapper(finding=_BACKGROUND),
    "systemd-run": Wrapper("-u -p -t", finding=_BACKGROUND),
    "timeout": Wrapper("-s -k --signal --kill-after", skips=1),
    "nice": Wrapper("-n --adjustment"),
    "ionice": Wrapper("-c -n -p"),
    "stdbuf": Wrapper("-i -o -e"),
    "time": Wrapper("-f -o"),
    "exec": Wrapper("-a"),
    "builtin": Wrapper(),
    "command": _command,
    "coproc": Wrapper(finding=_BACKGROUND),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "chroot": Wrapper(skips=1, finding=_PRIVILEGE),
    "nsenter": Wrapper("-t -S -G", finding=_PRIVILEGE),
    "unshare": Wrapper("-R -w -S -G"),
    "fakeroot": Wrapper(),
    "proot": Wrapper("-r -b -w"),
    "taskset": Wrapper(skips=1),
    "chrt": Wrapper(skips=1),
    "strace": Wrapper("-e -o -p -s -u -E"),
    "ltrace": Wrapper("-e -o -p -s -u"),
    "unbuffer": Wrapper(),
    "chronic": Wrapper(),
    "catchsegv": Wrapper(),
    "{": Wrapper(),
    "!": Wrapper(),
    "xargs": _xargs,
    "find": _find,
    "watch": _joined,
    "flock": _flock,
    "script": _typescript,
    "parallel": _parallel,
    **group("uv poetry pipenv hatch pdm conda mamba", _runner),
    **group("sh bash zsh dash ksh ash mksh fish rbash csh tcsh", _shell),
}

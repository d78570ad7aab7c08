"""git, which can do about everything."""

import re
from collections.abc import Iterator
from dataclasses import replace

from tools.risk.call import Argv, Call, Rule, Script, Step, options
from tools.risk.finding import Finding, high, medium
from tools.risk.places import writing

_GLOBAL = "-C -c --git-dir --work-tree --namespace --exec-path --config-env"
_LOSES = medium("It throws away changes or commits.")
_REMOTE = frozenset(
    ["fetch", "pull", "clone", "push", "ls-remote", "submodule", "remote", "send-email"]
)
_OBEYED = re.compile(
    r"(core\.(hookspath|sshcommand|fsmonitor|pager|editor|askpass|gitproxy)|.*\.(textconv|driver|cmd"
    r"|helper|process|smudge|clean|command|uploadpack|receivepack)|alias\..*|pager\..*"
    r"|include(if)?\..*|gpg\..*program|sequence\.editor|protocol\..*)$",
    re.IGNORECASE,
)


def git(call: Call) -> Iterator[Step]:
    given = options(call.args, _GLOBAL, permute=False)
    for setting in given.of("-c", "--config-env"):
        yield from _setting(*setting.partition("=")[::2])
    if not given.operands:
        return
    name, args = given.operands[0], given.operands[1:]
    for directory in given.of("-C", "--work-tree", "--git-dir"):
        if name not in _READING:
            yield from writing(call.places, directory)
    if name in _REMOTE:
        yield medium("It talks to another machine.")
    if rule := _SUBCOMMANDS.get(name):
        yield from rule(replace(call, args=args))


_READING = frozenset(
    [
        "status",
        "diff",
        "log",
        "show",
        "blame",
        "grep",
        "ls-files",
        "rev-parse",
        "describe",
        "shortlog",
    ]
)


def _setting(key: str, value: str) -> Iterator[Step]:
    if key.lower().startswith("alias.") and not value.startswith("!"):
        return
    if _OBEYED.match(key):
        yield high(f"It makes git run or obey something else: {key}.")
        yield Script(value.removeprefix("!"))


def _push(call: Call) -> Iterator[Step]:
    given = options(call.args, "-o")
    forced = given.has(
        "-f", "--force", "--force-with-lease", "--mirror", "--delete", "-d", "--prune"
    )
    if forced or any(name.startswith(("+", ":")) for name in given.operands):
        yield high("It overwrites or deletes what others have fetched.")


def _config(call: Call) -> Iterator[Step]:
    given = options(call.args)
    if given.has("--global", "--system"):
        yield medium("It changes git's settings for other repositories too.")
    if len(given.operands) > 1:
        yield from _setting(given.operands[0], given.operands[1])


def _clone(call: Call) -> Iterator[Step]:
    given = options(call.args, "-b -o --depth --branch -c --config --reference")
    for name in given.operands[1:2] or (".",):
        yield from writing(call.places, name)


def _into(call: Call) -> Iterator[Step]:
    given = options(call.args, "-o --output --format --output-directory -b")
    for name in given.of("-o", "--output", "--output-directory"):
        yield from writing(call.places, name)


def _init(call: Call) -> Iterator[Step]:
    for name in options(call.args, "-b --template").operands[:1] or (".",):
        yield from writing(call.places, name)


def _worktree(call: Call) -> Iterator[Step]:
    given = options(call.args, "-b -B")
    for name in given.operands[1:2]:
        yield from writing(call.places, name)


def _runs(call: Call) -> Iterator[Step]:
    """`rebase --exec`, `bisect run`, `submodule foreach`."""
    given = options(call.args, "-x --exec --onto")
    for text in given.of("-x", "--exec"):
        yield Script(text)
    words = given.operands[1:]
    if given.operands[:1] == ("run",):
        yield Argv(words)
    elif given.operands[:1] == ("foreach",):
        yield Script(" ".join(words))


def _if(finding: Finding, *flags: str, words: tuple[str, ...] = ()) -> Rule:
    """`finding` where one of these flags or words is given; always where none is named."""

    def rule(call: Call) -> Iterator[Step]:
        given = options(call.args)
        if given.has(*flags) or set(words) & set(call.args) or not (flags or words):
            yield finding

    return rule


_REWRITES = high("It rewrites or wipes the history of a repository.")

_SUBCOMMANDS: dict[str, Rule] = {
    "push": _push,
    "config": _config,
    "clone": _clone,
    "init": _init,
    "archive": _into,
    "format-patch": _into,
    "worktree": _worktree,
    "rebase": _runs,
    "bisect": _runs,
    "submodule": _runs,
    "filter-branch": _if(_REWRITES),
    "filter-repo": _if(_REWRITES),
    "reflog": _if(_REWRITES, words=("expire", "delete")),
    "update-ref": _if(_REWRITES, "-d"),
    "credential": _if(high("It reveals credentials."), words=("fill",)),
    "reset": _if(_LOSES, "--hard", "--merge"),
    "clean": _if(_LOSES, "-f", "--force"),
    "checkout": _if(_LOSES, "-f", "--force", words=("--", ".")),
    "switch": _if(_LOSES, "-f", "--force", "--discard-changes"),
    "restore": _if(_LOSES),
    "rm": _if(_LOSES, "-r", "-f"),
    "branch": _if(_LOSES, "-D", "--delete", "-d"),
    "tag": _if(_LOSES, "-d", "--delete"),
    "stash": _if(_LOSES, words=("drop", "clear")),
    "gc": _if(_LOSES, "--prune"),
    "prune": _if(_LOSES),
}

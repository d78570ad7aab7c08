"""What is known of the commands, by their names."""

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import replace

from tools.risk.call import Call, Rule, Script, Step
from tools.risk.code import CODE, code, provenance
from tools.risk.files import FILES
from tools.risk.finding import Finding, high, medium
from tools.risk.marks import DECODED, NETWORK, UNKNOWN, is_known, origin
from tools.risk.network import NETWORKED
from tools.risk.places import reading
from tools.risk.services import SERVICES
from tools.risk.wrappers import WRAPPERS

RULES: dict[str, tuple[Rule, ...]] = {}
for _table in (WRAPPERS, CODE, FILES, NETWORKED, SERVICES):
    for _name, _rule in _table.items():
        RULES[_name] = (*RULES.get(_name, ()), _rule)

MOST_CANDIDATES = 8
"""Commands that a pattern may mean, before it may mean any."""

# They say something of their arguments, or name them, without looking into them.
_NOT_READING = re.compile(
    r"echo|printf|ls|stat|test|\[|mkdir|touch|chmod|chown|cd|pushd|export|dirname|basename|true|:"
    r"|readlink|realpath|find|du|file|which|type|trap"
)
_VERSIONED = re.compile(r"(python|pip|perl|ruby|lua|node|php|gcc|g\+\+|clang)[\d.]+")
_GLOB = re.compile(r"[*?\[]")
_OPTION = re.compile(r"(?:-{1,2}[A-Za-z0-9-]+=|[a-z]+=|@|-[A-Za-z](?=[/~.]))?(.*)", re.DOTALL)
_SHELLS = ("sh", "bash", "zsh", "dash", "ksh", "ash", "env bash", "env sh")


def rules(call: Call) -> Iterator[Step]:
    """What every rule says about one command."""
    names = _candidates(call.name)
    yield from _named_by(call.path)
    if len(names) > MOST_CANDIDATES:
        yield medium("It runs a command whose name only the run will tell.")
        return
    if "/" in call.path:
        yield from program(call, call.path)
    if not _NOT_READING.fullmatch(call.name):
        for arg in call.args:
            yield from _read(call, arg)
    for name in names:
        for rule in RULES.get(name, ()):
            yield from rule(replace(call, name=name))


def program(call: Call, path: str) -> Iterator[Step]:
    """Running the file `path`, as far as the script itself has made it."""
    text = call.content(path)
    if text.strip() == UNKNOWN:
        return
    yield from provenance(text)
    first = text.partition("\n")[0]
    if not first.startswith("#!") or first.endswith(_SHELLS):
        yield Script(text)
    elif is_known(text):
        yield from code(text, call)


def _named_by(path: str) -> Iterator[Finding]:
    if NETWORK in path or DECODED in path:
        yield high("It runs a command whose name it downloads or decodes.")
    elif origin(path):
        yield medium("It runs a command whose name only the run will tell.")


def _candidates(name: str) -> list[str]:
    """The commands that the name may mean."""
    if name.startswith("mkfs."):
        return ["mkfs"]
    if name in RULES:
        return [name]
    if match := _VERSIONED.fullmatch(name):
        return [match[1]]
    if _GLOB.search(name):
        return [known for known in RULES if fnmatch.fnmatchcase(known, name)]
    return []


def _read(call: Call, arg: str) -> Iterator[Finding]:
    if len(arg) < 4096 and not re.search(r"\s", arg) and (found := _OPTION.fullmatch(arg)):
        yield from reading(call.places, found[1])

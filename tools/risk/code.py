"""Interpreters, and programs that are given to them as an argument or through a pipe."""

import re
import shlex
from collections.abc import Iterator

from tools.risk.call import Argv, Call, Rule, Script, Step, group, options
from tools.risk.finding import Finding, high, medium
from tools.risk.marks import DECODED, HOME, NETWORK, UNKNOWN, origin, without_holes
from tools.risk.places import deleting, reading, writing

MOST_LITERALS = 200
"""Strings of a program that are looked into, as each may be a script of its own."""

_LITERAL = re.compile(
    r"\"\"\"(.*?)\"\"\"|'''(.*?)'''|\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`"
    r"|\b(?:qx|qw|q|qq)\s*[{(/|]([^})/|]*)[})/|]",
    re.DOTALL,
)
_LIST = re.compile(r"[\[(]\s*((?:(?:\"[^\"\n]*\"|'[^'\n]*')\s*,\s*)+(?:\"[^\"\n]*\"|'[^'\n]*'))")
_RUNS = re.compile(
    r"\b(system|popen|Popen|exec\w*|spawn\w*|check_call|check_output|getoutput|getstatusoutput|call"
    r"|run|shell_exec|passthru|proc_open|qx|eval|pty)\b|`"
)
_DELETES = re.compile(
    r"\b(rmtree|unlink|removedirs|rmdir|rmSync|rmdirSync|unlinkSync|rm_rf?|remove"
    r"|remove_tree|rm|deleteSync)\b"
)
_WRITES = re.compile(
    r"\b(open|write_text|write_bytes|writeFile\w*|appendFile\w*|rename|replace|copy\w*|move|truncate"
    r"|chmod|chown|symlink|makedirs|mkdir|touch|file_put_contents|fopen)\b\s*\(|>\s*\""
)
_FETCHES = re.compile(
    r"\b(urlopen|urlretrieve|requests|httpx|aiohttp|http|https|fetch|LWP|socket"
    r"|file_get_contents|open-uri|TCPSocket)\b"
)
_DECODES = re.compile(
    r"\b(b64decode|b32decode|fromhex|unhexlify|atob|decode_base64|base64_decode"
    r"|rot13|chr|fromCharCode|unpack|pack|decompress|marshal|codecs)\b"
)
_SHELL_BACK = re.compile(r"\b(dup2|pty\.spawn)\b")


def provenance(text: str) -> Iterator[Finding]:
    """What it means to run `text` as a program."""
    if NETWORK in text:
        yield high("It runs what the network answers.")
    elif DECODED in text:
        yield high("It runs what it has only just decoded.")
    elif origin(text) and not without_holes(text).strip():
        yield medium("It runs a script that only the run will tell.")


def inline(text: str, call: Call) -> Iterator[Step]:
    """A program that is given with the command."""
    yield medium("It runs code that is given with the command.")
    yield from code(text, call)


def code(text: str, call: Call) -> Iterator[Step]:
    """A program in another language than the shell's: what its calls and its strings tell."""
    yield from provenance(text)
    if re.search(r"\bfork\b", text):
        yield high("It starts copies of itself.")
    if _SHELL_BACK.search(text):
        yield high("It hands a shell to somebody else.")
    runs = _RUNS.search(text)
    if runs and _DECODES.search(text):
        yield high("It runs what it has only just decoded.")
    if runs and runs[0] in ("exec", "eval") and _FETCHES.search(text):
        yield high("It runs what the network answers.")
    literals = _literals(text)
    if runs:
        yield from (Script(literal) for literal in literals)
        yield from (Script(shlex.join(_literals(found))) for found in _LIST.findall(text))
    yield from _paths(text, literals, call)


def _literals(text: str) -> list[str]:
    found = ("".join(groups) for groups in _LITERAL.findall(text))
    return [literal for literal in found if literal.strip()][:MOST_LITERALS]


def _paths(text: str, literals: list[str], call: Call) -> Iterator[Step]:
    deletes, writes = _DELETES.search(text), _WRITES.search(text)
    recursive = bool(deletes) and bool(re.search(r"tree|rm_r|rm_rf|recursive", text))
    for literal in literals:
        name = HOME + literal[1:] if literal[:1] == "~" else literal
        if not re.fullmatch(r"\S{1,4096}", name):
            continue
        yield from reading(call.places, name)
        if not re.match(r"/|\.\.?(/|$)", name):
            continue
        if deletes:
            yield from deleting(call.places, name, recursive=recursive)
        elif writes and not _only_reads(text):
            yield from writing(call.places, name)


def _only_reads(text: str) -> bool:
    """Whether all that is opened is opened for reading."""
    others = _WRITES.findall(text)
    modes = re.search(r"open\s*\([^)]*,\s*(mode\s*=\s*)?[\"'](?=[^\"']*[wax+])|>\s*\"", text)
    return all(name == "open" for name in others) and not modes


def _interpreter(takes: str, *given_by: str) -> Rule:
    """A command that runs the value of one of the options `given_by`, a file, or its input."""

    def rule(call: Call) -> Iterator[Step]:
        given = options(call.args, f"{takes} {' '.join(given_by)}", permute=False)
        for text in given.of(*given_by):
            yield from inline(text, call)
        if given.has("-i") and call.name in ("perl", "ruby"):
            for name in given.operands:
                yield from writing(call.places, name)
        if given.of(*given_by) or given.has("-V", "--version", "-v"):
            return
        name = given.operands[0] if given.operands else "-"
        if name != "-" and (text := call.content(name)).strip() != UNKNOWN:
            yield from code(text, call)
        elif name == "-" and call.stdin and call.stdin.strip():
            yield from inline(call.stdin, call)

    return rule


_PYTHON = _interpreter("-m -W -X --check-hash-based-pycs", "-c")


def _python(call: Call) -> Iterator[Step]:
    given = options(call.args, "-c -m -W -X --check-hash-based-pycs", permute=False)
    modules = given.of("-m")
    if not modules or given.of("-c"):
        yield from _PYTHON(call)
    elif modules[0] in ("pip", "twine", "pipx", "poetry", "hatch", "flit", "build"):
        yield Argv((modules[0], *given.operands))
    elif modules[0] in ("http.server", "SimpleHTTPServer"):
        yield medium("It offers files to the network.")
    elif modules[0] in ("venv", "virtualenv"):
        for name in given.operands:
            yield from writing(call.places, name)


def _awk(call: Call) -> Iterator[Step]:
    given = options(call.args, "-F -v -f -e --field-separator --assign --file")
    for text in given.of("-e") or given.operands[:1]:
        if re.search(r"\b(system|getline)\b|\|\s*[\"&]|\|\s*getline|>\s*\"", text):
            yield from inline(text, call)


CODE: dict[str, Rule] = {
    **group("python pypy ipython", _python),
    **group("perl", _interpreter("-I -M -m -F -0", "-e", "-E")),
    "ruby": _interpreter("-I -r", "-e"),
    **group("node nodejs bun", _interpreter("-r --require", "-e", "-p", "--eval", "--print")),
    "php": _interpreter("-d -c", "-r"),
    **group("lua luajit", _interpreter("-l", "-e")),
    "Rscript": _interpreter("", "-e"),
    "osascript": _interpreter("-l", "-e"),
    **group("tclsh expect", _interpreter("", "-c")),
    **group("awk gawk mawk nawk", _awk),
}

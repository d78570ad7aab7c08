"""The effects of a single command: its findings, what else it runs and writes, what it prints."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeAlias

from perdure.tools.risk import table
from perdure.tools.risk.finding import (
    BREAK,
    DECODED,
    HOME,
    NETWORK,
    SECRET,
    UNKNOWN,
    Finding,
    drop_holes,
    high,
    medium,
    worst_mark,
)
from perdure.tools.risk.paths import MAX_PATH_CHARACTERS, Paths
from perdure.tools.risk.syntax import split_options, unescape

MAX_ARGUMENTS = 500
"""Arguments of one command that patterns are looked for in."""
MAX_LITERALS = 200
"""Strings of a program that are looked at."""

_EDITORS = {"sed": "-e -f", "gsed": "-e -f", "perl": "-e", "ruby": "-e"}
_NOT_READING = re.compile(
    r"echo|printf|ls|stat|test|\[|mkdir|touch|chmod|chown|cd|pushd|export|dirname|basename|true|:"
    r"|readlink|realpath|find|du|file|which|type|trap"
)
_PATH_IN_ARGUMENT = re.compile(r"(?:--?[A-Za-z0-9-]+=|[a-z]+=|@|-[A-Za-z](?=[/~.]))?(\S{0,4096})")
_LITERAL = re.compile(
    r"(?s)\"\"\"(.*?)\"\"\"|'''(.*?)'''|\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`"
)
_RUNS = re.compile(r"(?i)system|popen|exec|spawn|check_|getoutput|call|run|passthru|eval|`")
_CHANGES = re.compile(
    r"rmtree|unlink|remove|\brm|delete|write|append|rename|replace|copy|move|truncate|chmod|chown"
    r"|symlink|mkdir|makedirs|touch|put_contents|open\s*\([^)]*,\s*(mode\s*=\s*)?[\"'][^\"']*[wax+>]"
)
_FETCHES = re.compile(r"urlopen|urlretrieve|requests|httpx|https?:|fetch|LWP|socket")
_DECODES = re.compile(r"decode|fromhex|unhexlify|atob|\bchr\b|fromCharCode|unpack|decompress")
_PROGRAMS = re.compile(r"(MAN|GIT_)?PAGER|(GIT_)?EDITOR|VISUAL|BROWSER|PROMPT_COMMAND|GIT_\w+")
_PRELOADS = re.compile(r"LD_PRELOAD|LD_AUDIT|(BASH_)?ENV|PYTHONSTARTUP|DYLD_INSERT_LIBRARIES")
_NETWORK_RUN = high("It runs what the network answers.")
_DECODED_RUN = high("It runs what it has only just decoded.")


@dataclass(frozen=True)
class Command:
    """A command as it is called, with what is piped in (None: nothing)."""

    path: str
    args: tuple[str, ...]
    stdin: str | None
    paths: Paths
    files: Mapping[str, str]
    """The texts of the files that the script itself has written."""

    @property
    def name(self) -> str:
        name = drop_holes(self.path).rpartition("/")[2]
        return re.sub(r"^(python|pip|perl|ruby|lua|node|php)[\d.]+$|^(mkfs)\..*", r"\1\2", name)

    @property
    def line(self) -> str:
        """The arguments as the patterns of the table see them."""
        return "".join(" " + arg.replace(" ", "\xa0") for arg in self.args[:MAX_ARGUMENTS])

    def text_of(self, name: str) -> str:
        """Return the text of a file, which is UNKNOWN unless the script wrote it."""
        if name in ("-", "/dev/stdin", "/dev/fd/0"):
            return self.stdin or UNKNOWN
        return self.files.get(self.paths.resolve(name), UNKNOWN)


@dataclass(frozen=True)
class Script:
    """A text that is run by a shell."""

    text: str


@dataclass(frozen=True)
class Argv:
    """Another command that is run."""

    words: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Written:
    """A file that now holds this text."""

    name: str
    text: str


Effect: TypeAlias = Finding | Script | Argv | Written


def judge_variable(name: str, value: str) -> Iterator[Effect]:
    """Find what a variable of that value does."""
    if _PROGRAMS.fullmatch(name) and value:
        yield Script(value)
    elif _PRELOADS.fullmatch(name) and value:
        yield medium(f"It makes other programs load code, with {name}.")
    elif (name, value) in (("HISTFILE", ""), ("HISTFILE", "/dev/null"), ("HISTSIZE", "0")):
        yield high("It keeps commands out of the shell's history.")


def effects(command: Command) -> Iterator[Effect]:
    """Find what a command does, as far as the table knows it."""
    name, line, paths = command.name, command.line, command.paths
    if len(command.args) > MAX_ARGUMENTS:
        yield medium("It has more arguments than can be judged.")
    if any(mark in command.path for mark in (NETWORK, DECODED, SECRET)):
        yield high("It runs a command whose name it downloads or decodes.")
    elif re.search(rf"[*?{{{UNKNOWN}]|\[.", command.path):
        yield medium("It runs a command whose name only the run will tell.")
    if "/" in command.path and (text := command.text_of(command.path)) != UNKNOWN:
        is_foreign = re.match(r"#!(?!.*sh\b)", text)
        yield from judge_code(text, paths) if is_foreign else [Script(text)]
    if not _NOT_READING.fullmatch(name):
        for match in filter(None, map(_PATH_IN_ARGUMENT.fullmatch, command.args)):
            yield from paths.read(match[1])
    yield from (
        risk for names, pattern, risk in table.RISKS if name in names and pattern.search(line)
    )
    if table.OUTPUT_KINDS.get(name) == "network" and SECRET in f"{command.stdin}{line}":
        yield high("It sends credentials or the environment to another machine.")
    for path in table.find_all(table.OUTPUTS, name, line):
        yield from paths.write(path or ".")
    for text in table.find_all(table.SCRIPTS, name, line):
        yield Script(f"{text} $_" if name in ("alias", "parallel") else text)
    yield from _change_files(command, name)
    yield from _run_others(command, name)


def _change_files(command: Command, name: str) -> Iterator[Effect]:
    paths, args = command.paths, command.args
    options, operands = split_options(args, _EDITORS.get(name, ""))
    flags = {flag for flag, _ in options}
    if name in table.WRITERS:
        start, _, takes = table.WRITERS[name].partition(":")
        for operand in split_options(args, takes)[1][int(start or 0) :]:
            yield from () if name in ("scp", "rsync") and ":" in operand else paths.write(operand)
    if name in table.DELETERS:
        is_recursive = any(re.match(r"-[rR]$|--rec", flag) for flag in flags)
        for operand in operands[: -1 if name == "mv" else None]:
            yield from paths.delete(operand, recursive=is_recursive)
    elif name in _EDITORS and {"-i", "--in-place"} & flags:
        for operand in operands[0 if {"-e", "-f"} & flags else 1 :]:
            yield from paths.write(operand)
    elif name == "ln" and any(paths.kind(paths.resolve(to)) == "outside" for to in operands):
        yield medium("It makes a link that leads out of the workspace.")
    elif name == "tee":
        yield from (Written(operand, command.stdin or "") for operand in operands)
    elif name in ("curl", "wget"):
        letter = "o" if name == "curl" else "O"
        saved = re.findall(rf" (?:-\w*{letter} ?|--output(?:-document)?[ =])(\S+)", command.line)
        if not saved and (name == "wget" or re.search(r" (?:-\w*O|--remote-name)", command.line)):
            saved = [re.sub(r"[?#].*|^.*/(?=.)", "", url) for url in operands]
        for path in saved:
            yield from () if path == "-" else paths.write(path)
            yield Written(path, NETWORK)


def _run_others(command: Command, name: str) -> Iterator[Effect]:
    args, stdin = command.args, command.stdin
    if name in table.WRAPPERS and not (name == "command" and args[:1] in (("-v",), ("-V",))):
        entry, variables = table.WRAPPERS[name], {}
        words = split_options(args, entry, permute=False)[1][int(entry[0]) :]
        while words and re.match(r"\w+=", words[0]):
            key, _, variables[key] = words.pop(0).partition("=")
        if words and (entry[0] == "0" or "--with" not in entry or args[0] in ("run", "exec")):
            yield Argv(tuple(words), variables)
    elif name in table.SHELLS:
        options, operands = split_options(args, "-o -O --rcfile --init-file", permute=False)
        if ("-c", "") in options:
            yield from map(Script, operands[:1])
        elif operands and ("-s", "") not in options:
            text = command.text_of(operands[0])
            yield from () if text == UNKNOWN else [Script(text)]
        elif stdin is not None:
            yield Script(stdin)
    elif name in table.INTERPRETERS:
        yield from _interpret(command, *table.INTERPRETERS[name].split(","))
    elif name == "xargs":
        options, operands = split_options(args, "-I -n -P -L -d -a -E -s --max-args", permute=False)
        inputs = re.split(rf"[\0\s{BREAK}]+", (stdin or UNKNOWN).strip())[:1000]
        if marker := dict(options).get("-I"):
            for word in inputs:
                yield Argv(tuple(arg.replace(marker, word) for arg in operands))
        else:
            yield Argv((*operands, *inputs))
    elif name == "find":
        match = f"{start_of_find(command)}/{UNKNOWN}"
        for at, arg in enumerate(args):
            if arg == "-delete":
                yield from command.paths.delete(match, recursive=True)
            elif arg in ("-exec", "-execdir", "-ok", "-okdir"):
                inner = takewhile(lambda word: word not in (";", "+"), args[at + 1 :])
                yield Argv(tuple(word.replace("{}", match) for word in inner))


def _interpret(command: Command, options: str, others: str) -> Iterator[Effect]:
    """Judge the program that an interpreter is given, by an option, by a file or by its input."""
    flags, operands = split_options(command.args, f"{options} {others}", permute=False)
    programs = [value for flag, value in flags if flag in options.split()]
    module = dict(flags).get("-m", "")
    if module in ("pip", "twine", "pipx", "poetry", "hatch", "flit", "build"):
        yield Argv((module, *operands))
    elif not programs and not module and (operands or ["-"])[0] == "-":
        programs = [command.stdin] if command.stdin else []
    elif operands and not module and (text := command.text_of(operands[0])) != UNKNOWN:
        yield from judge_code(text, command.paths)
    for program in programs:
        yield medium("It runs code that is given with the command.")
        yield from judge_code(program, command.paths)


def judge_provenance(text: str) -> Iterator[Finding]:
    """Find the risk of running a text, by where it comes from."""
    if NETWORK in text:
        yield _NETWORK_RUN
    elif DECODED in text:
        yield _DECODED_RUN
    elif worst_mark(text) and not drop_holes(text).strip():
        yield medium("It runs a script that only the run will tell.")


def judge_code(text: str, paths: Paths) -> Iterator[Effect]:
    """Find the effects of a program in another language, by its calls and its strings."""
    yield from judge_provenance(text)
    if re.search(r"\b(fork|dup2|pty\.spawn)\b", text):
        yield high("It starts copies of itself, or hands a shell to somebody else.")
    literals = ["".join(groups) for groups in _LITERAL.findall(text)][:MAX_LITERALS]
    if runs := _RUNS.search(text):
        if _DECODES.search(text):
            yield _DECODED_RUN
        if runs[0] in ("exec", "eval") and _FETCHES.search(text):
            yield _NETWORK_RUN
        yield from map(Script, literals)
        yield Script(shlex.join(literals))
    for name in (re.sub("^~", HOME, literal) for literal in literals):
        if len(name) <= MAX_PATH_CHARACTERS and not re.search(r"\s", name):
            yield from paths.read(name)
            if re.match(r"/|\.\.?(/|$)", name) and _CHANGES.search(text):
                yield from paths.write(name)


def start_of_find(command: Command) -> str:
    """Return the directory that `find` begins at, the first outside the workspace of several."""
    names = list(takewhile(lambda arg: arg[:1] not in ("-", "(", "!"), command.args)) or ["."]
    paths = command.paths
    return min(names, key=lambda name: paths.kind(paths.resolve(name)) == "inside").rstrip("/")


def printed(command: Command) -> str:
    """Return what a command prints, as far as that is known: at least where it comes from."""
    name, args, stdin, paths = command.name, command.args, command.stdin, command.paths
    operands = split_options(args)[1]
    mark = worst_mark(f"{stdin}{command.line}").replace(UNKNOWN, "")
    match table.OUTPUT_KINDS.get(name):
        case "nothing":
            return ""
        case "words" if name == "echo":
            return unescape(" ".join(arg for arg in args if not re.fullmatch("-[neE]+", arg)))
        case "words":
            return unescape(" ".join([re.sub(r"%[^%]", "", "".join(args[:1])), *args[1:]]))
        case "directory":
            return (operands or [""])[0].rpartition("/")[0] or "."
        case "paths":
            return f"{start_of_find(command) if name == 'find' else '.'}/{UNKNOWN}"
        case "temporary":
            return f"/tmp/{UNKNOWN}"
        case "environment":
            return SECRET
        case "network":
            return NETWORK
        case "decoded":
            return mark if mark in (NETWORK, SECRET) and mark else DECODED
        case "changed" if stdin and not worst_mark(stdin):
            return DECODED
        case "input" if stdin or name == "cat":
            files = operands[1:] if "grep" in name else operands
            secret = any(paths.is_secret(operand) for operand in files)
            return SECRET if secret else "".join(map(command.text_of, files or ["-"]))
    return mark or UNKNOWN

"""What a command prints, as far as its arguments and its input tell."""

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice, repeat

from tools.risk.call import Call, options
from tools.risk.marks import BREAK, DECODED, NETWORK, SECRET, UNKNOWN, is_known, origin
from tools.risk.places import is_secret
from tools.risk.words import decoded

Printed = Callable[[Call], str]

_FORMAT = re.compile(r"%(%|[-+ #0]*[0-9]*(?:\.[0-9]+)?[A-Za-z])")


def output(call: Call) -> str:
    """Text of which the parts that only the run will tell are marks."""
    if printed := _PRINTED.get(call.name):
        return printed(call)
    return _told(call)


def _told(call: Call) -> str:
    """Nothing but where it comes from."""
    mark = origin("".join((call.stdin or "", *call.args)))
    return mark if mark in (NETWORK, DECODED, SECRET) else UNKNOWN


def _nothing(call: Call) -> str:  # noqa: ARG001
    return ""


def _echo(call: Call) -> str:
    count = next((at for at, arg in enumerate(call.args) if not re.fullmatch("-[neE]+", arg)), None)
    flags, words = call.args[:count], call.args[count:] if count is not None else ()
    text = " ".join(words)
    return (decoded(text) if any("e" in flag for flag in flags) else text) + "\n"


def _printf(call: Call) -> str:
    given = options(call.args, "-v", permute=False)
    if not given.operands or given.of("-v"):
        return ""
    template, *values = given.operands
    holes = [match for match in _FORMAT.findall(template) if match != "%"]
    rounds = -(-len(values) // len(holes)) if holes and values else 1
    filled = iter(chain(values, repeat("")))
    text = "".join(islice(repeat(template), min(rounds, 1000)))
    text = _FORMAT.sub(lambda match: "%" if match[1] == "%" else next(filled), text)
    return decoded(text)


def _cat(call: Call) -> str:
    names = [arg for arg in call.args if arg == "-" or not arg.startswith("-")]
    return "".join(_file(call, name) for name in names or ["-"])


def _file(call: Call, name: str) -> str:
    if name == "-":
        return call.stdin or ""
    if any(is_secret(path) for path in call.places.resolved(name)):
        return SECRET
    return call.content(name)


def _passed(call: Call) -> str:
    return call.stdin or ""


def _filtered(call: Call) -> str:
    """Some lines of the input, or of files."""
    operands = options(call.args, "-n -c -m -A -B -C -e -k -t").operands
    names = operands[1:] if call.name.endswith("grep") else operands
    if names:
        return "".join(_file(call, name) for name in names)
    return UNKNOWN if call.stdin is None else call.stdin


def _turned_back(call: Call) -> str:
    """Text that was made unreadable, as it was."""
    given = options(call.args, "-w -b -i -k -K -in -pass")
    back = {"base64": ("-d", "-D", "--decode"), "base32": ("-d", "--decode"), "xxd": ("-r",)}
    names = back.get(call.name, ())
    if names and not given.has(*names):
        return _changed(call)
    text = _cat(call) if call.name != "openssl" else (call.stdin or UNKNOWN)
    if origin(text) == NETWORK:
        return NETWORK
    return _unpacked(call.name, text) if is_known(text) else DECODED


def _unpacked(name: str, text: str) -> str:
    with suppress(ValueError):  # not in that coding, or no text: only the run will tell
        match name:
            case "base64":
                return base64.b64decode(text).decode()
            case "base32":
                return base64.b32decode(text.strip()).decode()
            case "xxd":
                return bytes.fromhex(text).decode()
            case "rev":
                return "\n".join(line[::-1] for line in text.split("\n"))
    return DECODED


def _changed(call: Call) -> str:
    """Known text becomes other text here: what for, if not to hide it?"""
    text = call.stdin or ""
    return DECODED if text and is_known(text) else _told(call)


def _network(call: Call) -> str:  # noqa: ARG001
    return NETWORK


def _secret(call: Call) -> str:  # noqa: ARG001
    return SECRET


def _names(call: Call) -> str:  # noqa: ARG001
    return f"./{UNKNOWN}\n"


def _found(call: Call) -> str:
    return "".join(f"{start.rstrip('/')}/{UNKNOWN}\n" for start in starts(call))


def starts(call: Call) -> list[str]:
    """The directories that `find` begins at."""
    found: list[str] = []
    for arg in call.args:
        if (arg.startswith("-") and not re.fullmatch("-[HLP]|-O[0-9]", arg)) or arg in ("(", "!"):
            break
        if not arg.startswith("-"):
            found.append(arg)
    return found or ["."]


def _git(call: Call) -> str:
    return f"./{UNKNOWN}\n" if {"ls-files", "rev-parse", "diff"} & set(call.args) else _told(call)


def _pwd(call: Call) -> str:
    return BREAK.join(call.places.cwd)


def _mktemp(call: Call) -> str:
    template = next(iter(options(call.args, "-p --suffix").operands), "")
    return f"{template}{UNKNOWN}" if template else f"/tmp/{UNKNOWN}"


def _resolved(call: Call) -> str:
    names = options(call.args).operands
    return "\n".join(path for name in names for path in call.places.resolved(name))


def _directory(call: Call) -> str:
    return "\n".join(name.rpartition("/")[0] or "." for name in options(call.args).operands)


def _base(call: Call) -> str:
    return "\n".join(name.rpartition("/")[2] for name in options(call.args).operands[:1])


def _table() -> Iterator[tuple[str, Printed]]:
    groups: dict[Printed, str] = {
        _nothing: "true : cd rm mkdir touch cp mv ln chmod chown test [ sleep wait shift exit kill",
        _echo: "echo",
        _printf: "printf",
        _cat: "cat tac bat",
        _passed: "tee",
        _filtered: "head tail sort uniq grep egrep fgrep rg strings less more",
        _turned_back: "base64 base32 xxd uudecode rev openssl gunzip zcat gzip bunzip2 xz unxz",
        _changed: "sed tr awk gawk mawk cut fold paste perl",
        _network: "curl wget fetch nc ncat netcat socat aria2c http https xh lynx links ftp ssh",
        _secret: "env printenv",
        _names: "ls",
        _found: "find",
        _git: "git",
        _pwd: "pwd",
        _mktemp: "mktemp",
        _resolved: "realpath readlink",
        _directory: "dirname",
        _base: "basename",
    }
    for printed, names in groups.items():
        yield from ((name, printed) for name in names.split())


_PRINTED = dict(_table())

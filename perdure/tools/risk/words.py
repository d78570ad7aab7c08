"""The words of a command line: their options and escapes."""

import re

from perdure.tools.risk.finding import DECODED

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def split_options(
    args: tuple[str, ...], takes: str = "", *, permute: bool = True
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options with their values, and the operands, as getopt would.

    `takes` lists the options with a value. Without `permute` all from the first operand on is one.
    """
    options: list[tuple[str, str]] = []
    operands: list[str] = []
    rest, taking = list(reversed(args)), takes.split()
    while rest:
        arg = rest.pop()
        if arg == "--" or (operands and not permute):
            operands += [*([] if arg == "--" else [arg]), *reversed(rest)]
            break
        if not arg.startswith("-") or arg == "-":
            operands.append(arg)
        elif arg.startswith("--") or arg in taking:
            name, equals, value = arg.partition("=")
            options.append((name, rest.pop() if name in taking and rest and not equals else value))
        else:
            for at, letter in enumerate(arg[1:], start=2):
                is_last = f"-{letter}" in taking
                value = arg[at:] or (rest.pop() if rest else "") if is_last else ""
                options.append((f"-{letter}", value))
                if is_last:
                    break
    return options, operands


def unescape(text: str) -> str:
    """Replace the escapes of `$'…'`, `echo -e` and `printf`; a coded letter is DECODED."""
    text = re.sub(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|[uU][0-9a-fA-F]{1,8})", DECODED, text)
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)

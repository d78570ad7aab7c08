"""The words of a command line: their options, escapes and variables."""

import re
from collections.abc import Mapping

from perdure.tools.risk.finding import DECODED, HOME, UNKNOWN

PATTERN = re.compile(
    r"\$\{?([#!]?)([A-Za-z_]\w*|[0-9@*_-])(\[[^]]*\])?"
    r"(:?[-=+?]|##?|%%?|//?|\^\^?|,,?|[:@])?([\s\S]*?)\}?"
)

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


def unescape_literal(source: str, *, inside: bool) -> str:
    """Drop the backslashes of a word, or of text inside of double quotes."""
    escaped = r"\\([$`\"\\\n])" if inside else r"\\([\s\S])"
    return re.sub(escaped, lambda match: match[1].strip("\n"), source)


def expand_tilde(source: str, text: str) -> str:
    is_home = source.startswith("~") and re.match(r"~[\w.-]*(/|$)", text)
    return HOME + text[1:] if is_home else text


def expand_variable(match: re.Match[str], variables: Mapping[str, str], other: str) -> str:
    """Return what a match of PATTERN stands for; `other` is the word that it may stand for."""
    prefix, name, index, operator, operand = match.groups(default="")
    value = variables.get(name, UNKNOWN)
    if prefix:
        return "1" if prefix == "#" else variables.get(value, UNKNOWN)
    if index not in ("", "[@]", "[*]"):
        return UNKNOWN
    if operator.strip(":") in ("-", "=", "+") and operator != ":":
        return other if value in ("", UNKNOWN) or operator.endswith("+") else value
    # The end that is cut off does not matter, unless it changes the directory.
    is_name = operator[:1] in ("#", "%") and "/" not in operand
    return value if is_name or not operator or operator.endswith("?") else UNKNOWN

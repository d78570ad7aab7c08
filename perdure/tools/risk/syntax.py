"""The syntax of a shell script: its tree, and the options, escapes and variables of its words."""

import re
import time
from collections.abc import Mapping

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from perdure.tools.risk.finding import DECODED, HOME, UNKNOWN, Finding, high, medium

MAX_SCRIPT_BYTES = 64 * 1024

_LANGUAGE = Language(tree_sitter_bash.language())
_ASCII = bytes([*range(0x80), *[ord(":")] * 0x80])
"""The parser is shown `:` for letters beyond ASCII, as a shell reads both as parts of words: its C
code asks `isalnum` about each letter, which reads far out of its table for high ones."""
_DANGEROUS = re.compile(
    r"(?<![\w.-])(rm|dd|mkfs[.\w]*|shred|wipefs|fdisk|sudo|su|doas|eval|curl|wget|nc|ncat|shutdown"
    r"|reboot|halt|chmod|chown|kill|killall|crontab|systemctl)(?![\w.-])"
    r"|/dev/(sd|nvme|tcp)|\|\s*\w*sh\b"
)
EXPANSION = re.compile(
    r"\$\{?([#!]?)([A-Za-z_]\w*|[0-9@*_-])(\[[^]]*\])?"
    r"(:?[-=+?]|##?|%%?|//?|\^\^?|,,?|[:@])?([\s\S]*?)\}?"
)

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_REDIRECTS = ("file_redirect", "herestring_redirect", "heredoc_redirect")


class TooInvolved(Exception):
    """A script would take too long to judge; the text says why."""


def parse(text: str, end: float) -> Node:
    """Return the syntax tree of a script. Raises TooInvolved."""
    source = text.replace("\0", "").encode(errors="replace")
    if len(source) > MAX_SCRIPT_BYTES:
        raise TooInvolved(f"It is too long to be judged: {len(source):,} bytes.")
    shown = source.translate(_ASCII)
    try:
        # Where a script makes no sense, the parser may look for a meaning for very long.
        tree = Parser(_LANGUAGE).parse(
            lambda at, _: shown[at:], progress_callback=lambda *_: time.monotonic() > end
        )
    except ValueError as error:
        raise TooInvolved("It takes too long to be parsed as a shell command.") from error
    shown = source  # from which the text of a node is taken when it is asked for
    return tree.root_node


def judge_broken(text: str) -> Finding:
    """Return the risk of a script that cannot be parsed."""
    if word := _DANGEROUS.search(text):
        named = word[0].strip()
        return high(f"It cannot be parsed as a shell command, and names {named!r}.")
    return medium("It cannot be parsed as a shell command.")


def children(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type not in ("comment", *_REDIRECTS)]


def redirects(node: Node) -> list[Node]:
    return [child for child in node.children if child.type in _REDIRECTS]


def source(node: Node | None) -> str:
    return ((node.text if node else None) or b"").decode(errors="replace")


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
    """Return what a match of EXPANSION stands for; `other` is the word that it may stand for."""
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

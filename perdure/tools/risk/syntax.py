"""The syntax tree of a shell script."""

import re
import time

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from perdure.tools.risk.finding import Finding, high, medium

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

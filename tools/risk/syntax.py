"""The grammar of a shell script."""

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from tools.risk.finding import Finding, high, medium
from tools.risk.scope import Budget, TooInvolved

LONGEST = 64 * 1024
"""Bytes of a script; a longer one is not read."""

_LANGUAGE = Language(tree_sitter_bash.language())
_ASCII = bytes([*range(0x80), *[ord(":")] * 0x80])
"""What the parser is shown for letters beyond ASCII: a shell reads both as parts of words. Its C
code asks `isalnum` about each letter, which reads far out of its table for high ones."""

_DANGEROUS = re.compile(
    r"(?<![\w.-])(rm|dd|mkfs[.\w]*|shred|wipefs|fdisk|sudo|su|doas|eval|curl|wget|nc|ncat|shutdown"
    r"|reboot|halt|chmod|chown|kill|killall|crontab|systemctl)(?![\w.-])"
    r"|/dev/(sd|nvme|tcp)|\|\s*\w*sh\b"
)


def parsed(text: str, budget: Budget) -> Node:
    """The tree of `text`. Raises TooInvolved."""
    # What was decoded may hold NULs. Shells drop them, and the parser chokes on them.
    source = text.replace("\0", "").encode(errors="replace")
    if len(source) > LONGEST:
        raise TooInvolved(f"It is too long to be judged: {len(source):,} bytes.")
    budget.spend(len(source) // 4 + 1)
    shown = source.translate(_ASCII)
    try:
        # Where a script makes no sense, the parser may look for a meaning for very long.
        tree = Parser(_LANGUAGE).parse(
            lambda at, _: shown[at:], progress_callback=lambda *_: budget.is_late()
        )
    except ValueError as error:
        raise TooInvolved("It takes too long to be parsed as a shell command.") from error
    shown = source  # from which the text of a node is taken when it is asked for
    return tree.root_node


def broken(text: str) -> Finding:
    """What it means that `text` cannot be parsed."""
    if dangerous := _DANGEROUS.search(text):
        return high(f"It cannot be parsed as a shell command, and names {dangerous[0].strip()!r}.")
    return medium("It cannot be parsed as a shell command.")

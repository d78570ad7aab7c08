"""What the words of a script stand for: their variables, substitutions and quotes."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from tree_sitter import Node

from perdure.tools.risk import syntax
from perdure.tools.risk.finding import BREAK, UNKNOWN

MAX_WORD_CHARACTERS = 4096


class Shell(Protocol):
    """The part of a shell that the value of a word depends on."""

    variables: dict[str, str]
    stdin: str | None

    def nested(self) -> AbstractContextManager[None]: ...

    def walk(self, node: Node, stdin: str | None) -> str: ...

    def walk_all(self, nodes: Sequence[Node], stdin: str | None) -> str: ...

    def substitute(self, node: Node) -> str: ...


def split_all(shell: Shell, nodes: Sequence[Node]) -> list[str]:
    return [word for node in nodes for word in split(shell, node)]


def split(shell: Shell, node: Node) -> list[str]:
    """Return the arguments that a word becomes."""
    source = syntax.source(node)
    return [syntax.expand_tilde(source, part) for part in expand(shell, node).split(BREAK) if part]


def join(shell: Shell, node: Node) -> str:
    """Return the text of a word that is not split."""
    return syntax.expand_tilde(syntax.source(node), expand(shell, node, quoted=True))


def expand(shell: Shell, node: Node, *, quoted: bool = False) -> str:
    """Return the text of a word; unless it is quoted, with BREAK between its words."""
    with shell.nested():
        text = _expand(shell, node, quoted=quoted)
    return text if len(text) <= MAX_WORD_CHARACTERS else UNKNOWN


def _expand(shell: Shell, node: Node, *, quoted: bool) -> str:
    source = syntax.source(node)
    match node.type:
        case "raw_string":
            return source[1:-1]
        case "ansi_c_string":
            return syntax.unescape(source[2:-1])
        case "simple_expansion" | "expansion":
            text = _expand_variable(shell, node, source)
        case "command_substitution":
            text = shell.substitute(node).rstrip("\n")
        case "process_substitution":
            return shell.substitute(node)
        case "array":
            return BREAK.join(split_all(shell, syntax.children(node)))
        case "concatenation" | "command_name" | "translated_string" | "herestring_redirect":
            return _compose(shell, node, quoted=quoted)
        case "string" | "heredoc_body":
            return _compose(shell, node, quoted=True, inside=True)
        case _:
            shell.walk_all(syntax.children(node), shell.stdin)
            return syntax.unescape_literal(source, inside=False)
    return text if quoted else re.sub(r"\s+", BREAK, text)


def _compose(shell: Shell, node: Node, *, quoted: bool, inside: bool = False) -> str:
    """Join the parts of a word; the grammar has no node for some of the blanks in a string."""
    source, at, text = node.text or b"", 0, ""
    for child in node.children:
        blank = source[at : child.start_byte - node.start_byte]
        text += syntax.unescape_literal(blank.decode(errors="replace"), inside=inside)
        at = child.end_byte - node.start_byte
        if child.is_named and child.type not in ("string_content", "heredoc_content"):
            text += expand(shell, child, quoted=quoted)
        elif child.type not in ('"', "<<<"):
            text += syntax.unescape_literal(syntax.source(child), inside=inside)
    return text + syntax.unescape_literal(source[at:].decode(errors="replace"), inside=inside)


def _expand_variable(shell: Shell, node: Node, source: str) -> str:
    """Return what `$NAME` or `${NAME…}` stands for."""
    match = syntax.EXPANSION.fullmatch(source)
    if not match:
        shell.substitute(node)
        return UNKNOWN
    named, *others = syntax.children(node) or [node]
    if match[3]:
        shell.walk(named, shell.stdin)
    other = "".join([join(shell, child) for child in others])
    return syntax.expand_variable(match, shell.variables, other)

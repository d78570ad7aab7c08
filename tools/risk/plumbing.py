"""Redirections: what a command reads, which files it fills, what else was written among them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tree_sitter import Node

from tools.risk.call import written
from tools.risk.finding import Finding
from tools.risk.marks import BREAK, UNKNOWN
from tools.risk.places import Places, reading, writing
from tools.risk.scope import Scope
from tools.risk.words import Run, fields, values

BACKTICKS = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)


@dataclass
class Plumbing:
    """`args` are words of the command that stand after a redirection.

    `sinks` are what reads its output next, and `after` what else follows a here-document's start
    in the same line. `scripts` are run to make the input.
    """

    stdin: str | None
    targets: list[tuple[str, bool]] = field(default_factory=list)
    """Files that take the output, and whether it is added to what they hold."""
    args: list[str] = field(default_factory=list)
    sinks: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def plumbing(
    nodes: Iterable[Node], scope: Scope, stdin: str | None, run: Run, places: Places
) -> Plumbing:
    made = Plumbing(stdin)
    for node in nodes:
        if node.type == "file_redirect":
            _file(node, made, scope, run, places)
        elif node.type == "herestring_redirect":
            made.stdin = "\n".join(text.strip() for text in values(node, scope, run)) + "\n"
        elif node.type == "heredoc_redirect":
            _heredoc(node, made, scope, run, places)
    return made


def _file(node: Node, made: Plumbing, scope: Scope, run: Run, places: Places) -> None:
    destinations = node.children_by_field_name("destination")
    operator = next((c.type for c in node.children if c.type.strip("<>&|-") == ""), ">")
    # The grammar takes the words after a redirection for more destinations of it.
    made.args += [word for extra in destinations[1:] for word in fields(extra, scope, run)]
    if not destinations:
        return
    names = values(destinations[0], scope, run)
    if operator.endswith("&") and all(name.rstrip("-").isdigit() or name == "-" for name in names):
        return
    if operator == "<":
        made.findings += [found for name in names for found in reading(places, name)]
        paths = (path for name in names for path in places.resolved(name))
        made.stdin = written(scope.files, paths)
        return
    made.findings += [found for name in names for found in writing(places, name)]
    descriptor = node.child_by_field_name("descriptor")
    if destinations[0].type == "process_substitution":
        made.sinks.append(destinations[0])
    elif descriptor is None or descriptor.text == b"1":
        made.targets += [(name, operator.endswith(">>")) for name in names]


def _heredoc(node: Node, made: Plumbing, scope: Scope, run: Run, places: Places) -> None:
    quoted = False
    for child in node.children:
        match child.type:
            case "heredoc_start":
                quoted = bool(re.search(rb"['\"\\]", child.text or b""))
            case "heredoc_body":
                made.stdin = _body(child, made, scope, run, quoted=quoted)
            case "file_redirect":
                _file(child, made, scope, run, places)
            case "pipeline":
                made.sinks += child.named_children
            case _ if child in node.children_by_field_name("argument"):
                made.args += fields(child, scope, run)
            case _ if child.is_named and child.type != "heredoc_end":
                made.after.append(child)


def _body(node: Node, made: Plumbing, scope: Scope, run: Run, *, quoted: bool) -> str:
    if quoted:
        return (node.text or b"").decode(errors="replace")
    text = BREAK.join(values(node, scope, run)).replace(BREAK, "\n")
    # The grammar sees no backticks in a here-document.
    made.scripts += BACKTICKS.findall(text)
    return BACKTICKS.sub(UNKNOWN, text)

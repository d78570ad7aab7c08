"""Reads a shell script as a shell would, without running anything, and tells what it would do.

Statements are followed in their order: what is assigned, where `cd` leads, what a pipe carries,
which files are written and run later. What only the run can tell is a mark (see `marks`).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from tree_sitter import Node

from tools.risk.builtins import assigned
from tools.risk.code import provenance
from tools.risk.finding import Finding, high, medium
from tools.risk.marks import BREAK, UNKNOWN
from tools.risk.places import Places, left
from tools.risk.running import Commands
from tools.risk.scope import Scope, TooInvolved
from tools.risk.syntax import broken, parsed
from tools.risk.words import fields, values


def read(text: str, workspace: str) -> list[Finding]:
    """What the rules find in a script that is run in `workspace`."""
    reader = Reader(workspace)
    scope = Scope.fresh(workspace)
    try:
        reader.script(text, scope)
        reader.uncalled(scope)
        reader.findings += left(Places(workspace, scope.cwd))
    except TooInvolved as error:
        reader.findings.append(high(str(error)))
    return reader.findings


class Reader(Commands):
    """Every method that follows a part of a script gives what that would print."""

    def script(self, text: str, scope: Scope, stdin: str | None = None) -> str:
        self.findings += provenance(text)
        root = parsed(text, scope.budget)
        if root.has_error:
            self.findings.append(broken(text))
        return self.walk(root, scope, stdin)

    def uncalled(self, scope: Scope) -> None:
        """Functions that a later command may call, with whatever arguments."""
        for name in [name for name in scope.functions if name not in self.called]:
            self.function(name, [UNKNOWN] * 9, scope.copy(), None)

    def walk(self, node: Node, scope: Scope, stdin: str | None) -> str:
        with scope.budget.deeper():
            follow = self._statements.get(node.type, Reader._each)
            return follow(self, node, scope, stdin)

    def _each(self, node: Node, scope: Scope, stdin: str | None) -> str:
        return self._in_order(node.children, scope, stdin)

    def _in_order(self, nodes: Iterable[Node], scope: Scope, stdin: str | None) -> str:
        printed = []
        for node in nodes:
            if node.is_named:
                printed.append(self.walk(node, scope, stdin))
            elif node.type == "&":
                self.findings.append(medium("It leaves a process running in the background."))
        return self._joined(printed, scope)

    def _joined(self, printed: list[str], scope: Scope) -> str:
        text = "".join(printed)
        scope.budget.spend(len(text))
        return text

    def _redirected(self, node: Node, scope: Scope, stdin: str | None) -> str:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        if body is not None:
            return self._with(redirects, body, scope, stdin)
        made = self.plumbed(redirects, scope, stdin)
        return self.drained(made, self.call(made.args, scope, made.stdin), scope)

    def _with(self, redirects: list[Node], node: Node, scope: Scope, stdin: str | None) -> str:
        """The grammar hangs the redirections of the last command of a line on the whole line."""
        match node.type:
            case "command":
                return self.command(node, redirects, scope, stdin)
            case "list":
                return self._list(node, scope, stdin, redirects)
            case "pipeline":
                return self._pipeline(node, scope, stdin, redirects)
            case "negated_command" if node.named_children:
                return self._with(redirects, node.named_children[0], scope, stdin)
        made = self.plumbed(redirects, scope, stdin)
        return self.drained(made, self.walk(node, scope, made.stdin), scope)

    def _list(
        self, node: Node, scope: Scope, stdin: str | None, redirects: Sequence[Node] = ()
    ) -> str:
        """`a && b || c`, which the grammar nests as deep as it is long."""
        parts: list[Node] = []
        while node.type == "list" and (named := _parts(node)):
            parts += reversed(named[1:])
            node = named[0]
        printed = [self.walk(node, scope, stdin)]
        before = scope.copy()
        printed += [self.walk(part, scope, stdin) for part in reversed(parts[1:])]
        printed += [self._with(list(redirects), last, scope, stdin) for last in parts[:1]]
        scope.join(before)
        return self._joined(printed, scope)

    def _pipeline(
        self, node: Node, scope: Scope, stdin: str | None, redirects: Sequence[Node] = ()
    ) -> str:
        stages = _parts(node)
        for stage in stages[:-1]:
            stdin = self.walk(stage, scope.copy(), stdin)
        for last in stages[-1:]:
            stdin = self._with(list(redirects), last, scope.copy(), stdin)
        return stdin or ""

    def _subshell(self, node: Node, scope: Scope, stdin: str | None) -> str:
        return self._each(node, scope.copy(), stdin)

    def _perhaps(self, node: Node, scope: Scope, stdin: str | None) -> str:
        before, scope.maybe = scope.maybe, True
        printed = self._each(node, scope, stdin)
        scope.maybe = before
        return printed

    def _loop(self, node: Node, scope: Scope, stdin: str | None) -> str:
        """Twice, because one round may set what the next one uses."""
        return self._perhaps(node, scope, stdin) + self._perhaps(node, scope, stdin)

    def _for(self, node: Node, scope: Scope, stdin: str | None) -> str:
        run = partial(self.substitute, stdin=stdin)
        listed = node.children_by_field_name("value")
        each = [word for value in listed for word in fields(value, scope, run)]
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is not None:
            given = each or scope.value("@")[0].split(BREAK)
            scope.assign(_source(variable), given)
        return self._loop(body, scope, stdin) if body is not None else ""

    def _case(self, node: Node, scope: Scope, stdin: str | None) -> str:
        if value := node.child_by_field_name("value"):
            fields(value, scope, partial(self.substitute, stdin=stdin))
        items = (child for child in node.children if child.type == "case_item")
        return self._joined([self._perhaps(item, scope, stdin) for item in items], scope)

    def _define(self, node: Node, scope: Scope, stdin: str | None) -> str:
        self.plumbed(node.children_by_field_name("redirect"), scope, stdin)
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            scope.functions[_source(name)] = body
            if _multiplies(_source(name), body):
                self.findings.append(high("It starts itself again and again: a fork bomb."))
        return ""

    def _assign(self, node: Node, scope: Scope, stdin: str | None) -> str:
        run = partial(self.substitute, stdin=stdin)
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return ""
        variable = _source(name.child_by_field_name("name") or name)
        new = values(value, scope, run) if value is not None else ("",)
        if name.type == "subscript" or any(child.type == "+=" for child in node.children):
            between = BREAK if name.type == "subscript" or (value and value.type == "array") else ""
            old = scope.variables.get(variable, ("",))
            new = tuple(f"{first}{between}{second}" for first in old for second in new)
        scope.budget.spend(sum(map(len, new)))
        scope.assign(variable, new)
        for text in new:
            self.steps(assigned(variable, text), scope, stdin)
        return ""

    def _declare(self, node: Node, scope: Scope, stdin: str | None) -> str:
        run = partial(self.substitute, stdin=stdin)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, scope, stdin)
            else:
                for word in fields(child, scope, run):
                    name, equals, value = word.partition("=")
                    if equals:
                        scope.assign(name, (value,))
                        self.steps(assigned(name, value), scope, stdin)
        return ""

    def _unset(self, node: Node, scope: Scope, stdin: str | None) -> str:  # noqa: ARG002
        for child in node.named_children:
            name = _source(child)
            scope.functions.pop(name, None)
            scope.assign(name, ("",))
            self.steps(assigned(name, ""), scope, None)
        return ""

    def _test(self, node: Node, scope: Scope, stdin: str | None) -> str:
        values(node, scope, partial(self.substitute, stdin=stdin))
        return ""

    def _bare(self, node: Node, scope: Scope, stdin: str | None) -> str:
        """`$(< file)`."""
        return self.plumbed([node], scope, stdin).stdin or ""

    _statements: ClassVar[dict[str, Callable[["Reader", Node, Scope, str | None], str]]] = {
        "command": lambda self, node, scope, stdin: self.command(node, [], scope, stdin),
        "redirected_statement": _redirected,
        "file_redirect": _bare,
        "list": _list,
        "pipeline": _pipeline,
        "subshell": _subshell,
        "if_statement": _perhaps,
        "while_statement": _loop,
        "c_style_for_statement": _loop,
        "for_statement": _for,
        "case_statement": _case,
        "function_definition": _define,
        "declaration_command": _declare,
        "unset_command": _unset,
        "variable_assignment": _assign,
        "test_command": _test,
    }


def _parts(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _source(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _multiplies(name: str, body: Node) -> bool:
    """Whether the function `name` starts itself in the background or on both sides of a pipe."""
    waiting, types, starts = [body], set(), 0
    while waiting:
        node = waiting.pop()
        starts += node.type == "command_name" and _source(node) == name
        types.add(node.type)
        waiting.extend(node.children)
    return (starts > 0 and "&" in types) or (starts > 1 and "pipeline" in types)

"""Runs the commands of a script, as far as a script can be run without doing anything."""

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial

from tree_sitter import Node

from tools.risk.builtins import BUILTINS, assigned
from tools.risk.call import Argv, Call, Made, Script, Step
from tools.risk.commands import rules
from tools.risk.finding import Finding
from tools.risk.marks import without_holes
from tools.risk.output import output
from tools.risk.places import Places
from tools.risk.plumbing import Plumbing, plumbing
from tools.risk.scope import Scope
from tools.risk.words import fields, ways


class Commands(ABC):
    """Collects what the rules find; what runs gives what it would print."""

    def __init__(self, workspace: str) -> None:
        self.findings: list[Finding] = []
        self.called: set[str] = set()
        self._workspace = workspace
        self._calling: list[str] = []

    @abstractmethod
    def script(self, text: str, scope: Scope, stdin: str | None = None) -> str: ...

    @abstractmethod
    def walk(self, node: Node, scope: Scope, stdin: str | None) -> str: ...

    def command(self, node: Node, redirects: list[Node], scope: Scope, stdin: str | None) -> str:
        before = [child for child in node.children if child.type.endswith("_redirect")]
        made = self.plumbed([*before, *redirects], scope, stdin)
        run = partial(self.substitute, stdin=made.stdin)
        named = node.child_by_field_name("name")
        listed = node.children_by_field_name("argument")
        args = [word for child in listed for word in fields(child, scope, run)] + made.args
        inner = self._prefixed(node, scope, stdin)
        printed = ""
        for way in ways(named, scope, run) if named is not None else [[]]:
            printed += self.call([*way, *args], inner, made.stdin, keeper=scope)
        return self.drained(made, printed, scope)

    def _prefixed(self, node: Node, scope: Scope, stdin: str | None) -> Scope:
        """The scope of a command with `NAME=value` before it."""
        given = [child for child in node.children if child.type == "variable_assignment"]
        if not given:
            return scope
        inner = scope.copy()
        for assignment in given:
            self.walk(assignment, inner, stdin)
        return inner

    def call(
        self, words: list[str], scope: Scope, stdin: str | None, keeper: Scope | None = None
    ) -> str:
        """Run one command; a builtin that sets something sets it in `keeper`."""
        if not words:
            return ""
        with scope.budget.deeper():
            scope.budget.spend(8 * len(words))
            path, *args = words
            name = without_holes(path)
            if name in scope.functions and name not in self._calling:
                return self.function(name, args, scope, stdin)
            if name in scope.aliases:
                return self._aliased(name, args, scope, stdin)
            places = Places(self._workspace, scope.cwd)
            call = Call(path, name.rpartition("/")[2], tuple(args), stdin, places, scope.files)
            printed = []
            if builtin := BUILTINS.get(name):
                printed += self.steps(builtin(call, keeper or scope), keeper or scope, stdin)
            printed += self.steps(rules(call), scope, stdin)
            return "".join(printed) or output(call)

    def _aliased(self, name: str, args: list[str], scope: Scope, stdin: str | None) -> str:
        inner = scope.copy()
        text = " ".join((inner.aliases.pop(name), *map(shlex.quote, args)))
        return self.script(text, inner, stdin)

    def function(self, name: str, args: list[str], scope: Scope, stdin: str | None) -> str:
        self.called.add(name)
        saved = {key: scope.value(key) for key in (*map(str, range(1, 10)), "@", "*")}
        scope.give(args)
        self._calling.append(name)
        printed = self.walk(scope.functions[name], scope, stdin)
        self._calling.pop()
        scope.variables.update(saved)
        return printed

    def steps(self, steps: Iterable[Step], scope: Scope, stdin: str | None) -> list[str]:
        """Note what is found, and run what is to be run."""
        printed = []
        for step in steps:
            match step:
                case Finding():
                    self.findings.append(step)
                case Script(here=True):
                    printed.append(self.script(step.text, scope, stdin))
                case Script():
                    inner = scope.copy()
                    inner.give(step.args)
                    printed.append(self.script(step.text, inner, stdin))
                case Argv():
                    inner = scope.copy() if step.variables else scope
                    for name, value in step.variables.items():
                        inner.assign(name, (value,))
                        printed += self.steps(assigned(name, value), inner, stdin)
                    printed.append(self.call(list(step.words), inner, stdin))
                case Made():
                    self._made(step.name, step.text, scope)
        return printed

    def _made(self, name: str, text: str, scope: Scope, *, added: bool = False) -> None:
        for path in Places(self._workspace, scope.cwd).resolved(name):
            before = scope.files.get(path, "") if added or scope.maybe else ""
            scope.files[path] = before + text
            scope.budget.spend(len(scope.files[path]))

    def plumbed(self, redirects: Iterable[Node], scope: Scope, stdin: str | None) -> Plumbing:
        run = partial(self.substitute, stdin=stdin)
        made = plumbing(redirects, scope, stdin, run, Places(self._workspace, scope.cwd))
        self.findings += made.findings
        for text in made.scripts:
            self.script(text, scope.copy())
        return made

    def drained(self, made: Plumbing, printed: str, scope: Scope) -> str:
        """Where the output goes, and what is left of it."""
        for name, added in made.targets:
            self._made(name, printed, scope, added=added)
        if made.targets:
            printed = ""
        for sink in made.sinks:
            printed = self.walk(sink, scope.copy(), printed)
        return printed + "".join(self.walk(node, scope, None) for node in made.after)

    def substitute(self, node: Node, scope: Scope, stdin: str | None) -> str:
        """`$(...)` is what it prints, `<(...)` and `>(...)` a file to read or write."""
        inner, source = scope.copy(), (node.text or b"").decode(errors="replace")
        if source.startswith("`") and "\\" in source:
            # The grammar does not see that backticks take one level of escapes away.
            return self.script(re.sub(r"\\([\\`$])", r"\1", source[1:-1]), inner, stdin)
        printed = "".join(self.walk(child, inner, stdin) for child in node.named_children)
        if node.type == "command_substitution":
            return printed
        path = f"/dev/fd/{63 + len(scope.files)}"
        scope.files[path] = printed
        return path

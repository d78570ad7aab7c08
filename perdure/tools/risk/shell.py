"""The effects of a shell script, by its syntax tree. Nothing is run, and no file is looked at.

Commands are followed in their order, whatever conditions say. A variable has one value, the one
that was assigned last; what only a run can tell is a mark (see `finding`).
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from perdure.tools.risk import commands, expansion, syntax
from perdure.tools.risk.finding import BREAK, HOME, UNKNOWN, Finding, high, medium
from perdure.tools.risk.paths import Paths

MAX_DEPTH = 60
MAX_SECONDS = 1.5


def judge_script(text: str, workspace: str) -> list[Finding]:
    """Find the risks of a script that is run in `workspace`."""
    known = {"HOME": HOME, "TMPDIR": "/tmp", "IFS": " \t\n", "PWD": workspace, "@": "", "*": ""}
    shell = Shell(Paths(workspace, workspace), known)
    try:
        shell.run(text)
        if shell.paths.kind(shell.paths.cwd) in ("outside", "unknown"):
            shell.findings.append(medium("It leaves the terminal outside the workspace."))
    except syntax.TooInvolved as error:
        shell.findings.append(high(str(error)))
    return shell.findings


@dataclass
class Pipes:
    """The redirections of a command, with the words and statements that the grammar puts there."""

    stdin: str | None
    targets: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    statements: list[Node] = field(default_factory=list)


@dataclass
class Shell:
    """The state of one shell; a copy, for a subshell, shares the files and the findings."""

    paths: Paths
    variables: dict[str, str]
    stdin: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    depth: int = 0
    end: float = field(default_factory=lambda: time.monotonic() + MAX_SECONDS)

    def copy(self) -> "Shell":
        return replace(self, variables=dict(self.variables))

    @contextmanager
    def nested(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise syntax.TooInvolved("It is nested too deeply to be judged.")
        if time.monotonic() > self.end:
            raise syntax.TooInvolved("It is too involved to be judged.")
        yield
        self.depth -= 1

    def set(self, name: str, value: str) -> None:
        self.variables[name] = value
        for effect in commands.judge_variable(name, value):
            self.follow(effect, None)

    def run(self, text: str, stdin: str | None = None) -> str:
        """Follow a script, and return what it would print."""
        self.findings += commands.judge_provenance(text)
        root = syntax.parse(text, self.end)
        self.findings += [syntax.judge_broken(text)] if root.has_error else []
        return self.walk(root, stdin)

    def walk(self, node: Node, stdin: str | None, redirects: Sequence[Node] = ()) -> str:
        """Follow a statement, and return what it would print."""
        with self.nested():
            self.stdin = stdin
            redirects = [*syntax.redirects(node), *redirects]
            body = node.child_by_field_name("body")
            if node.type == "redirected_statement" and body is not None:
                return self.walk(body, stdin, redirects)
            if node.type in ("pipeline", "list", "negated_command"):
                return self.sequence(node, stdin, redirects)
            pipes = self.plumb(redirects, stdin)
            output = (self.command if node.type == "command" else self.statement)(node, pipes)
            for name in pipes.targets:
                self.follow(commands.Written(name, output), None)
            for rest in pipes.statements:
                output = self.walk(rest, output)
            return "" if pipes.targets else output

    def walk_all(self, nodes: Sequence[Node], stdin: str | None) -> str:
        return "".join([self.walk(node, stdin) for node in nodes])

    def sequence(self, node: Node, stdin: str | None, redirects: Sequence[Node]) -> str:
        """Follow `a | b`, `a && b` or `! a`, nested as deep as it is long.

        The redirections of the last part hang on the whole.
        """
        kind, parts = node.type, list[Node]()
        while node.type == kind and (children := syntax.children(node)):
            node, parts = children[0], children[1:] + parts
        *parts, last = node, *parts
        if kind != "pipeline":
            return self.walk_all(parts, stdin) + self.walk(last, stdin, redirects)
        for part in parts:
            stdin = self.copy().walk(part, stdin)
        return self.copy().walk(last, stdin, redirects)

    def statement(self, node: Node, pipes: Pipes) -> str:
        """Follow anything else; its parts one after another where nothing better is known."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        match node.type:
            case "for_statement":
                return self.loop(node, pipes.stdin)
            case "function_definition":
                word = re.escape(syntax.source(name))
                if re.search(
                    rf"{word}\s*\|\s*{word}", syntax.source(node.child_by_field_name("body"))
                ):
                    self.findings.append(high("It starts itself again and again: a fork bomb."))
            case "variable_assignment":
                variable, index, _ = syntax.source(name).partition("[")
                adds = index or any(child.type == "+=" for child in node.children)
                old = self.variables.get(variable, "") if adds else ""
                self.set(variable, old + (expansion.join(self, value) if value else ""))
                return ""
            case "command_substitution" | "process_substitution":
                return self.substitute(node)
            case "file_redirect":
                return self.plumb([node], None).stdin or ""
            case "redirected_statement":
                return self.call(pipes.words, pipes.stdin)
            case "declaration_command" | "unset_command":
                words = expansion.split_all(self, syntax.children(node))
                for word in words if node.type == "unset_command" or "=" in "".join(words) else ():
                    self.set(*word.partition("=")[::2])
        shell = self.copy() if node.type in ("subshell", "function_definition") else self
        if any(child.type == "&" for child in node.children):
            self.findings.append(medium("It leaves a process running in the background."))
        return shell.walk_all(syntax.children(node), pipes.stdin)

    def loop(self, node: Node, stdin: str | None) -> str:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        output = ""
        for value in dict.fromkeys(expansion.split_all(self, node.children_by_field_name("value"))):
            self.set(syntax.source(variable), value)
            output += self.walk(body, stdin) if body else ""
        return output

    def plumb(self, redirects: Sequence[Node], stdin: str | None) -> Pipes:
        """Judge redirections, and find where the input comes from and the output goes."""
        pipes = Pipes(stdin)
        for node in redirects:
            if node.type == "herestring_redirect":
                pipes.stdin = expansion.expand(self, node, quoted=True).strip() + "\n"
            elif node.type == "heredoc_redirect":
                self.heredoc(node, pipes)
            else:
                self.redirect(node, pipes)
        return pipes

    def redirect(self, node: Node, pipes: Pipes) -> None:
        destinations = node.children_by_field_name("destination")
        operator = next((child.type for child in node.children if not child.is_named), ">")
        name = expansion.join(self, destinations[0]) if destinations else "-"
        # The grammar takes the words after a redirection for more destinations of it.
        pipes.words += expansion.split_all(self, destinations[1:])
        if operator.endswith("&") and re.fullmatch(r"\d*-?", name):
            return
        if operator == "<":
            self.findings += self.paths.read(name)
            pipes.stdin = self.files.get(self.paths.resolve(name), UNKNOWN)
            return
        self.findings += self.paths.write(name)
        if destinations and destinations[0].type == "process_substitution":
            pipes.statements += syntax.children(destinations[0])
        elif not syntax.source(node).startswith("2"):
            pipes.targets.append(name)

    def heredoc(self, node: Node, pipes: Pipes) -> None:
        for child in node.named_children:
            if child.type == "heredoc_body":
                source = pipes.stdin = syntax.source(child)
                if not re.match(rb"<<-?\s*['\"\\]", node.text or b""):
                    pipes.stdin = expansion.expand(self, child, quoted=True)
                    # The grammar sees no backticks there.
                    for script in re.findall(r"(?<!\\)`([^`]*)`", source):
                        self.copy().run(script)
            elif child.type == "file_redirect":
                self.redirect(child, pipes)
            elif child in node.children_by_field_name("argument"):
                pipes.words += expansion.split(self, child)
            elif not child.type.startswith("heredoc"):
                pipes.statements += syntax.children(child) if child.type == "pipeline" else [child]

    def command(self, node: Node, pipes: Pipes) -> str:
        self.stdin, children = pipes.stdin, syntax.children(node)
        assignments = [child for child in children if child.type == "variable_assignment"]
        others = [child for child in children if child not in assignments]
        words = expansion.split_all(self, others) + pipes.words
        shell = self.copy() if assignments else self
        shell.walk_all(assignments, pipes.stdin)
        return shell.call(words, pipes.stdin)

    def call(self, words: Sequence[str], stdin: str | None) -> str:
        """Follow a command, and return what it would print."""
        if not words:
            return ""
        with self.nested():
            command = commands.Command(words[0], tuple(words[1:]), stdin, self.paths, self.files)
            output = self.change(command)
            output += "".join([self.follow(effect, stdin) for effect in commands.effects(command)])
            return output or commands.printed(command)

    def follow(self, effect: commands.Effect, stdin: str | None) -> str:
        match effect:
            case commands.Script():
                return self.copy().run(effect.text, stdin)
            case commands.Argv():
                shell = self.copy() if effect.variables else self
                for name, value in effect.variables.items():
                    shell.set(name, value)
                return shell.call(effect.words, stdin)
            case commands.Written():
                path = self.paths.resolve(effect.name)
                self.files[path] = self.files.get(path, "") + effect.text
            case Finding():
                self.findings.append(effect)
        return ""

    def change(self, command: commands.Command) -> str:
        """Do what a command of the shell does to the shell itself."""
        args, stdin = command.args, command.stdin
        match command.path:
            case "cd" | "pushd" | "popd":
                name = next((arg for arg in args if arg == "-" or arg[0] != "-"), HOME)
                is_back = command.path == "popd" or name == "-"
                old = self.variables.get("OLDPWD", UNKNOWN)
                cwd = old if is_back else self.paths.resolve(name)
                self.variables |= {"OLDPWD": self.paths.cwd, "PWD": cwd}
                self.paths = replace(self.paths, cwd=cwd)
            case "eval":
                return self.run(" ".join(args), stdin)
            case "source" | "." if args and (text := command.text_of(args[0])) != UNKNOWN:
                return self.run(text, stdin)
            case "read":
                for name in syntax.split_options(args, "-d -n -p -t -u")[1]:
                    self.set(name, (stdin or UNKNOWN).strip())
            case "set" if "--" in args:
                self.variables["@"] = BREAK.join(args[args.index("--") + 1 :])
        return ""

    def substitute(self, node: Node) -> str:
        """Return what `$(…)` prints, or the name of the file that `<(…)` or `>(…)` stands for."""
        inner, source, stdin = self.copy(), syntax.source(node), self.stdin
        if source.startswith("`"):  # which take away one level of escapes
            return inner.run(re.sub(r"\\([\\`$])", r"\1", source[1:-1]), stdin)
        output = inner.walk_all(syntax.children(node) or syntax.redirects(node), stdin)
        if node.type != "process_substitution":
            return output
        path = f"/dev/fd/{63 + len(self.files)}"
        self.files[path] = output
        return path

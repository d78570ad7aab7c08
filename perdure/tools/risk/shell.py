"""The effects of a shell script, by its syntax tree. Nothing is run, and no file is looked at.

Commands are followed in their order, whatever conditions say. A variable has one value, the one
that was assigned last; what only a run can tell is a mark (see `finding`).
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from perdure.tools.risk.commands import (
    Argv,
    Command,
    Effect,
    Script,
    Written,
    effects,
    judge_provenance,
    printed,
)
from perdure.tools.risk.finding import BREAK, HOME, UNKNOWN, Finding, high, medium
from perdure.tools.risk.paths import Paths
from perdure.tools.risk.words import split_options, unescape

MAX_SCRIPT_BYTES = 64 * 1024
MAX_WORD_CHARACTERS = 4096
MAX_DEPTH = 60
MAX_SECONDS = 1.5

_LANGUAGE = Language(tree_sitter_bash.language())
_ASCII = bytes([*range(0x80), *[ord(":")] * 0x80])
"""The parser is shown `:` for letters beyond ASCII, as a shell reads both as parts of words: its C
code asks `isalnum` about each letter, which reads far out of its table for high ones."""
_DANGEROUS = re.compile(
    r"(?<![\w.-])(rm|dd|mkfs[.\w]*|shred|wipefs|fdisk|sudo|su|doas|eval|curl|wget|nc|ncat|shutdown"
    r"|reboot|halt|chmod|chown|kill|killall|crontab|systemctl)(?![\w.-])"
    r"|/dev/(sd|nvme|tcp)|\|\s*\w*sh\b"
)
_PROGRAMS = re.compile(r"(MAN|GIT_)?PAGER|(GIT_)?EDITOR|VISUAL|BROWSER|PROMPT_COMMAND|GIT_\w+")
_PRELOADS = re.compile(r"LD_PRELOAD|LD_AUDIT|(BASH_)?ENV|PYTHONSTARTUP|DYLD_INSERT_LIBRARIES")
_EXPANSION = re.compile(
    r"\$\{?([#!]?)([A-Za-z_]\w*|[0-9@*_-])(\[[^]]*\])?"
    r"(:?[-=+?]|##?|%%?|//?|\^\^?|,,?|[:@])?([\s\S]*?)\}?"
)
_COMPOSED = (
    *("string", "heredoc_body", "concatenation", "command_name"),
    *("translated_string", "herestring_redirect"),
)
_REDIRECTS = ("file_redirect", "herestring_redirect", "heredoc_redirect")


class TooInvolved(Exception):
    """A script would take too long to judge; the text says why."""


def judge_script(text: str, workspace: str) -> list[Finding]:
    """Find the risks of a script that is run in `workspace`."""
    known = {"HOME": HOME, "TMPDIR": "/tmp", "IFS": " \t\n", "PWD": workspace, "@": "", "*": ""}
    shell = Shell(Paths(workspace, workspace), known)
    try:
        shell.run(text)
        if shell.paths.kind(shell.paths.cwd) in ("outside", "unknown"):
            shell.findings.append(medium("It leaves the terminal outside the workspace."))
    except TooInvolved as error:
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
            raise TooInvolved("It is nested too deeply to be judged.")
        if time.monotonic() > self.end:
            raise TooInvolved("It is too involved to be judged.")
        yield
        self.depth -= 1

    def set(self, name: str, value: str) -> None:
        self.variables[name] = value
        if _PROGRAMS.fullmatch(name) and value:
            self.copy().run(value)
        elif _PRELOADS.fullmatch(name) and value:
            self.findings.append(medium(f"It makes other programs load code, with {name}."))
        elif (name, value) in (("HISTFILE", ""), ("HISTFILE", "/dev/null"), ("HISTSIZE", "0")):
            self.findings.append(high("It keeps commands out of the shell's history."))

    def run(self, text: str, stdin: str | None = None) -> str:
        """Follow a script, and return what it would print."""
        self.findings += judge_provenance(text)
        root = parse(text, self.end)
        if root.has_error:
            word = _DANGEROUS.search(text)
            named = f", and names {word[0].strip()!r}" if word else ""
            broken = f"It cannot be parsed as a shell command{named}."
            self.findings.append(high(broken) if word else medium(broken))
        return self.walk(root, stdin)

    def walk(self, node: Node, stdin: str | None, redirects: Sequence[Node] = ()) -> str:
        """Follow a statement, and return what it would print."""
        with self.nested():
            self.stdin = stdin
            redirects = [*(child for child in node.children if _is_redirect(child)), *redirects]
            body = node.child_by_field_name("body")
            if node.type == "redirected_statement" and body is not None:
                return self.walk(body, stdin, redirects)
            if node.type in ("pipeline", "list", "negated_command"):
                return self.sequence(node, stdin, redirects)
            pipes = self.plumb(redirects, stdin)
            output = (self.command if node.type == "command" else self.statement)(node, pipes)
            for name in pipes.targets:
                self.write(name, output)
            for rest in pipes.statements:
                output = self.walk(rest, output)
            return "" if pipes.targets else output

    def sequence(self, node: Node, stdin: str | None, redirects: Sequence[Node]) -> str:
        """Follow `a | b`, `a && b` or `! a`, which the grammar nests as deep as it is long.

        The redirections of the last part hang on the whole.
        """
        kind, parts = node.type, list[Node]()
        while node.type == kind and (children := _children(node)):
            node, parts = children[0], children[1:] + parts
        parts = [node, *parts]
        outputs: list[str] = []
        for part in parts:
            shell = self.copy() if kind == "pipeline" else self
            outputs.append(shell.walk(part, stdin, redirects if part is parts[-1] else ()))
            stdin = outputs[-1] if kind == "pipeline" else stdin
        return outputs[-1] if kind == "pipeline" else "".join(outputs)

    def statement(self, node: Node, pipes: Pipes) -> str:
        """Follow anything else; its parts one after another where nothing better is known."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        match node.type:
            case "for_statement":
                return self.loop(node, pipes.stdin)
            case "function_definition":
                word = re.escape(_source(name))
                if re.search(rf"{word}\s*\|\s*{word}", _source(node.child_by_field_name("body"))):
                    self.findings.append(high("It starts itself again and again: a fork bomb."))
            case "variable_assignment":
                variable = _source(name).partition("[")[0]
                adds = any(child.type == "+=" for child in node.children) or "[" in _source(name)
                old = self.variables.get(variable, "") if adds else ""
                self.set(variable, old + (self.word(value) if value else ""))
                return ""
            case "command_substitution" | "process_substitution":
                return self.substitute(node)
            case "file_redirect":
                return self.plumb([node], None).stdin or ""
            case "redirected_statement":
                return self.call(pipes.words, pipes.stdin)
            case "declaration_command" | "unset_command":
                words = [word for child in _children(node) for word in self.words(child)]
                for word in words if node.type == "unset_command" or "=" in "".join(words) else ():
                    self.set(*word.partition("=")[::2])
        shell = self.copy() if node.type in ("subshell", "function_definition") else self
        if any(child.type == "&" for child in node.children):
            self.findings.append(medium("It leaves a process running in the background."))
        return "".join([shell.walk(child, pipes.stdin) for child in _children(node)])

    def loop(self, node: Node, stdin: str | None) -> str:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        lists = node.children_by_field_name("value")
        outputs = []
        for value in dict.fromkeys(word for child in lists for word in self.words(child)):
            self.set(_source(variable), value)
            outputs.append(self.walk(body, stdin) if body else "")
        return "".join(outputs)

    def plumb(self, redirects: Sequence[Node], stdin: str | None) -> Pipes:
        """Judge redirections, and find where the input comes from and the output goes."""
        pipes = Pipes(stdin)
        for node in redirects:
            if node.type == "herestring_redirect":
                pipes.stdin = self.text(node, quoted=True).strip() + "\n"
            elif node.type == "heredoc_redirect":
                self.heredoc(node, pipes)
            else:
                self.redirect(node, pipes)
        return pipes

    def redirect(self, node: Node, pipes: Pipes) -> None:
        destinations = node.children_by_field_name("destination")
        operator = next((child.type for child in node.children if not child.is_named), ">")
        name = self.word(destinations[0]) if destinations else "-"
        # The grammar takes the words after a redirection for more destinations of it.
        pipes.words += [word for extra in destinations[1:] for word in self.words(extra)]
        if operator.endswith("&") and re.fullmatch(r"\d*-?", name):
            return
        if operator == "<":
            self.findings += self.paths.read(name)
            pipes.stdin = self.files.get(self.paths.resolve(name), UNKNOWN)
            return
        self.findings += self.paths.write(name)
        if destinations and destinations[0].type == "process_substitution":
            pipes.statements += _children(destinations[0])
        elif not _source(node).startswith("2"):
            pipes.targets.append(name)

    def heredoc(self, node: Node, pipes: Pipes) -> None:
        for child in node.named_children:
            if child.type == "heredoc_body":
                if re.match(rb"<<-?\s*['\"\\]", node.text or b""):
                    pipes.stdin = _source(child)
                else:
                    pipes.stdin = self.text(child, quoted=True)
                    # The grammar sees no backticks there.
                    for script in re.findall(r"(?<!\\)`([^`]*)`", _source(child)):
                        self.copy().run(script)
            elif child.type == "file_redirect":
                self.redirect(child, pipes)
            elif child in node.children_by_field_name("argument"):
                pipes.words += self.words(child)
            elif not child.type.startswith("heredoc"):
                pipes.statements += _children(child) if child.type == "pipeline" else [child]

    def command(self, node: Node, pipes: Pipes) -> str:
        self.stdin = pipes.stdin
        assignments = [child for child in _children(node) if child.type == "variable_assignment"]
        others = [child for child in _children(node) if child not in assignments]
        words = [word for child in others for word in self.words(child)] + pipes.words
        shell = self.copy() if assignments else self
        for child in assignments:
            shell.walk(child, pipes.stdin)
        return shell.call(words, pipes.stdin)

    def call(self, words: Sequence[str], stdin: str | None) -> str:
        """Follow a command, and return what it would print."""
        if not words:
            return ""
        with self.nested():
            command = Command(words[0], tuple(words[1:]), stdin, self.paths, self.files)
            output = self.change(command)
            output += "".join([self.follow(effect, stdin) for effect in effects(command)])
            return output or printed(command)

    def follow(self, effect: Effect, stdin: str | None) -> str:
        match effect:
            case Script():
                return self.copy().run(effect.text, stdin)
            case Argv():
                shell = self.copy() if effect.variables else self
                for name, value in effect.variables.items():
                    shell.set(name, value)
                return shell.call(effect.words, stdin)
            case Written():
                self.write(effect.name, effect.text)
            case Finding():
                self.findings.append(effect)
        return ""

    def write(self, name: str, text: str) -> None:
        path = self.paths.resolve(name)
        self.files[path] = self.files.get(path, "") + text

    def change(self, command: Command) -> str:
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
                for name in split_options(args, "-d -n -p -t -u")[1]:
                    self.set(name, (stdin or UNKNOWN).strip())
            case "set" if "--" in args:
                self.variables["@"] = BREAK.join(args[args.index("--") + 1 :])
        return ""

    def words(self, node: Node) -> list[str]:
        """Return the arguments that a word becomes."""
        return [_expand_tilde(node, part) for part in self.text(node).split(BREAK) if part]

    def word(self, node: Node) -> str:
        """Return the text of a word that is not split."""
        return _expand_tilde(node, self.text(node, quoted=True))

    def text(self, node: Node, *, quoted: bool = False) -> str:
        """Return the text of a word; unless it is quoted, with BREAK between its words."""
        with self.nested():
            text = self._text(node, quoted=quoted)
        return text if len(text) <= MAX_WORD_CHARACTERS else UNKNOWN

    def _text(self, node: Node, *, quoted: bool) -> str:
        source = _source(node)
        match node.type:
            case "raw_string":
                return source[1:-1]
            case "ansi_c_string":
                return unescape(source[2:-1])
            case "simple_expansion" | "expansion":
                text = self.expand(node, source)
            case "command_substitution":
                text = self.substitute(node).rstrip("\n")
            case "process_substitution":
                return self.substitute(node)
            case "array":
                return BREAK.join(word for child in _children(node) for word in self.words(child))
            case kind if kind in _COMPOSED:
                return self.compose(node, quoted=quoted)
            case _:
                for child in _children(node):
                    self.walk(child, self.stdin)
                return _unescape_literal(source, inside=False)
        return text if quoted else re.sub(r"\s+", BREAK, text)

    def compose(self, node: Node, *, quoted: bool) -> str:
        """Join the parts of a word; the grammar has no node for some of the blanks in a string."""
        source, at, texts = node.text or b"", node.start_byte, list[str]()
        inside = node.type in ("string", "heredoc_body")
        for child in (*node.children, None):
            end = child.start_byte if child else node.end_byte
            blank = source[at - node.start_byte : end - node.start_byte]
            texts.append(_unescape_literal(blank.decode(errors="replace"), inside=inside))
            if child is None:
                break
            at = child.end_byte
            if child.is_named and child.type not in ("string_content", "heredoc_content"):
                texts.append(self.text(child, quoted=quoted or inside))
            elif child.type not in ('"', "<<<"):
                texts.append(_unescape_literal(_source(child), inside=inside))
        return "".join(texts)

    def expand(self, node: Node, source: str) -> str:
        """Return what `$NAME` or `${NAME…}` stands for."""
        match = _EXPANSION.fullmatch(source)
        if not match:
            self.substitute(node)
            return UNKNOWN
        prefix, name, index, operator, operand = match.groups(default="")
        named, *others = _children(node) or [node]
        if index:
            self.walk(named, self.stdin)
        other = "".join([self.word(child) for child in others])
        value = self.variables.get(name, UNKNOWN)
        if prefix:
            return "1" if prefix == "#" else self.variables.get(value, UNKNOWN)
        if index not in ("", "[@]", "[*]"):
            return UNKNOWN
        if operator.strip(":") in ("-", "=", "+") and operator != ":":
            return other if value in ("", UNKNOWN) or operator.endswith("+") else value
        # The end that is cut off does not matter, unless it changes the directory.
        is_name = operator[:1] in ("#", "%") and "/" not in operand
        return value if is_name or not operator or operator.endswith("?") else UNKNOWN

    def substitute(self, node: Node) -> str:
        """Return what `$(…)` prints, or the name of the file that `<(…)` or `>(…)` stands for."""
        inner, source, stdin = self.copy(), _source(node), self.stdin
        if source.startswith("`"):  # which take away one level of escapes
            return inner.run(re.sub(r"\\([\\`$])", r"\1", source[1:-1]), stdin)
        redirects = [child for child in node.children if _is_redirect(child)]
        output = "".join([inner.walk(child, stdin) for child in _children(node) or redirects])
        if node.type != "process_substitution":
            return output
        path = f"/dev/fd/{63 + len(self.files)}"
        self.files[path] = output
        return path


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


def _expand_tilde(node: Node, text: str) -> str:
    is_home = _source(node).startswith("~") and re.match(r"~[\w.-]*(/|$)", text)
    return HOME + text[1:] if is_home else text


def _unescape_literal(source: str, *, inside: bool) -> str:
    escaped = r"\\([$`\"\\\n])" if inside else r"\\([\s\S])"
    return re.sub(escaped, lambda match: match[1].strip("\n"), source)


def _children(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type not in ("comment", *_REDIRECTS)]


def _is_redirect(node: Node) -> bool:
    return node.type in _REDIRECTS


def _source(node: Node | None) -> str:
    return ((node.text if node else None) or b"").decode(errors="replace")

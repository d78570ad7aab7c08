"""From a word of a script to the arguments it becomes, as a shell would expand it."""

import fnmatch
import re
from collections.abc import Callable, Iterator
from itertools import islice, product

from tree_sitter import Node

from tools.risk.marks import BREAK, HOME, UNKNOWN, is_known
from tools.risk.scope import MOST_VALUES, Scope

Run = Callable[[Node, Scope], str]
"""Runs a substitution and gives what it would leave in its place."""

LONGEST = 16 * 1024
"""Characters of a word; a longer one is not known."""

MOST_BRACED = 256
"""Words that are made of one with braces; the rest is not known."""

_QUOTED = {ord(char): chr(0xE010 + at) for at, char in enumerate("{},~")}
_PLAIN = {ord(mark): chr(char) for char, mark in _QUOTED.items()}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_QUOTED_ESCAPE = re.compile(r"\\([$`\"\\\n])")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_TILDE = re.compile(r"~([A-Za-z0-9._-]*|\+)(?=/|$)")
_ANSI_C = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|[uU]([0-9a-fA-F]{1,8})|c(.)|(.))", re.DOTALL
)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f"}
_DEFAULTS = (":-", "-", ":=", "=")
_OPERATOR = re.compile(r":[-=+?]|##?|%%?|//?|\^\^?|,,?|[-=+?:@]")


def fields(node: Node, scope: Scope, run: Run) -> list[str]:
    """All arguments that the word may become, in whichever way its variables are set."""
    return [field for way in ways(node, scope, run) for field in way]


def ways(node: Node, scope: Scope, run: Run) -> list[list[str]]:
    """The arguments that the word becomes, one list for every way its variables may be set."""
    found = []
    for marked in _marked(node, scope, run, quoted=False):
        words = [word for braced in _braced(marked) for word in braced.split(BREAK)]
        found.append([_final(word, scope) for word in words if word])
    return found


def values(node: Node, scope: Scope, run: Run) -> tuple[str, ...]:
    """What an assignment, a redirection or a here-document makes of it: one word, never split."""
    return tuple(_final(marked, scope) for marked in _marked(node, scope, run, quoted=True))


def _final(marked: str, scope: Scope) -> str:
    if tilde := _TILDE.match(marked):
        home = scope.cwd[0] if tilde[1] == "+" else HOME
        marked = home + marked[tilde.end() :]
    return marked.translate(_PLAIN)


def _marked(node: Node, scope: Scope, run: Run, *, quoted: bool) -> tuple[str, ...]:
    """Every possible text of `node`, in which quoted braces and tildes are hidden."""
    with scope.budget.deeper():
        return _texts(node, scope, run, quoted=quoted)


def _texts(node: Node, scope: Scope, run: Run, *, quoted: bool) -> tuple[str, ...]:
    match node.type:
        case "raw_string":
            return (_hidden(_source(node)[1:-1]),)
        case "ansi_c_string":
            return (_hidden(decoded(_source(node)[2:-1])),)
        case "string" | "heredoc_body":
            return _joined(node, scope, run, inside=True, split=False)
        case "concatenation" | "command_name" | "translated_string" | "herestring_redirect":
            return _joined(node, scope, run, inside=False, split=not quoted)
        case "array":
            each = [field for child in node.named_children for field in fields(child, scope, run)]
            return (_hidden(BREAK.join(each)),)
        case "simple_expansion" | "expansion":
            found = expansion(node, scope, run)
        case "command_substitution":
            found = (run(node, scope).rstrip("\n"),)
        case "process_substitution":
            return (run(node, scope),)
        case "arithmetic_expansion":
            _run_all(node, scope, run)
            return ("1",)
        case _:
            _run_all(node, scope, run)
            return (_ESCAPE.sub(_unescaped, _source(node)),)
    return tuple(_hidden(value if quoted else _split(value, scope)) for value in found)


def _joined(node: Node, scope: Scope, run: Run, *, inside: bool, split: bool) -> tuple[str, ...]:
    """The parts of `node` and the text between them, in every combination."""
    combinations = product(*_parts(node, scope, run, inside=inside, split=split))
    found = tuple("".join(parts) for parts in islice(combinations, MOST_VALUES + 1))
    scope.budget.spend(sum(map(len, found)))
    if len(found) > MOST_VALUES or any(len(text) > LONGEST for text in found):
        return (UNKNOWN,)
    return found


def _parts(
    node: Node, scope: Scope, run: Run, *, inside: bool, split: bool
) -> Iterator[tuple[str, ...]]:
    source, start, at = node.text or b"", node.start_byte, node.start_byte
    for child in node.children:
        # The grammar has no node for some of the blanks in a string.
        yield (_literal(source[at - start : child.start_byte - start], inside=inside),)
        at = child.end_byte
        if child.is_named and child.type not in ("string_content", "heredoc_content"):
            yield _marked(child, scope, run, quoted=not split)
        elif child.type not in ('"', "<<<"):
            yield (_literal(child.text or b"", inside=inside),)
    yield (_literal(source[at - start :], inside=inside),)


def _literal(source: bytes, *, inside: bool) -> str:
    text = source.decode(errors="replace")
    if not inside:
        return _ESCAPE.sub(_unescaped, text)
    return _hidden(_QUOTED_ESCAPE.sub(lambda match: match[1].strip("\n"), text))


def _run_all(node: Node, scope: Scope, run: Run) -> None:
    """Run the substitutions somewhere in `node`, for what they do."""
    waiting = list(node.children)
    while waiting:
        child = waiting.pop()
        if child.type in ("command_substitution", "process_substitution"):
            run(child, scope)
        else:
            waiting.extend(child.children)


def expansion(node: Node, scope: Scope, run: Run) -> tuple[str, ...]:
    """What `$NAME` or `${NAME...}` may stand for."""
    if not node.named_children:
        return (UNKNOWN,)
    named, *rest = node.named_children
    name = _source(named.child_by_field_name("name") or named)
    inner = _source(node).removeprefix("${").removesuffix("}")
    if node.type == "simple_expansion":
        return scope.value(name)
    if inner.startswith("#"):
        return ("1",)
    known = scope.value(name)
    if inner.startswith("!"):
        return tuple(value for pointer in known for value in scope.value(pointer))
    found = _elements(named, known)
    _run_all(named, scope, run)
    after = (node.text or b"")[named.end_byte - node.start_byte : -1].decode(errors="replace")
    if not (operator := _OPERATOR.match(after)):
        return found
    if operator[0] in (*_DEFAULTS, ":+", "+"):
        other = tuple(
            value for part in rest for value in _marked(part, scope, run, quoted=True)
        ) or ("",)
        if operator[0] in (":=", "=") and name not in scope.variables:
            scope.assign(name, other)
        return tuple(dict.fromkeys((*found, *(value.translate(_PLAIN) for value in other))))
    _run_all(node, scope, run)
    return tuple(_cut(value, operator[0], after[operator.end() :]) for value in found)


def _elements(named: Node, known: tuple[str, ...]) -> tuple[str, ...]:
    index = named.child_by_field_name("index") if named.type == "subscript" else None
    if index is None or not (at := _source(index)).isdecimal():
        return known
    return tuple((value.split(BREAK)[int(at[:4]) :] or [""])[0] for value in known)


def _cut(value: str, operator: str, operand: str) -> str:
    """`value` after `${NAME<operator><operand>}`; not known where that takes more than is known."""
    if operator in (":?", "?"):
        return value
    if not is_known(value + operand) or any(char in operand for char in "$`'\"\\"):
        return UNKNOWN
    match operator[0]:
        case "^":
            return value.upper()
        case ",":
            return value.lower()
        case "#" | "%":
            return _trimmed(value, operator, operand)
        case "/":
            old, _, new = operand.partition("/")
            return value.replace(old, new) if old and not re.search(r"[*?\[]", old) else UNKNOWN
        case ":":
            return _slice(value, operand)
    return UNKNOWN


def _trimmed(value: str, operator: str, pattern: str) -> str:
    """Without what matches `pattern` at its beginning or end: the shortest, or the longest."""
    from_start = operator[0] == "#"
    lengths = range(len(value[:256]) + 1)
    for length in reversed(lengths) if len(operator) == 2 else lengths:
        at = length if from_start else len(value) - length
        if fnmatch.fnmatchcase(value[:at] if from_start else value[at:], pattern):
            return value[at:] if from_start else value[:at]
    return value


def _slice(value: str, operand: str) -> str:
    first, _, length = (part.strip() for part in operand.partition(":"))
    if not first.isdecimal() or not (length.isdecimal() or not length):
        return UNKNOWN
    start = int(first[:6])
    return value[start : start + int(length[:6])] if length else value[start:]


def decoded(text: str) -> str:
    """The escapes of `$'...'`, of `echo -e` and of `printf`, as the characters they stand for."""
    return _ANSI_C.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    hexadecimal, octal, unicode, control, other = match.groups()
    if hexadecimal or octal or unicode:
        code = int(octal, 8) if octal else int(hexadecimal or unicode, 16)
        return chr(code) if code < 0xD800 else "\ufffd"
    if control:
        return chr(ord(control) & 0x1F)
    return _CONTROL.get(other, other)


def _source(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _unescaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else _hidden(match[1])


def _hidden(text: str) -> str:
    return text.translate(_QUOTED)


def _split(value: str, scope: Scope) -> str:
    separators = "".join(scope.value("IFS")) + "\n"
    return re.sub(f"[{re.escape(separators)}]+", BREAK, value)


def _braced(text: str) -> list[str]:
    """With `{a,b}` as several words."""
    ready: list[str] = []
    waiting = [text]
    while waiting and len(ready) + len(waiting) < MOST_BRACED:
        word = waiting.pop(0)
        if braces := _BRACES.search(word):
            before, after = word[: braces.start()], word[braces.end() :]
            waiting = [before + part + after for part in braces[1].split(",")] + waiting
        else:
            ready.append(word)
    return ready + [UNKNOWN if _BRACES.search(word) else word for word in waiting]

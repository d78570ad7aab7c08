"""Finding files by what they say."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import regex  # type: ignore[import-untyped]
from pydantic import Field

from sandbox.spot import Spot
from tools.function import tool, tool_from
from tools.searching.walk import Found, Search, newest, searched
from tools.searching.wildcards import matcher
from tools.tool import Context, ToolFailed
from tools.workspace import inside, named, printable

LONGEST_LINE = 1024 * 1024
"""Bytes of a line that are matched as a whole; what is longer is taken in pieces of this size."""

SHOWN = 400
"""Characters of a line that are shown, around its first match."""

MOST = 25_000
"""Characters that are told in all."""

PATIENCE = 1.0
"""Seconds that a pattern may take for one line, and that a search may go on when it is stopped."""

_HEAD = 8000
"""Bytes at the beginning of a file that tell by a NUL that it is binary, as git has it."""


@dataclass(frozen=True)
class Query:
    """What is looked for, and how much of it is told."""

    pattern: Any  # `regex` tells mypy nothing of its types
    files_only: bool
    around: int
    most: int


@dataclass(frozen=True)
class Line:
    """A line of a file, counted from 1; `at` is where in it the match begins, if there is one."""

    number: int
    text: str
    at: int | None


@dataclass
class Report:
    """What was found so far, as it will be told."""

    rows: list[str] = field(default_factory=list)
    size: int = 0
    matches: int = 0
    files: int = 0
    searched: int = 0

    def add(self, row: str) -> None:
        self.rows.append(row)
        self.size += len(row) + 1


@tool(read_only=True, idempotent=True, open_world=False)
async def grep(
    context: Context,
    pattern: Annotated[str, Field(description="A regular expression, in Python's syntax.")],
    path: Annotated[
        str, Field(description="The file or directory to look in, relative to the workspace.")
    ] = ".",
    include: Annotated[
        str | None,
        Field(description="Only files that match this, such as `*.py` or `src/**/*.{ts,tsx}`."),
    ] = None,
    output_mode: Annotated[
        Literal["content", "files_with_matches"],
        Field(description="The lines that match, or only the files that have any."),
    ] = "content",
    context_lines: Annotated[
        int, Field(ge=0, le=20, description="Lines to show before and after each match.")
    ] = 0,
    ignore_case: Annotated[bool, Field(description="Whether `a` matches `A` as well.")] = False,
    max_results: Annotated[
        int, Field(ge=1, le=1000, description="Lines, or files, to show at most.")
    ] = 100,
) -> str:
    """Find lines in files by a regular expression, or the files that have such lines.

    * Each line is matched by itself. A line that matches is shown as `file:number:line`, one \
around it as `file-number-line`. Files that were changed last come first.
    * Binary files, what `.gitignore` names, and `.git` are left out: to look there, name it as \
`path`.
    """
    start = inside(context.workspace, path)
    compiled = _compiled(pattern, ignore_case)
    query = Query(compiled, output_mode == "files_with_matches", context_lines, max_results)
    try:
        wanted = matcher(include) if include else None
    except ValueError as error:
        raise ToolFailed(str(error)) from error
    return await searched(lambda search: _told(start, wanted, query, search))


def _compiled(pattern: str, ignore_case: bool) -> Any:
    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except regex.error as error:
        raise ToolFailed(
            f"`{pattern}` is not a regular expression: {error}. Put a backslash before a letter "
            "that shall only mean itself."
        ) from error


def _told(
    start: Spot,
    wanted: Callable[[str], bool] | None,
    query: Query,
    search: Search,
) -> str:
    report = Report()
    for found in _candidates(start, wanted, search):
        if not search.left or _is_full(report, query):
            break
        try:
            spot = Spot(start.root, start.root / found.path)
            _look_into(spot, printable(found.path), query, report, search)
        except OSError:
            search.unreadable += 1
    return _text(report, query, search)


def _candidates(start: Spot, wanted: Callable[[str], bool] | None, search: Search) -> list[Found]:
    name = named(start)
    if start.is_dir():
        found = newest(start.root, start.path, wanted or (lambda _: True), search)
        return [one for one in found if not one.is_link]  # what it leads to is found by itself
    if not start.exists():
        raise ToolFailed(f"`{name}` does not exist.")
    if not start.is_file():
        raise ToolFailed(f"`{name}` is not a regular file.")
    return [Found(str(start.path.relative_to(start.root)), 0, is_link=False)]


def _is_full(report: Report, query: Query) -> bool:
    told = report.files if query.files_only else report.matches
    return told >= query.most or report.size > MOST


def _look_into(spot: Spot, name: str, query: Query, report: Report, search: Search) -> None:
    report.searched += 1
    seen = report.matches
    last = 0
    for line in _shown(spot, name, query, search):
        if query.files_only:
            report.files += 1
            report.add(name)
            return
        if query.around and report.rows and line.number != last + 1:
            report.add("--")
        last = line.number
        report.add(_row(name, line))
        report.matches += line.at is not None
        if _is_full(report, query):
            break
    report.files += report.matches > seen


def _shown(spot: Spot, name: str, query: Query, search: Search) -> Iterator[Line]:
    """The lines that match, with those around them."""
    before: deque[Line] = deque(maxlen=query.around)
    after = 0
    for number, text in _lines(spot):
        if not search.left:
            return
        line = Line(number, text, _match(query, name, number, text, search))
        if line.at is not None:
            yield from before
            before.clear()
            yield line
            after = query.around
        elif after:
            yield line
            after -= 1
        else:
            before.append(line)


def _lines(spot: Spot) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers; none of a binary one."""
    with spot.opened() as file:
        if b"\0" in file.peek(_HEAD)[:_HEAD]:
            return
        number, ended = 0, True
        while piece := file.readline(LONGEST_LINE):
            number += ended
            ended = piece.endswith(b"\n")
            yield number, piece.rstrip(b"\r\n").decode(errors="replace")


def _match(query: Query, name: str, number: int, text: str, search: Search) -> int | None:
    """Where the line matches. Raises ToolFailed where the pattern takes too long for it."""
    left = search.left
    limit = min(max(left, 0.001), PATIENCE)
    try:
        # Concurrent: so that a hard pattern does not stop the rest of the worker meanwhile.
        found = query.pattern.search(text, concurrent=True, timeout=limit)
    except TimeoutError as error:
        if left < PATIENCE:
            return None
        raise ToolFailed(
            f"The pattern takes too long for line {number} of `{name}`: use one without repeats "
            "of repeats, such as `(a+)+`."
        ) from error
    return int(found.start()) if found else None


def _row(name: str, line: Line) -> str:
    mark = "-" if line.at is None else ":"
    start = max(0, min((line.at or 0) - SHOWN // 4, len(line.text) - SHOWN))
    text = line.text[start : start + SHOWN]
    head = "…" if start else ""
    tail = "…" if start + SHOWN < len(line.text) else ""
    return f"{name}{mark}{line.number}{mark}{head}{text}{tail}"


def _text(report: Report, query: Query, search: Search) -> str:
    notes = search.notes()
    if _is_full(report, query):
        notes.insert(0, _more(report, query))
    if not report.rows:
        plural = "" if report.searched == 1 else "s"
        return "\n".join([f"Nothing matches in {report.searched:,} file{plural}.", *notes])
    return "\n".join([*report.rows, *notes])


def _more(report: Report, query: Query) -> str:
    shown = f"{report.files:,} files" if query.files_only else f"{report.matches:,} lines"
    return (
        f"[These are the first {shown}, and there may be more: use a narrower pattern, `path` or "
        "`include`]"
    )


GREP = tool_from(grep)

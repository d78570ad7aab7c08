"""Finding files by what they say."""

import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from perdure.sandbox.safe_path import SafePath
from perdure.tools.function import tool, tool_from
from perdure.tools.ripgrep import Refused, Report, find_ignored, glob_option, run
from perdure.tools.tool import Context, ToolFailed
from perdure.tools.workspace import printable, relative_name, resolve_in_workspace

MAX_SHOWN_CHARACTERS = 400
"""Characters of a line that are shown, around its first match."""

MAX_OUTPUT_CHARACTERS = 25_000


@dataclass
class Results:
    """The rows that are shown, made of ripgrep's JSON: https://docs.rs/grep-printer."""

    files_only: bool
    context_lines: int
    max_results: int
    is_ignored: Callable[[str], bool] = lambda _: False
    rows: list[str] = field(default_factory=list)
    size: int = 0
    matches: int = 0
    files: int = 0
    searched: int = 0
    file: str = ""
    is_skipped: bool = False
    last_line: int = -1
    before: tuple[int, int, int, int] = (0, 0, 0, 0)
    """The counts before the current file, for one that proves to be binary."""

    @property
    def is_full(self) -> bool:
        results = self.files if self.files_only else self.matches
        return results >= self.max_results or self.size > MAX_OUTPUT_CHARACTERS

    def add(self, message: bytes) -> bool:
        """Take one of ripgrep's messages, and say whether there is room for more."""
        event = json.loads(message)
        data = event["data"]
        match event["type"]:
            case "begin":
                path = os.fsdecode(_bytes(data["path"]).removeprefix(b"./"))
                self.file, self.is_skipped = printable(path), self.is_ignored(path)
                self.before = (len(self.rows), self.size, self.matches, self.files)
                self.last_line = -1
            case "match" | "context" as kind if not self.is_skipped:
                self._add_line(kind == "match", data)
            case "end" if data["binary_offset"] is not None:
                count, self.size, self.matches, self.files = self.before
                del self.rows[count:]
            case "summary":
                self.searched = data["stats"]["searches"]
        return not self.is_full

    def _add_line(self, is_match: bool, data: dict[str, Any]) -> None:
        number, is_first = data["line_number"], self.last_line == -1
        start = data["submatches"][0]["start"] if is_match else None
        row = _row(self.file, number, _bytes(data["lines"]), start)
        has_gap = self.context_lines and self.rows and number != self.last_line + 1
        rows = [self.file] if self.files_only else [*(["--"] if has_gap else []), row]
        self.rows += rows
        self.size += len("\n".join(rows)) + 1
        self.last_line = number
        self.matches += is_match
        self.files += is_first


Include: TypeAlias = Annotated[
    str | None,
    Field(description="Only files that match this, such as `*.py` or `src/**/*.{ts,tsx}`."),
]
OutputMode: TypeAlias = Annotated[
    Literal["content", "files_with_matches"],
    Field(description="The lines that match, or only the files that have any."),
]


@tool(read_only=True, idempotent=True, open_world=False)
async def grep(
    context: Context,
    pattern: Annotated[str, Field(description="A regular expression, in Python's syntax.")],
    path: Annotated[
        str, Field(description="The file or directory to look in, relative to the workspace.")
    ] = ".",
    include: Include = None,
    output_mode: OutputMode = "content",
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
    start = resolve_in_workspace(context.workspace, path)
    if not start.exists():
        raise ToolFailed(f"`{relative_name(start)}` does not exist.")
    if not start.is_dir() and not start.is_file():
        raise ToolFailed(f"`{relative_name(start)}` is not a regular file.")
    files_only, report = output_mode == "files_with_matches", Report()
    options = [
        *("--json", "--crlf", "--engine=auto", f"--context={context_lines}"),
        *(["--ignore-case"] if ignore_case else []),
        *(["--max-count=1"] if files_only else []),
        *([glob_option(include, start)] if include and start.is_dir() else []),
    ]
    results = Results(files_only, context_lines, max_results)
    if start.is_dir() and (include or start.path != start.root):
        results.is_ignored = await find_ignored(context, start, report)
    await _search(context, start, pattern, options, results, report)
    return _text(results, report)


async def _search(
    context: Context,
    start: SafePath,
    pattern: str,
    options: list[str],
    results: Results,
    report: Report,
) -> None:
    try:
        await run(context, start, [*options, f"--regexp={pattern}"], results.add, report)
    except Refused as error:
        if "glob" in str(error):
            raise
        raise ToolFailed(
            f"`{pattern}` is not a regular expression: {error}. Put a backslash before a letter "
            "that shall only mean itself."
        ) from error
    if "PCRE2: error matching" in report.errors:
        raise ToolFailed(
            "The pattern takes too long: use one without repeats of repeats, such as `(a+)+`."
        )


def _bytes(data: dict[str, str]) -> bytes:
    return data["text"].encode() if "text" in data else base64.b64decode(data["bytes"])


def _row(file: str, number: int, line: bytes, match: int | None) -> str:
    """Show a line, of a long one the part around the match; a line without one is `context`."""
    mark = "-" if match is None else ":"
    text = line.rstrip(b"\r\n").decode(errors="replace")
    at = len(line[: match or 0].decode(errors="replace"))
    start = max(0, min(at - MAX_SHOWN_CHARACTERS // 4, len(text) - MAX_SHOWN_CHARACTERS))
    end = start + MAX_SHOWN_CHARACTERS
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    return f"{file}{mark}{number}{mark}{head}{text[start:end]}{tail}"


def _text(results: Results, report: Report) -> str:
    rows = results.rows
    if results.is_full:
        kind = f"{results.files:,} files" if results.files_only else f"{results.matches:,} lines"
        rows.append(
            f"[These are the first {kind}, and there may be more: use a narrower pattern, `path` "
            "or `include`]"
        )
    plural = "" if results.searched == 1 else "s"
    nothing = f"Nothing matches in {results.searched:,} file{plural}."
    return "\n".join([*(rows or [nothing]), *report.notes()])


GREP = tool_from(grep)

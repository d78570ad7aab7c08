"""What was done to files, as the log remembers it, so that it can be undone on any worker.

An observation of an edit carries the file's content before and after. A content that is too long
for an event, or not UTF-8, is kept as a blob and carried as the blob's key (`blobs/{sha256}`); so
is a content that reads like such a key, so that no key is ever taken for a content.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass

from events.observations import FileEditorObservation
from sandbox.spot import Spot
from storage.keys import check_blob_key
from storage.reader import LogReader
from tools.editing.text_file import load
from tools.history import newest_first
from tools.tool import ToolFailed
from tools.workspace import printable

MOST_CARRIED = 32 * 1024
"""Bytes of a file's content that an observation carries itself."""


@dataclass(frozen=True)
class Edit:
    """The bytes of a file before and after; None where there is no file."""

    spot: Spot
    name: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    """The permissions of a file that is new; None means the usual ones."""

    def check(self) -> None:
        """Raises ToolFailed where the file is not, or no longer, what it was before."""
        now = load(self.spot, self.name) if self.spot.exists() else None
        if now != self.before:
            raise ToolFailed(
                f"`{printable(self.name)}` was changed by something else at the same time, so "
                "nothing was written: view it and try again."
            )


def all_or_none(edits: Sequence[Edit]) -> None:
    """Do all of the edits, which are of different files; where one fails, none is left done.

    Whatever needs room on the disk is written aside before the first file is touched. Raises
    ToolFailed, also where a file is not what it was before.
    """
    with ExitStack() as failing, ExitStack() as cleaning:
        staged = [_staged(edit, cleaning, failing) for edit in edits]
        for edit in edits:
            edit.check()
        for edit, aside in zip(edits, staged, strict=True):
            with _told_of(edit):
                mode = edit.spot.mode()
                if aside is None:
                    edit.spot.remove()
                else:
                    edit.spot.put(aside)
                failing.callback(_restore, edit, mode)
        failing.pop_all()


@contextmanager
def _told_of(edit: Edit) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolFailed(f"`{printable(edit.name)}`: {error.strerror or error}.") from error


def _staged(edit: Edit, cleaning: ExitStack, failing: ExitStack) -> Spot | None:
    """The content beside its place, and the directories that it needs."""
    if edit.after is None:
        return None
    with _told_of(edit):
        for folder in _above(edit.spot):
            with suppress(FileExistsError):
                folder.make_folder()
                failing.callback(_removed, folder.remove_folder)
        mode = edit.mode if edit.before is None else edit.spot.mode()
        aside = edit.spot.staged(edit.after, mode)
        cleaning.callback(_removed, aside.remove)
        return aside


def _above(spot: Spot) -> list[Spot]:
    """The folders that it needs and that are not there, the outermost first."""
    missing: list[Spot] = []
    while spot.path != spot.root and not (spot := spot.parent).exists():
        missing.insert(0, spot)
    return missing


def _restore(edit: Edit, mode: int | None) -> None:
    if edit.before is None:
        _removed(edit.spot.remove)
    else:
        edit.spot.put(edit.spot.staged(edit.before, mode))


def _removed(remove: Callable[[], None]) -> None:
    with suppress(OSError):  # gone already, or somebody has put something into it meanwhile
        remove()


async def carried(content: bytes | None, keep: Callable[[bytes], Awaitable[str]]) -> str | None:
    """A content as an observation carries it: itself, or the key of its blob."""
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return await keep(content)
    return await keep(content) if len(content) > MOST_CARRIED or _is_key(text) else text


async def content_of(log: LogReader, carried: str) -> bytes:
    """The content that an observation carries. Raises ToolFailed where its blob is lost."""
    if not _is_key(carried):
        return carried.encode()
    content = await log.kept(carried)
    if content is None:
        raise ToolFailed(f"The content is no longer kept: {carried} is gone from the store.")
    return content


def _is_key(text: str) -> bool:
    try:
        check_blob_key(text)
    except ValueError:
        return False
    return True


async def last_edit(
    log: LogReader, known: int, is_it: Callable[[str], bool]
) -> FileEditorObservation | None:
    """The newest edit that is not undone, of the file that `is_it` knows by its path.

    `known` is a number of slots that the log has at least. Reads back to that edit, and to the
    beginning of the log where there is none.
    """
    undone = 0
    async with aclosing(newest_first(log, FileEditorObservation, known)) as observations:
        async for seen in observations:
            if seen.is_error or seen.command == "view" or not (seen.path and is_it(seen.path)):
                continue
            if seen.command == "undo_edit":
                undone += 1
            elif undone:
                undone -= 1
            else:
                return seen
    return None

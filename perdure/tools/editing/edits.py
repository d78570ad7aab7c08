"""Atomic edits of files, and their record in the log, so that any worker can undo them.

The observation of an edit carries the file's content before and after. A content that is too long
for an event, or not UTF-8, is stored as a blob and carried as the blob's key (`blobs/{sha256}`); so
is a content that looks like such a key, so that no key is ever taken for a content.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass

from perdure.events.observations import FileEditorObservation
from perdure.sandbox.safe_path import SafePath
from perdure.storage.keys import check_blob_key
from perdure.storage.log.reader import LogReader
from perdure.tools.editing.text_file import load_file
from perdure.tools.history import read_newest_first
from perdure.tools.tool import ToolFailed
from perdure.tools.workspace import printable

MAX_INLINE_BYTES = 32 * 1024
"""Longer contents are carried as blobs."""


@dataclass(frozen=True)
class Edit:
    """The content of a file before and after an edit; None where there is no file."""

    path: SafePath
    name: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    """The permissions of a new file; None means the usual ones."""


def apply_edits(edits: Sequence[Edit]) -> None:
    """Apply all edits, each of a different file; if one fails, roll back the others.

    New contents are written to temporary files before the first file changes. Raises ToolFailed,
    also where a file's content is not what the edit expects.
    """
    with ExitStack() as failing, ExitStack() as cleaning:
        staged = [_stage(edit, cleaning, failing) for edit in edits]
        for edit in edits:
            content = load_file(edit.path, edit.name) if edit.path.exists() else None
            if content != edit.before:
                raise ToolFailed(
                    f"`{printable(edit.name)}` was changed by something else at the same time, so "
                    "nothing was written: view it and try again."
                )
        for edit, staged_path in zip(edits, staged, strict=True):
            with _report_os_errors(edit):
                mode = edit.path.mode()
                if staged_path is None:
                    edit.path.remove()
                else:
                    edit.path.commit(staged_path)
                failing.callback(_restore, edit, mode)
        failing.pop_all()


@contextmanager
def _report_os_errors(edit: Edit) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolFailed(f"`{printable(edit.name)}`: {error.strerror or error}.") from error


def _stage(edit: Edit, cleaning: ExitStack, failing: ExitStack) -> SafePath | None:
    """Write the new content to a temporary file, and make the missing directories."""
    if edit.after is None:
        return None
    with _report_os_errors(edit):
        for folder in _missing_parents(edit.path):
            with suppress(FileExistsError):
                folder.make_folder()
                failing.callback(_try_remove, folder.remove_folder)
        mode = edit.mode if edit.before is None else edit.path.mode()
        staged = edit.path.stage(edit.after, mode)
        cleaning.callback(_try_remove, staged.remove)
        return staged


def _missing_parents(path: SafePath) -> list[SafePath]:
    missing: list[SafePath] = []
    while path.path != path.root and not (path := path.parent).exists():
        missing.insert(0, path)
    return missing


def _restore(edit: Edit, mode: int | None) -> None:
    if edit.before is None:
        _try_remove(edit.path.remove)
    else:
        edit.path.commit(edit.path.stage(edit.before, mode))


def _try_remove(remove: Callable[[], None]) -> None:
    with suppress(OSError):  # removed already, or a folder that is no longer empty
        remove()


async def encode_content(
    content: bytes | None, store_blob: Callable[[bytes], Awaitable[str]]
) -> str | None:
    """Return the content as text where an observation can carry it, else its blob's key."""
    if content is None:
        return None
    with suppress(UnicodeDecodeError):
        text = content.decode()
        if len(content) <= MAX_INLINE_BYTES and not _is_key(text):
            return text
    return await store_blob(content)


async def load_content(log: LogReader, encoded: str) -> bytes:
    """Return the content that `encode_content` encoded. Raises ToolFailed if its blob is lost."""
    if not _is_key(encoded):
        return encoded.encode()
    content = await log.read_blob(encoded)
    if content is None:
        raise ToolFailed(f"The content is no longer kept: {encoded} is gone from the store.")
    return content


def _is_key(text: str) -> bool:
    try:
        check_blob_key(text)
    except ValueError:
        return False
    return True


async def find_last_edit(
    log: LogReader, min_length: int, matches: Callable[[str], bool]
) -> FileEditorObservation | None:
    """Find the newest edit, not yet undone, of the file whose path `matches` accepts.

    The log has at least `min_length` slots. Reads back to that edit, or to the log's beginning.
    """
    undo_count = 0
    async with aclosing(read_newest_first(log, FileEditorObservation, min_length)) as observations:
        async for observation in observations:
            is_edit = not observation.is_error and observation.command != "view"
            if not (is_edit and observation.path and matches(observation.path)):
                continue
            if observation.command == "undo_edit":
                undo_count += 1
            elif undo_count:
                undo_count -= 1
            else:
                return observation
    return None

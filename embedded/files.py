"""Files and folders that nobody else on the machine may read."""

import os
from pathlib import Path

from embedded.errors import FolderUnusable


def make_folder(folder: Path) -> None:
    """Makes `folder` where it is missing; raises FolderUnusable where nothing can be kept in it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnusable(f"Nothing can be kept in {folder}: {error}.") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FolderUnusable(f"Nothing can be kept in {folder}: it must be writable for you.")


def write_private(path: Path, text: str) -> None:
    """Makes `text` all that `path` holds; a reader sees the old text or the new, never a part."""
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.rename(path)

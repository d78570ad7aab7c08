"""Files, directories and images as the model is shown them."""

import base64
import os
from collections.abc import Iterator, Sequence
from itertools import islice

from perdure.events.content import ImageContent, TextContent
from perdure.sandbox.safe_path import SafePath
from perdure.tools.tool import ToolFailed
from perdure.tools.workspace import printable

LONGEST = 30_000
"""Characters of a file that are shown at once."""

MOST_ENTRIES = 1_000
AROUND = 4
"""Lines shown before and after an edit."""

MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""The largest image that providers accept."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last`, counted from 1, as `cat -n` prints them; whole lines that fit."""
    rows: list[str] = []
    room = LONGEST
    for number in range(first, last + 1):
        row = f"{number:6}\t{lines[number - 1]}"
        if len(row) > room and rows:
            rows.append(f"[lines {number} to {last} are left out: use `view_range` to see them]")
            break
        if (more := len(row) - room) > 0:
            row = f"{row[:room]}[{more:,} more characters of this line are left out]"
        rows.append(row)
        room -= len(row) + 1
    return "\n".join(rows)


def around(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last` with some before and after."""
    return numbered(lines, max(1, first - AROUND), min(len(lines), last + AROUND))


def tree(directory: SafePath) -> str:
    """List a directory and its directories, a path a line, without hidden files."""
    rows = _entries(directory, "", levels=2)
    shown = list(islice(rows, MOST_ENTRIES))
    if more := sum(1 for _ in rows):
        shown.append(f"[{more:,} more are left out: view a directory further down]")
    with directory.scan() as (_, entries):
        hidden = sum(entry.name.startswith(".") for entry in entries)
    if hidden:
        shown.append(f"[{hidden} hidden entries are not shown]")
    return "\n".join(shown) or "(empty)"


def _entries(directory: SafePath, prefix: str, levels: int) -> Iterator[str]:
    try:
        entries = _named(directory)
    except OSError:  # closed to us, or gone, or something else by now
        yield f"{prefix}(unreadable)"
        return
    for name, is_folder, target in entries:
        path = prefix + printable(name)
        arrow = "" if target is None else f" -> {printable(target)}"
        yield f"{path}/" if is_folder else f"{path}{arrow}"
        if is_folder and levels > 1:
            inner = SafePath(directory.root, directory.path / name)
            yield from _entries(inner, f"{path}/", levels - 1)


def _named(directory: SafePath) -> list[tuple[str, bool, str | None]]:
    """Yield the name, the kind and the target of a link of each entry that is not hidden."""
    with directory.scan() as (folder, entries):
        return sorted(
            (
                entry.name,
                entry.is_dir(follow_symlinks=False),
                os.readlink(entry.name, dir_fd=folder) if entry.is_symlink() else None,
            )
            for entry in entries
            if not entry.name.startswith(".")
        )


def read_image_type(path: SafePath) -> str | None:
    """Return the media type of an image that models accept, detected from the file's content."""
    with path.open() as file:
        return detect_image_type(file.read(16))


def detect_image_type(head: bytes) -> str | None:
    """Return the media type of an image from its first bytes; None for anything else.

    A declared type is not trusted: providers reject the whole prompt for a wrong one.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _SIGNATURES if head.startswith(magic)), None)


def render_image(path: SafePath, name: str, media_type: str) -> tuple[TextContent, ImageContent]:
    """Return a caption and the image. Raises ToolFailed, OSError."""
    size, data = path.read(MAX_IMAGE_BYTES)
    if size > MAX_IMAGE_BYTES:
        raise ToolFailed(
            f"`{printable(name)}` is an image of {size:,} bytes, and at most {MAX_IMAGE_BYTES:,} "
            "can be shown: make a smaller one."
        )
    caption = TextContent(text=f"`{name}` is an image ({media_type}, {size:,} bytes):")
    return caption, image_content(media_type, data)


def image_content(media_type: str, data: bytes) -> ImageContent:
    """Return the image as a data URL."""
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return ImageContent(image_urls=(url,))

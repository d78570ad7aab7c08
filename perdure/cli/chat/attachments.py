"""Files that a message names by `@path`, and images whose path stands in it."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perdure.cli.arguments import load_images
from perdure.client.images import Image
from perdure.errors import Invalid

MENTION = re.compile(r"(?<!\S)@(\"[^\"\n]+\"|(?:\\.|\S)+)")

DROPPED_PATH = re.compile(r"(?<!\S)('/[^'\n]+'|\"/[^\"\n]+\"|(?:/|~/|file:///)(?:\\.|\S)+)")
"""A path as terminals write it where a file is dropped on them."""

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")

MAX_ATTACHED_BYTES = 512 * 1024
"""Bytes of a file whose content goes into a message."""


@dataclass(frozen=True)
class Draft:
    """A message to send: its text with the attached files, and what a person should know."""

    text: str = ""
    images: tuple[Image, ...] = ()
    remarks: tuple[str, ...] = ()

    def __add__(self, other: "Draft") -> "Draft":
        images, remarks = self.images + other.images, self.remarks + other.remarks
        return Draft(self.text + other.text, images, remarks)


def draft_images(sources: list[str]) -> Draft:
    """Draft a message of images, and no text yet. Raises Invalid."""
    remarks = tuple(f"Attached: {source}" for source in sources)
    return Draft("", load_images(sources), remarks)


def attach_files(text: str, workspace: Path | None) -> Draft:
    """Attach what a message names.

    `@path` of the workspace stays a path, which the agent can open; a file elsewhere is attached
    with its content, a folder with its names, and an image as an image. Raises Invalid.
    """
    images: dict[str, None] = {}
    attached: dict[str, str] = {}
    remarks: list[str] = []

    def replace(match: re.Match[str]) -> str:
        word, trail = _split_punctuation(match[1], workspace)
        path = find_path(word, workspace)
        if path is None:
            if "/" in word or "." in word.strip("."):
                remarks.append(f"There is no file {word}: the message is sent as it stands.")
            return match[0]
        if path.suffix.lower() in IMAGE_SUFFIXES:
            images[str(path)] = None
        elif inner := _relative(path, workspace):
            return inner + trail
        elif str(path) not in attached:
            attached[str(path)] = _read(path)
        return str(path) + trail

    changed = MENTION.sub(replace, text)
    for path in _dropped_images(changed):
        images[str(path)] = None
    blocks = (f'<file path="{path}">\n{content}\n</file>' for path, content in attached.items())
    remarks += [f"Attached: {path}" for path in (*attached, *images)]
    return Draft("\n\n".join([changed, *blocks]), load_images(images), tuple(remarks))


def find_path(word: str, workspace: Path | None) -> Path | None:
    """Find the file or folder that a word names, in the workspace before the current folder."""
    path = Path(_unquote(word).removeprefix("file://")).expanduser()
    folders = [workspace, Path.cwd()] if workspace is not None else [Path.cwd()]
    for folder in folders:
        try:
            if (folder / path).exists():
                return (folder / path).resolve()
        except (OSError, ValueError):  # no name of a file at all
            return None
    return None


def _split_punctuation(word: str, workspace: Path | None) -> tuple[str, str]:
    """Split off a comma or full stop that ends the sentence and not the name."""
    bare = word.rstrip(".,;:!?)")
    whole = find_path(word, workspace) is not None
    return (word, "") if whole or not bare else (bare, word[len(bare) :])


def _unquote(word: str) -> str:
    try:
        return " ".join(shlex.split(word))
    except ValueError:  # a quotation mark of the name itself
        return word


def _dropped_images(text: str) -> Iterator[Path]:
    for match in DROPPED_PATH.finditer(text):
        path = find_path(match[1], None)
        if path is not None and path.suffix.lower() in IMAGE_SUFFIXES:
            yield path


def _relative(path: Path, workspace: Path | None) -> str | None:
    """Return a path within the workspace as the agent names it."""
    if workspace is None or not path.is_relative_to(workspace.resolve()):
        return None
    return str(path.relative_to(workspace.resolve()))


def _read(path: Path) -> str:
    """Read a file as text, or list a folder. Raises Invalid."""
    try:
        if path.is_dir():
            return "\n".join(sorted(f"{it.name}{'/' * it.is_dir()}" for it in path.iterdir()))
        if (size := path.stat().st_size) > MAX_ATTACHED_BYTES:
            raise Invalid(
                f"{path} has {size:,} bytes, and {MAX_ATTACHED_BYTES:,} is the most.",
                "Copy it into the workspace, and name it there.",
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is no text.", "Copy it into the workspace.") from error
    except OSError as error:
        raise Invalid(f"{path} cannot be read ({error.strerror}).") from error

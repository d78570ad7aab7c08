"""The files of the page, in memory, with a digest of all of them in their addresses."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""The kinds of files that are served; a file of another kind, such as a licence, is not."""


@dataclass(frozen=True)
class PageFile:
    """A file with its content; `path` is relative to the folder of the page."""

    path: str
    content: bytes

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[Path(self.path).suffix]

    @cached_property
    def gzipped(self) -> bytes:
        return gzip.compress(self.content, 9, mtime=0)

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'


@dataclass(frozen=True)
class PageFiles:
    """The files of the page by their paths."""

    files: dict[str, PageFile]

    @cached_property
    def digest(self) -> str:
        """A hash of all files: under `/page/{digest}/` no file ever changes."""
        state = hashlib.sha256()
        for path, file in sorted(self.files.items()):
            state.update(f"{path}\n{file.etag}\n".encode())
        return state.hexdigest()[:16]


def load_files(folder: Path = FOLDER) -> PageFiles:
    """Load the files of the page from their folder."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in MEDIA_TYPES)
    names = [path.relative_to(folder).as_posix() for path in paths]
    contents = [path.read_bytes() for path in paths]
    return PageFiles(
        {name: PageFile(name, body) for name, body in zip(names, contents, strict=True)}
    )

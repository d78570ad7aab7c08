"""Zip files that are written piece by piece."""

import zipfile
from typing import IO

FILE_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of every file in a zip: nobody needs it, and equal logs make equal bytes."""


class ZipStream:
    """A zip that holds only the bytes that nobody took yet."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._archive = zipfile.ZipFile(self, "w")

    def open_file(self, name: str) -> IO[bytes]:
        """Open the next file, to be written and closed before another is opened."""
        return self._archive.open(_info(name), "w", force_zip64=True)

    def add(self, name: str, body: bytes) -> None:
        self._archive.writestr(_info(name), body)

    def close(self) -> None:
        self._archive.close()

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Do nothing: no byte is held back."""

    def take_bytes(self) -> bytes:
        body = b"".join(self._pieces)
        self._pieces.clear()
        return body


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, FILE_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info

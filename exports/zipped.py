"""Zip files that are made piece by piece."""

import zipfile
from typing import IO

LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a zip: nobody needs it, and the same log makes the same bytes."""


class Zip:
    """A zip in the making; nothing but what nobody took yet is held of it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._archive = zipfile.ZipFile(self, "w")

    def opened(self, name: str) -> IO[bytes]:
        """The next file, to be written and closed before another is opened."""
        return self._archive.open(_info(name), "w", force_zip64=True)

    def add(self, name: str, body: bytes) -> None:
        self._archive.writestr(_info(name), body)

    def close(self) -> None:
        self._archive.close()

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Nothing is held back."""

    def taken(self) -> bytes:
        body = b"".join(self._pieces)
        self._pieces.clear()
        return body


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, LONG_AGO)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info

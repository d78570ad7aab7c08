"""Write objects until killed, and print the acknowledged ones.

Run as: killed_writer.py FOLDER NAME [SYSTEM]; the system may be one without nameless files.
"""

import asyncio
import hashlib
import itertools
import os
import sys
from pathlib import Path

from perdure.storage.files import FileStore


def body(key: str) -> bytes:
    """Return 200 KB that begin with their own hash."""
    content = key.encode() * (200_000 // len(key))
    return hashlib.sha256(content).hexdigest().encode() + content


async def write(folder: str, name: str) -> None:
    store = FileStore(Path(folder))
    for number in itertools.count():
        key = f"{name}/{number // 5}/{number:06d}"
        await store.create(key, body(key))
        await store.replace(f"{name}/state", body(key))
        os.write(sys.stdout.fileno(), f"{key}\n".encode())


if __name__ == "__main__":
    if sys.argv[3:] == ["without"]:
        del os.O_TMPFILE
    asyncio.run(write(*sys.argv[1:3]))

"""Count in an object that others count in, until the input ends, and print how often.

Run as: counting_writer.py FOLDER.
"""

import asyncio
import sys
from pathlib import Path

from perdure.storage.files import FileStore

KEY = "state/count"

PADDING = b" " * 4_000_000
"""What makes it take a while to read the object: a process that stands still often does so then."""


async def count(folder: str) -> None:
    store, times = FileStore(Path(folder)), 0
    ending = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    while not ending.done():
        found = await store.read_version(KEY)
        assert found is not None
        body = b"%d" % (int(found.body) + 1) + PADDING
        times += await store.replace_version(KEY, body, found.tag)
    await store.close()
    print(times)


if __name__ == "__main__":
    asyncio.run(count(sys.argv[1]))

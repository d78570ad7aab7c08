"""Starts a stack in the folder that is its first argument, says where it is, and waits.

In another thread, where `thread` is the second argument: then its servers do not end with it.
"""

import asyncio
import sys
import threading
from pathlib import Path

from embedded.stack import Stack
from tests.embedded.processes import SLEEPER


async def run() -> None:
    stack = await Stack.start(Path(sys.argv[1]), ui=False, worker=SLEEPER)
    print(stack.info.model_dump_json(), flush=True)
    await stack.wait()


def main() -> None:
    if sys.argv[2:] == ["thread"]:
        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        thread.join()
    else:
        asyncio.run(run())


if __name__ == "__main__":
    main()

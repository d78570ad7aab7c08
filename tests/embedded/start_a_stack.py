"""Start a stack in the folder given as first argument, print its record, and wait.

With `thread` as second argument, it starts in another thread, and its servers outlive the process.
"""

import asyncio
import sys
import threading
from pathlib import Path

from perdure.embedded.stack import Stack
from tests.embedded.processes import SLEEP_COMMAND


async def run() -> None:
    stack = await Stack.start(Path(sys.argv[1]), ui=False, worker=SLEEP_COMMAND)
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

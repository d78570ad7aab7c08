"""Start a child process in the folder given as argument, print its pid, and wait."""

import asyncio
import sys
from pathlib import Path

from perdure.embedded.process import ChildProcess
from tests.embedded.processes import SLEEP_COMMAND


async def main() -> None:
    child = await ChildProcess.start("sleeper", SLEEP_COMMAND, Path(sys.argv[1]) / "sleeper.log")
    print(child.pid, flush=True)
    await child.wait()


if __name__ == "__main__":
    asyncio.run(main())

"""Starts a child process in the folder that is its argument, says its pid, and waits."""

import asyncio
import sys
from pathlib import Path

from embedded.process import ChildProcess
from tests.embedded.processes import SLEEPER


async def main() -> None:
    child = await ChildProcess.start("sleeper", SLEEPER, Path(sys.argv[1]) / "sleeper.log")
    print(child.pid, flush=True)
    await child.wait()


if __name__ == "__main__":
    asyncio.run(main())

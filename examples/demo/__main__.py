"""The demo of `make run`: a scripted agent at work, and how to disturb it."""

import asyncio
import subprocess
import sys
from pathlib import Path

from perdure.embedded.discovery import find_stack
from perdure.settings.settings import load_settings

TASK = "Write a program that adds up numbers, with a test, and make the test pass."
SCRIPT = Path(__file__).with_name("script.json")
COMMAND = [sys.executable, "-m", "perdure.cli.main", "run", TASK, "--model", f"scripted:{SCRIPT}"]

POLL_INTERVAL = 0.1


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def name_worker(run: subprocess.Popen[bytes]) -> None:
    """Say how to kill the worker, as soon as there is one."""
    folder = load_settings().data
    while run.poll() is None:
        if info := await find_stack(folder):
            say(f"Kill its worker while it works, and see it go on: kill -9 {info.pids['worker']}")
            return
        await asyncio.sleep(POLL_INTERVAL)


def main() -> int:
    say(f"The task: {TASK}")
    with subprocess.Popen(COMMAND) as run:
        try:
            asyncio.run(name_worker(run))
            return run.wait()
        except KeyboardInterrupt:  # the command has it too, and says what becomes of its work
            return run.wait()


if __name__ == "__main__":
    sys.exit(main())

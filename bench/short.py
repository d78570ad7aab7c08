"""The benches with small numbers, only to see that they run: `python -m bench.short`.

They run side by side, so their figures say nothing.
"""

import asyncio
import sys

from bench.processes import ROOT, measured_environment

COMMANDS = (
    "gateway load --conversations 4 --working 2 --steps 3 --pace 0.5",
    "recover --rounds 1",
    "long --steps 200 --s3 --http",
    "step --rounds 1 --steps 11 --only s3+http",
    "one --rounds 1 --count 4 --only files",
    "many --rounds 1 --conversations 4 --workers 1 --steps 5 --only files+brief",
    "snapshots --files 200",
    "memory scale ingestion --users 3 --memories 50 --searches 30 --turns 50",
    "worker_start --rounds 1 --ways module --only files+http",
)
"""The longest ones first."""

CONCURRENCY = 3
"""Commands at a time: they wait as much as they work."""


async def run_command(command: str, room: asyncio.Semaphore) -> bool:
    """Run a bench and print its output; tell whether it succeeded."""
    async with room:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", f"bench.{command.split()[0]}", *command.split()[1:]),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env=measured_environment({}),
        )
        output, _ = await process.communicate()
    failure = f": FAILED with exit code {process.returncode}" if process.returncode else ""
    print(f"bench.{command}{failure}\n{output.decode()}", flush=True)
    return process.returncode == 0


async def main() -> int:
    room = asyncio.Semaphore(CONCURRENCY)
    succeeded = await asyncio.gather(*(run_command(command, room) for command in COMMANDS))
    return 0 if all(succeeded) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

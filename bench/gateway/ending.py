"""The ends of what a run waits for: each comes in time, or the run ends with a sentence."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress

END_SECONDS = 20.0
"""Seconds that a process has to end by itself, before it is killed."""


class BenchFailed(Exception):
    """The reason why a run ends without its figures, as a sentence."""


@asynccontextmanager
async def within(seconds: float, work: str) -> AsyncIterator[None]:
    """Give `work` so many seconds. Raises BenchFailed, which names it, where it takes longer."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        advice = "the machine is too busy, or something hangs"
        raise BenchFailed(f"{work} took more than {seconds:.0f} s: {advice}.") from error


async def note_failure(work: Awaitable[None], faults: list[str]) -> None:
    """Do some work; where it fails, note why, so that what was measured meanwhile is kept."""
    try:
        await work
    except BenchFailed as error:
        faults.append(str(error))


async def end_process(process: asyncio.subprocess.Process) -> None:
    """End a process by SIGTERM, or by SIGKILL where that does not help."""
    with suppress(ProcessLookupError):  # it has ended
        process.terminate()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def end_child(process: subprocess.Popen[bytes]) -> None:
    """Do the same for a process that was started without the event loop."""
    process.terminate()
    try:
        await asyncio.to_thread(process.wait, END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        await asyncio.to_thread(process.wait)

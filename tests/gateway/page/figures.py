"""How quickly long conversations open and scroll: `make page-figures` prints it.

Exits with 1 where a time is longer than the design allows. The machine must be quiet.
"""

import asyncio
import logging
import os
import sys
import tempfile

# Before anything imports litellm, which would else fetch its prices from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

from tests.gateway.page.browser import open_browser, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.page.environment import main as prepare
from tests.gateway.page.stage import open_stage
from tests.gateway.page.timing import LONGEST_TASK, open_and_time, scroll, write_conversation

EVENTS = (100, 10_000, 100_000)
TIMES = 5

LONGEST_OPENING = {10_000: 1000.0}
"""Milliseconds from the click to the last event, by the number of events."""


async def main() -> int:
    """Print a row for each length; return 1 where one takes too long."""
    logging.getLogger("uvicorn.error").disabled = True  # the last requests are cut off at the end
    slow = False
    with tempfile.TemporaryDirectory() as folder:
        async with (
            AsyncExitStack() as closing,
            open_stage(Path(folder), closing) as stage,
            open_browser() as browser,
            visit(browser, stage.url) as visitor,
        ):
            await visitor.log_in(key_of(stage.anna))
            print("| events | to open, ms: first; median of four | longest task in scrolling, ms |")
            print("|---|---|---|")
            for events in EVENTS:
                name = await write_conversation(stage, events)
                first, *later = [await open_and_time(visitor, name) for _ in range(TIMES)]
                task = await scroll(visitor)
                print(f"| {events:,} | {first:.0f}; {median(later):.0f} | {task:.0f} |", flush=True)
                longest = LONGEST_OPENING.get(events, float("inf"))
                slow |= median(later) > longest or task > LONGEST_TASK
    return int(slow)


if __name__ == "__main__":
    sys.exit(prepare() or asyncio.run(main()))

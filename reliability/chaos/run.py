"""A chaos run: servers, workers, load, strikes, and the audit of the result."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import monotonic

from reliability.chaos.audit.whole import audit_run
from reliability.chaos.load.debates import run_debate
from reliability.chaos.load.load import Load
from reliability.chaos.report import Report
from reliability.chaos.stage import start_stage
from reliability.chaos.strikes import StrikeKind, StrikeRunner, plan_strikes

SETTLE_SECONDS = 5.0
"""Seconds after the last conversation for late requests to finish."""


@dataclass(frozen=True)
class Plan:
    """`conversations` go on at a time; when one has come to its end, the next one begins.

    `faults` is the share of the requests to the store that something befalls, `every` the seconds
    from a worker's being at work to the next strike.
    """

    kills: int
    server_kills: int
    frozen: int
    conversations: int
    workers: int
    faults: float
    every: float
    seed: int


async def run(plan: Plan, folder: Path, tell: Callable[[str], None]) -> Report:
    """Carry out the plan with servers whose files are in `folder`; `tell` hears how it goes.

    Raises ProcessFailed where a server does not come up.
    """
    start = monotonic()
    async with start_stage(plan.seed, folder) as stage:
        chance = random.Random(plan.seed)
        load = Load(stage, plan.seed)
        try:
            await stage.workers.start(plan.workers)
            await run_debate(stage.client, load.undisturbed, stage.model)
            stage.network.rate = plan.faults
            hunt = StrikeRunner(stage.workers, stage.temporal, load.live, chance, plan.every)
            strikes = plan_strikes(plan.kills, plan.server_kills, plan.frozen, chance)
            await run_all(plan, load, hunt, strikes, tell)
            await asyncio.sleep(SETTLE_SECONDS)
        finally:
            await stage.workers.stop()
        tell(f"all is done after {monotonic() - start:.0f} s; the audit")
        report = Report(plan.seed, hunt.strikes, stage.writes, stage.network, stage.workers)
        await audit_run(stage, load, report, folder)
        report.seconds = monotonic() - start
        return report


async def run_all(
    plan: Plan,
    load: Load,
    hunt: StrikeRunner,
    strikes: Sequence[StrikeKind],
    tell: Callable[[str], None],
) -> None:
    """Run the items of the load one after the other, so many at a time, until no strike is left."""
    numbers = count()

    async def some(lane: int) -> None:
        while not hunting.done():
            await load.run_item(next(numbers), lane)
            ended = sum(item.end == "" for item in load.items)
            tell(f"{len(hunt.strikes)} strikes, {ended} conversations and debates at their end")

    async with asyncio.TaskGroup() as lanes:
        hunting = lanes.create_task(hunt.run(strikes))
        for lane in range(plan.conversations):
            lanes.create_task(some(lane))

"""`python -m reliability.sessions`: more conversations than the limit begin at once, over and over.

Three gateways serve them. In every second round a gateway is killed meanwhile, and in every
eighth a worker.
"""

import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from reliability.chaos.command_line import new_parser, parse_options, run_harness
from reliability.sessions.round import run_round
from reliability.sessions.stage import Stage, open_stage

SHORT, FULL = 8, 200
GATEWAY_EVERY, WORKER_EVERY = 2, 8


async def run(rounds: int, seed: int, folder: Path) -> dict[str, Any]:
    """Run all rounds; return the report."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    async with open_stage(folder, seed) as stage:
        for number in range(1, rounds + 1):
            chance = random.Random(f"{seed} strike {number}")
            strike = choose_strike(stage, number, chance, counts)
            found = await run_round(stage, number, seed, counts, strike)
            findings += found
            for finding in found:
                print(finding, file=sys.stderr)
            if number % 10 == 0:
                print(f"{number} rounds", file=sys.stderr)
        findings += stage.workers.crash_outputs
    return {"seed": seed, "counts": dict(sorted(counts.items())), "findings": findings}


def choose_strike(
    stage: Stage, number: int, chance: random.Random, counts: Counter[str]
) -> Callable[[], Awaitable[None]] | None:
    async def kill_gateway() -> None:
        gateway = chance.choice(stage.gateways)
        await gateway.kill()
        counts["gateways killed"] += 1
        await gateway.start()

    async def kill_worker() -> None:
        await stage.workers.kill(chance.choice(list(stage.workers.workers)))
        counts["workers killed"] += 1

    if number % WORKER_EVERY == 0:
        return kill_worker
    return kill_gateway if number % GATEWAY_EVERY == 0 else None


def main() -> None:
    """Exit code 0 means that no more than the limit were at work, and each of the others told."""
    parser = new_parser("reliability.sessions", __doc__)
    parser.add_argument("--rounds", type=int, help=f"by default {FULL}")
    options = parse_options(parser)
    # The SDK writes its warnings to standard output, where the report is to be.
    quiet = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=quiet)))
    rounds = options.rounds or (SHORT if options.short else FULL)
    run_harness(lambda folder: run(rounds, options.seed, folder), options.keep)


if __name__ == "__main__":
    main()

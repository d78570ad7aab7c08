"""`python -m reliability.clients`: clients of others, while what they talk to is killed.

Workers, gateways and Temporal are killed every five seconds. Each client is a program with somebody
else's library, unmodified: it has conversations through a gateway until its time is over, makes a
request again that failed, and says what it has seen. Then the logs are audited.
"""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from reliability.chaos.command_line import new_parser, parse_options, run_harness
from reliability.clients.audit import audit_conversation
from reliability.clients.program import PROGRAMS, Program, run_program
from reliability.clients.stage import open_clients_stage
from reliability.following.killers import make_killers

WORKERS = 3

SHORT_SECONDS, FULL_SECONDS = 30.0, 300.0


async def run(
    programs: Sequence[Program], seconds: float, seed: int, folder: Path
) -> dict[str, Any]:
    """Run the programs while things are killed; return the report."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    async with open_clients_stage(folder, seed, WORKERS) as stage:
        began, over = monotonic(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for kill_all in make_killers(stage.following, counts, over, random.Random(seed)):
                tasks.create_task(kill_all)
            runs = [run_program(stage, program, seconds, seed) for program in programs]
            reports = await asyncio.gather(*runs)
            over.set()
        for report in reports:
            name = report.program.name
            counts[f"{name} conversations"] += len(report.accounts)
            findings += [f"{name}: {finding}" for finding in report.findings]
            for account in report.accounts:
                counts[f"{name} turns"] += len(account.sent)
                counts[f"{name} requests made again"] += account.repeats
                faults = await audit_conversation(stage, account)
                findings += [
                    f"{name}: {account.id}: {fault}" for fault in (*account.faults, *faults)
                ]
        findings += stage.following.workers.crash_outputs
        return {
            "seed": seed,
            "seconds": round(monotonic() - began),
            "counts": dict(sorted(counts.items())),
            "findings": findings,
        }


def main() -> None:
    """Exit code 0 means that all is in order, of the clients that are installed."""
    parser = new_parser("reliability.clients", __doc__)
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these clients")
    parser.add_argument("--seconds", type=float, help="until a client begins no other conversation")
    options = parse_options(parser)
    seconds = options.seconds or (SHORT_SECONDS if options.short else FULL_SECONDS)
    chosen = [program for program in PROGRAMS if program.name in options.only]
    programs = [program for program in chosen if program.is_installed()]
    for missing in (program for program in chosen if program not in programs):
        print(f"NOT CHECKED: {missing.name}: {missing.advice}", file=sys.stderr)
    run_harness(lambda folder: run(programs, seconds, options.seed, folder), options.keep)


if __name__ == "__main__":
    main()

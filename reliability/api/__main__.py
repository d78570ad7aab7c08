"""`python -m reliability.api`: Schemathesis tries everything that the OpenAPI file allows.

Two users, each with conversations, batches and keys, send the requests. Nothing may fail (5xx), be
answered otherwise than described, be given to whom it does not belong, or be taken without a key.
"""

import argparse
import asyncio
import json
import os
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reliability.api.canary_users import write_canary_users
from reliability.api.environment import SCHEMATHESIS
from reliability.api.stage import Stage, open_stage
from reliability.chaos.evidence import evidence_folder

SHORT, FULL = 3_000, 100_000

PARALLEL = {SHORT: 1, FULL: 2}
"""Runs beside each other, each in a process of its own."""

EXAMPLES = {SHORT: 20, FULL: 200}
"""Cases of an operation in one run of Schemathesis; there are as many runs as it takes."""

COMMAND = Path(SCHEMATHESIS.python).with_name("schemathesis")

CONFIGURATION = """\
[auth.wfc]
path = "{users}"
peers = ["anna", "ben"]

[checks]
max_response_time = 60.0

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "403", "404", "409", "422", "504"]

[checks.negative_data_rejection]
expected-statuses = ["4xx", "5xx"]

[[operations]]
include-name = "GET /v1/conversations/{{conversation_id}}/turn"
checks.negative_data_rejection.expected-statuses = ["200", "4xx"]

[[operations]]
include-name = "POST /v1/login"
checks.positive_data_acceptance.expected-statuses = ["204", "401", "422"]

[[operations]]
include-name = "GET /v1/feed"
enabled = false

[[operations]]
include-name = "POST /v1/logout"
enabled = false
"""
"""What is not as the schema alone says.

A schema does not say all that makes sense: what fits it may still be answered with 422. A made-up
conversation is replaced by a real one, and a turn has a `wait` of ours, so that what was made to be
refused is not. A made-up key of a login is none. A feed does not end, and its tests are others'; a
logout needs a session of a browser.
"""

COUNTED = re.compile(r"(\d[\d,]*) generated")


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run until there were enough cases; return the report."""
    chance, cases, findings = random.Random(options.seed), 0, list[str]()
    runs = 0
    async with open_stage(folder, options.seed) as stage:
        write_settings(stage, folder)
        while cases < options.cases and not findings:
            seeds = [chance.randrange(10**6) for _ in range(options.parallel)]
            for code, said in await asyncio.gather(
                *(try_everything(stage, folder, seed, options.examples) for seed in seeds)
            ):
                runs += 1
                (folder / f"schemathesis-{runs}.txt").write_text(said)
                count = count_cases(said)
                cases += count
                if code != 0 or count == 0:
                    findings.append(said)
            print(f"{cases:,} cases", file=sys.stderr)
        findings += find_failures(stage.gateway.log) + stage.workers.crash_outputs
    return {"seed": options.seed, "runs": runs, "cases": cases, "findings": findings}


def write_settings(stage: Stage, folder: Path) -> None:
    write_canary_users(folder / "canary-users.json", stage.users)
    headers = {
        user.user_id: [{"name": "Authorization", "value": f"Bearer {user.key}"}]
        for user in stage.users
    }
    users = [{"name": name, "fixedHeaders": fixed} for name, fixed in headers.items()]
    (folder / "users.json").write_text(json.dumps({"auth": users}))
    settings = CONFIGURATION.format(users=folder / "users.json")
    (folder / "schemathesis.toml").write_text(settings)


async def try_everything(stage: Stage, folder: Path, seed: int, examples: int) -> tuple[int, str]:
    """Run Schemathesis once; return its exit code and what it said."""
    arguments: Sequence[object] = (
        *("--config-file", folder / "schemathesis.toml", "run"),
        *(f"{stage.gateway.url}/openapi.json", "--url", stage.gateway.url),
        *("--checks", "all", "--max-examples", examples, "--seed", seed),
        *("--request-timeout", 60, "--workers", 1, "--continue-on-failure", "--no-color"),
        *("--generation-database", "none", "--warnings", "off", "--suppress-health-check", "all"),
        *("--output-truncate", "true", "--max-failures", 30),
    )
    env = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "reliability.api.hooks",
        "PERDURE_CANARY_USERS": str(folder / "canary-users.json"),
    }
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        *map(str, arguments),
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode(errors="replace")


def count_cases(said: str) -> int:
    found = COUNTED.findall(said)
    return int(found[-1].replace(",", "")) if found else 0


def find_failures(log: Path) -> list[str]:
    """Return the lines in which a gateway reports a bug of its own."""
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if " ERROR " in line][:20]


def main() -> None:
    """Exit code 0 means that nothing was found; 77 that Schemathesis is not installed."""
    parser = argparse.ArgumentParser(prog="python -m reliability.api", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT:,} cases")
    parser.add_argument("--cases", type=int, help=f"by default {FULL:,}")
    parser.add_argument("--examples", type=int, help="cases of an operation in one run")
    parser.add_argument("--seed", type=int, help="decides all that chance decides here")
    parser.add_argument("--keep", action="store_true", help="keep logs and stored objects")
    options = parser.parse_args()
    options.cases = options.cases or (SHORT if options.short else FULL)
    options.examples = options.examples or EXAMPLES[SHORT if options.short else FULL]
    options.parallel = PARALLEL[SHORT if options.short else FULL]
    if options.seed is None:  # the short run judges a change, not its luck
        options.seed = 1 if options.short else random.randrange(1_000_000)
    print(f"seed {options.seed}", file=sys.stderr)
    with evidence_folder(options.keep) as evidence:
        report = asyncio.run(run(options, evidence.path))
        evidence.keep |= bool(report["findings"])
    findings = report.pop("findings")
    print(json.dumps(report, indent=2))
    print(*findings, sep="\n", end="\n" if findings else "")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

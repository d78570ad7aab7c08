"""`python -m examples.evals`: run chat sets of others, whose score is known beforehand."""

import argparse
import functools
import sys
import time
from pathlib import Path

from examples.bfcl.options import add_options, count, parsed
from examples.evals import chat, checks
from examples.evals.engine import SURVIVORS, Plan, run_batch
from examples.evals.package import PackageMissing
from examples.evals.rows import Choice, TooFew, choose_rows
from examples.evals.running import print_progress, report_lines, run_and_exit


def main() -> None:
    """Exit code 0 means that the score, the calls and the logs are as they must be."""
    parser = argparse.ArgumentParser(prog="python -m examples.evals", description=__doc__)
    parser.add_argument("--rows", type=count, default=5000, help="how many rows of the sets")
    add_options(parser)
    options = parsed(parser, SURVIVORS)
    try:
        choice = choose_rows(options.rows)
    except (PackageMissing, TooFew) as error:
        sys.exit(str(error))
    _tell(choice)
    run_and_exit(functools.partial(_run, options, choice), options.keep)


def _tell(choice: Choice) -> None:
    rows = choice.rows
    known, sets = sum(row.known for row in rows), len({row.fields["set"] for row in rows})
    print(
        f"{len(rows)} rows of {sets} sets; {known} are answered rightly ({known / len(rows):.4f})"
    )
    left_out = ", ".join(f"{number} as {why}" for why, number in choice.left_out.most_common())
    print(f"left out: {left_out or 'none'}", flush=True)


async def _run(options: argparse.Namespace, choice: Choice, folder: Path) -> list[str]:
    """The failures."""
    dataset = folder / "rows.jsonl"
    chat.write(choice.rows, dataset)
    plan = Plan(
        batch=functools.partial(chat.batch, dataset, options.concurrency),
        scripts={row.question: row.script for row in choice.rows},
        name_of=chat.question_of_request,
        warm="examples.evals.warm",
        workers=options.workers,
        kill_every=options.kill_every,
    )
    due = {row.id: float(row.known) for row in choice.rows}
    async with run_batch(plan, folder, print_progress) as run:
        print(*report_lines(run), sep="\n", flush=True)
        start = time.monotonic()
        failures = [
            *checks.check_scores(run, due),
            *checks.check_calls(run, len(choice.rows)),
            *await checks.check_logs(run),
        ]
        print(f"{len(run.results)} results and logs looked at in {time.monotonic() - start:.0f} s")
        return failures


if __name__ == "__main__":
    main()

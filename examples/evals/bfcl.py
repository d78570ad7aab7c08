"""`python -m examples.evals.bfcl`: all of BFCL's multi-turn conversations as one batch."""

import argparse
import functools
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

if missing := [name for name in ("bfcl_eval", "mpmath") if find_spec(name) is None]:
    sys.exit(f"{' and '.join(missing)} missing: run `pip install --no-deps bfcl-eval mpmath`.")

from examples.bfcl.dataset import samples
from examples.bfcl.judge import judge
from examples.bfcl.objects import Objects
from examples.bfcl.options import add_options, count, parsed
from examples.bfcl.script import script
from examples.evals import checks, multi_turn
from examples.evals.engine import SURVIVORS, Plan, run_batch
from examples.evals.running import print_progress, report_lines, run_and_exit
from perdure.evaluation.result import SampleResult


def main() -> None:
    """Exit code 0 means that every sample has a score of 1, and a log that upstream accepts."""
    parser = argparse.ArgumentParser(prog="python -m examples.evals.bfcl", description=__doc__)
    parser.add_argument("--limit", type=count, help="run only the first so many samples")
    add_options(parser)
    options = parsed(parser, SURVIVORS)
    ids = [*samples()][: options.limit]
    run_and_exit(functools.partial(_run, options, ids), options.keep)


async def _run(options: argparse.Namespace, ids: Sequence[str], folder: Path) -> list[str]:
    """The failures."""
    scripts = {name: script(samples()[name]) for name in ids}
    plan = Plan(
        batch=functools.partial(multi_turn.batch, ids, options.concurrency),
        scripts=scripts,
        name_of=multi_turn.sample_of_request,
        warm="examples.bfcl.warm",
        workers=options.workers,
        kill_every=options.kill_every,
    )
    answers = sum(len(each.answers) for each in scripts.values())
    async with run_batch(plan, folder, print_progress) as run:
        print(*report_lines(run), sep="\n", flush=True)
        return [
            *checks.check_scores(run, dict.fromkeys(ids, 1.0)),
            *checks.check_calls(run, answers),
            *await checks.check_logs(run, _judged),
        ]


def _judged(result: SampleResult, objects: Objects) -> Iterator[str]:
    """Return the reason why upstream's checker refuses the log, and the scorer's answer."""
    yield from judge(samples()[result.id], objects)
    for attempt in result.attempts:
        for score in attempt.scores.values():
            if score.explanation:
                yield score.explanation


if __name__ == "__main__":
    main()

"""Checks of a batch with a known score; every failure is a sentence."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

from examples.bfcl.audit import audit
from examples.bfcl.objects import Objects, fetch_objects, parse_objects
from examples.evals.engine import NAME, Run
from perdure.evaluation.result import SampleResult
from perdure.evaluation.summary import summarize
from perdure.storage.keys import EVENTS, conversation_prefix

Judge: TypeAlias = Callable[[SampleResult, Objects], Iterable[str]]

CONCURRENCY = 16
"""Logs that are read at the same time."""

MAX_SHOWN_FAILURES = 5
"""Failures of one kind that are told in full."""


def check_scores(run: Run, due: Mapping[str, float]) -> Iterator[str]:
    """Check that each scorer gave each sample its due score, and that all totals add up to it."""
    counts = run.progress
    if (counts.scored, counts.missing, counts.failed, counts.limited, counts.running) != (
        len(due), 0, 0, 0, 0,
    ):  # fmt: skip
        yield f"The batch ended as {counts!r}, and {len(due)} samples should be scored."
    results = {result.id: result for result in run.results}
    if len(results) != len(run.results) or results.keys() != due.keys():
        yield f"There are {len(run.results)} results of {len(results)} samples, not {len(due)}."
    summary = summarize(run.results, len(due))
    for scorer in (item.score_name for item in run.batch.scorers):
        scores = {name: _score(result, scorer) for name, result in results.items()}
        yield from _few(
            f"{name} has {value} from {scorer}, and {due.get(name)} is due."
            for name, value in scores.items()
            if value != due.get(name)
        )
        mean, estimate = counts.scores.get(scorer), summary.score(scorer)
        if mean is None or (mean.count, mean.total) != (len(due), sum(due.values())):
            yield f"The batch tells {mean!r} of {scorer}; {sum(due.values())} is due."
        if estimate is None or abs(estimate.mean - sum(due.values()) / len(due)) > 1e-12:
            yield f"The summary tells {estimate!r} of {scorer}."


def check_calls(run: Run, answers: int) -> Iterator[str]:
    """Check that each answer was requested once: again only after a kill of a worker meanwhile."""
    request_times = run.asked
    if request_times.answers != answers:
        yield f"The model gave {request_times.answers} answers, and {answers} are due."
    yield from _few(
        f"Answer {number} of {name} was asked for again {after - before:.1f} s later, and no "
        "worker was killed meanwhile."
        for (name, number), times in request_times.times.items()
        for before, after in pairwise(times)
        if not any(start <= after and before <= end for start, end in run.kills)
    )


async def check_logs(run: Run, also: Judge | None = None) -> list[str]:
    """Find what is wrong with the logs of the samples: each has one attempt, and so one log.

    `also` looks at each result and the objects of its log. Few of them are held at a time.
    """
    room = asyncio.Semaphore(CONCURRENCY)

    async def read(result: SampleResult) -> list[str]:
        async with room:
            prefix = conversation_prefix(NAME, result.attempts[0].conversation_id)
            objects = await fetch_objects(run.client.store, prefix + EVENTS)
            wrong = [*_of_log(result, objects), *(also(result, objects) if also else ())]
            return [f"{result.id}: {what}" for what in wrong]

    findings = await asyncio.gather(*map(read, run.results))
    return list(_few(failure for each in findings for failure in each))


def _of_log(result: SampleResult, objects: Objects) -> Iterator[str]:
    if len(result.attempts) != 1:
        yield f"It has {len(result.attempts)} attempts, not 1."
    kinds = Counter(event.kind for event in parse_objects(objects))
    if not kinds["SystemPromptEvent"] or kinds["MessageEvent"] < 2:
        yield f"Its log has {dict(kinds)}, and no whole conversation."
    yield from audit(result.attempts[0].conversation_id, objects)


def _score(result: SampleResult, scorer: str) -> float | None:
    numbers = result.numbers(scorer)
    return numbers[0] if len(numbers) == 1 else None


def _few(failures: Iterator[str]) -> Iterator[str]:
    """The first of them, and how many more there are."""
    more = 0
    for at, failure in enumerate(failures):
        if at < MAX_SHOWN_FAILURES:
            yield failure
        more = max(0, at + 1 - MAX_SHOWN_FAILURES)
    if more:
        yield f"… and {more} more such failures."

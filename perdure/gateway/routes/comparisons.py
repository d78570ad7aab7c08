"""Comparisons of a batch with another one."""

from typing import Annotated

from fastapi import APIRouter, Query

from perdure.api.batches import BatchComparison
from perdure.client.batch.handle import BatchHandle
from perdure.errors import Invalid
from perdure.evaluation.comparison import compare
from perdure.evaluation.reducers import required_epochs
from perdure.exports.report.batch_comparison import ScoresBySample
from perdure.gateway.batch_calls import BATCH_PATTERN, ToRead, find_batch
from perdure.gateway.callers import COSTLY, Owner, Reader
from perdure.storage.batches import BatchRecord, read_current_results

router = APIRouter(prefix="/v1/batches", tags=["batches"])


@router.get("/{name}/comparison", dependencies=COSTLY)
async def compare_batches(
    caller: Reader,
    after: ToRead,
    other: Annotated[str, Query(pattern=BATCH_PATTERN)],
    other_owner: Owner = None,
    scorer: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    metric: Annotated[str | None, Query(max_length=100)] = None,
) -> BatchComparison:
    """Compare the scores of a batch with those of another one, over the samples of both.

    The default `scorer` is the first one of the other batch, with its first `metric`.
    """
    before = await find_batch(caller, other, other_owner)
    after_record, before_record = await after.load_record(), await before.load_record()
    scorer = scorer or next((it.score_name for it in before_record.spec.scorers), None)
    if scorer is None:
        raise Invalid(f"{other} has no scorer.", "Name one that has scored, as `scorer`.")
    reducer = before_record.spec.reducers[0]
    sides = [
        await _read_scores(handle, record, scorer, reducer)
        for handle, record in ((before, before_record), (after, after_record))
    ]
    chosen = sides[0].metric if metric is None else metric
    for side, label in zip(sides, (other, after.name), strict=True):
        if chosen not in side.values:
            raise Invalid(f"{label} has no numbers of {scorer}.", "Wait until it has some.")
    assert chosen is not None
    return BatchComparison(
        other=other,
        scorer=scorer,
        metric=chosen,
        reducer=reducer,
        comparison=compare(sides[0].values[chosen], sides[1].values[chosen]),
    )


async def _read_scores(
    handle: BatchHandle, record: BatchRecord, scorer: str, reducer: str
) -> ScoresBySample:
    """Read the scores of a batch. Raises Invalid where it has too few epochs for the reducer."""
    needed = required_epochs(reducer)
    if record.spec.epochs < needed:
        raise Invalid(f"{reducer} needs {needed} epochs, and {handle.name} has fewer.")
    side = ScoresBySample(scorer, reducer)
    async for result in read_current_results(handle.folder, record):
        side.add(result)
    return side

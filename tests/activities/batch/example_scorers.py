"""Functions that a batch may name as its scorers."""

import asyncio
import sys
import time
from collections.abc import Mapping
from typing import Any

from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Outcome, Score


def counts(sample: Sample, outcome: Outcome, times: int = 1) -> Score:
    return Score(value=float(times * len(outcome.messages)), answer=sample.id)


async def agrees(sample: Sample, outcome: Outcome) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"value": outcome.text in sample.target, "explanation": f"said {outcome.text}"}


def raises(_: Sample, __: Outcome) -> bool:
    nothing: dict[str, bool] = {}
    return nothing["nothing"]


def leaves(_: Sample, __: Outcome) -> bool:
    sys.exit("no more")


def is_odd(_: Sample, __: Outcome) -> Mapping[str, Any]:
    return {"value": object()}


def takes_its_time(_: Sample, __: Outcome) -> bool:
    time.sleep(30)
    return True


async def never_ends(_: Sample, __: Outcome) -> bool:
    await asyncio.Event().wait()
    return True


NO_FUNCTION = 7

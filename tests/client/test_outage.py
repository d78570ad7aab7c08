"""The patience with an outage of Temporal."""

import asyncio

import pytest

from perdure import Unreachable
from perdure.client.patience import Outage

SILENT = Unreachable("Temporal does not answer.")


async def test_a_short_outage_is_borne() -> None:
    outage = Outage(patience=60)
    for _ in range(3):
        outage.bear(SILENT, "some-id")


async def test_a_long_outage_is_an_error_that_says_how_to_come_back() -> None:
    outage = Outage(patience=0.2)
    outage.bear(SILENT, "some-id")
    await asyncio.sleep(0.3)
    with pytest.raises(Unreachable, match=r"has not answered for 0\.2 s") as failure:
        outage.bear(SILENT, "some-id")
    assert "`perdure watch some-id`" in failure.value.hint


async def test_an_outage_that_ended_does_not_count_for_the_next() -> None:
    outage = Outage(patience=0.2)
    outage.bear(SILENT, "some-id")
    await asyncio.sleep(0.3)
    outage.end()
    outage.bear(SILENT, "some-id")

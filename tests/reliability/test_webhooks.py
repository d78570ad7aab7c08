"""The proof of webhooks, short: workers are killed, and a receiver fails half the time."""

from pathlib import Path

import pytest

from reliability.webhooks.__main__ import run


@pytest.mark.longest
@pytest.mark.timeout(900)
async def test_each_post_is_taken_under_the_id_of_its_event(tmp_path: Path) -> None:
    report = await run(20, seed=7, folder=tmp_path)
    assert report["findings"] == []
    assert report["counts"]["posts"] == report["counts"]["posts taken"] == 20
    assert report["counts"]["attempts"] > 20

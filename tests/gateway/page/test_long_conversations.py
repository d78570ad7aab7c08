"""Long conversations: they open as short ones do, scroll without a freeze, and mount few rows.

`make page-figures` measures the times themselves, on a machine that is quiet.
"""

import pytest

from tests.gateway.page.browser import Visitor, expect, until
from tests.gateway.page.timing import (
    LONGEST_TASK,
    MAX_MOUNTED,
    OPENED,
    SCROLL,
    open_and_time,
    scroll,
    write_conversation,
)
from tests.gateway.stage import GatewayStage

pytestmark = [pytest.mark.page, pytest.mark.timeout(900)]

SLOW_MACHINE = 5
"""A machine that runs other tests meanwhile takes this many times as long."""


async def test_10000_events_open_and_scroll_about_as_quickly_as_500(
    stage: GatewayStage, anna: Visitor
) -> None:
    short, long = [await write_conversation(stage, events) for events in (500, 10_000)]
    open_short, open_long = [
        min([await open_and_time(anna, name) for _ in range(4)]) for name in (short, long)
    ]
    assert open_long < 3 * open_short
    assert await scroll(anna) < SLOW_MACHINE * LONGEST_TASK
    await anna.page.evaluate(SCROLL, -900)
    first = await anna.page.locator("article[data-seq]").first.get_attribute("data-seq")
    assert int(first) < 9_700


async def test_any_of_10000_events_is_reached_by_its_link(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await write_conversation(stage, 10_000)
    await anna.goto(f"/conversations/{name}#seq-4242")
    await expect(anna, "#seq-4242")
    await anna.page.keyboard.press("Home")
    await expect(anna, "#seq-3")
    await until(anna, "document.querySelector('#seq-3').getBoundingClientRect().top > 0")
    await anna.page.keyboard.press("End")
    await until(anna, OPENED)
    assert await anna.page.locator("article[data-seq]").count() <= MAX_MOUNTED


async def test_what_is_read_stays_in_its_place_while_rows_come_above_and_below(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await write_conversation(stage, 2000)
    await anna.goto(f"/conversations/{name}#seq-1000")
    await expect(anna, "#seq-1000")
    place = "document.querySelector('#seq-1000').getBoundingClientRect().top"
    before = await anna.page.evaluate(place)
    await anna.page.wait_for_timeout(1500)
    assert abs(await anna.page.evaluate(place) - before) < 3


async def test_100000_events_open_and_scroll_without_a_freeze(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await write_conversation(stage, 100_000)
    await open_and_time(anna, name)
    assert await scroll(anna) < SLOW_MACHINE * LONGEST_TASK
    await anna.page.evaluate("location.hash = '#seq-50002'")
    await expect(anna, "#seq-50002")
    assert await anna.page.locator("article[data-seq]").count() <= MAX_MOUNTED

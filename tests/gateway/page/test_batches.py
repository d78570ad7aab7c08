"""Batches on the page."""

from typing import Any

import pytest

from tests.gateway.page.batch_stories import start_batch, wait_for_batch
from tests.gateway.page.browser import PHONE, Visitor, expect, until, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.page.modules import Modules
from tests.gateway.page.test_accessibility import find_violations
from tests.gateway.stage import GatewayStage

pytestmark = pytest.mark.page

SPENT = {"prompt_tokens": 100, "completion_tokens": 5, "cost": 0.002}
FOUR = {"content": "4", "usage": SPENT}


async def test_a_batch_is_followed_from_the_list_to_a_conversation(
    stage: GatewayStage, anna: Visitor
) -> None:
    await start_batch(stage, "sums", 6, FOUR)
    await wait_for_batch(stage, "sums", "finished")
    await anna.goto("/")
    await expect(anna, "h1")
    await anna.page.keyboard.press("b")
    await expect(anna, ".batches a >> text=sums")
    assert "6 scored" in await anna.page.inner_text(".batches")
    assert "match 0.167" in await anna.page.inner_text(".batches")
    await anna.page.keyboard.press("j")
    await anna.page.keyboard.press("Enter")
    await expect(anna, ".samples >> text=sum-02")
    scores = await anna.page.inner_text("[aria-label=Scores]")
    assert "0.167 ± 0.167" in scores
    await expect(anna, ".plots figure canvas")
    assert await anna.page.locator(".plots figure").count() == 2
    await anna.page.click("tr:has-text('sum-02') >> text=conversation")
    await expect(anna, "article.user >> text=What is 2 + 2?")


async def test_samples_are_chosen_by_outcome_and_id(stage: GatewayStage, anna: Visitor) -> None:
    failing = {"content": "4", "failures": [{"status": 401}] * 50}
    await start_batch(stage, "failing", 4, failing)
    await wait_for_batch(stage, "failing", "finished", "stopped", "paused")
    await anna.goto("/batches/failing")
    await expect(anna, ".samples tbody tr")
    await anna.page.click(".filters >> text=Failed")
    await expect(anna, ".samples .outcome-failed")
    await anna.page.click(".filters >> text=Scored")
    await until(anna, "document.querySelectorAll('.samples tbody tr').length === 0")
    await anna.page.keyboard.press("f")
    await anna.page.keyboard.press("f")
    await anna.page.keyboard.press("/")
    await anna.page.keyboard.type("sum-03")
    await until(anna, "document.querySelectorAll('.samples tbody tr').length === 1")


async def test_a_batch_is_paused_tuned_and_resumed(stage: GatewayStage, anna: Visitor) -> None:
    await start_batch(stage, "slow", 8, {"content": "4", "delay": 1.0}, concurrency=1)
    await anna.goto("/batches/slow")
    await anna.page.click(".title-line >> text=Pause")
    await expect(anna, ".pill.status-paused")
    await anna.page.keyboard.press("t")
    await anna.page.fill("#limit-concurrency", "7")
    await anna.page.keyboard.press("Enter")
    await until(anna, "document.querySelector('.facts').textContent.includes('At once7')")
    await anna.page.keyboard.press("u")
    await wait_for_batch(stage, "slow", "finished")
    await expect(anna, ".pill.status-finished")
    assert "8 scored" in await anna.page.inner_text(".progress")


async def test_two_batches_are_compared(stage: GatewayStage, anna: Visitor) -> None:
    await start_batch(stage, "before", 5, {"content": "none"})
    await start_batch(stage, "after", 5, FOUR)
    await wait_for_batch(stage, "before", "finished")
    await wait_for_batch(stage, "after", "finished")
    shown = await stage.anna.get("/v1/batches/after/comparison", params={"other": "before"})
    assert shown.json()["comparison"]["difference"] == pytest.approx(0.2)
    strange = await stage.ben.get("/v1/batches/after/comparison", params={"other": "before"})
    assert strange.status_code == 404
    await anna.goto("/batches/after")
    await expect(anna, ".samples tbody tr")
    await anna.page.keyboard.press("c")
    await anna.page.select_option("#other", "before")
    await anna.page.click("dialog >> button:text('Compare')")
    await expect(anna, "dialog >> text=No difference beyond noise")
    await anna.page.click("dialog >> text=Better: 1 samples")
    await expect(anna, "dialog td >> text=1.000")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_in_batches(stage: GatewayStage, browser: Any, scheme: str) -> None:
    await start_batch(stage, "sums", 5, FOUR)
    await wait_for_batch(stage, "sums", "finished")
    async with visit(browser, stage.url, color_scheme=scheme, viewport=PHONE) as visitor:
        await visitor.log_in(key_of(stage.anna))
        for path, selector in (("/batches", ".batches a"), ("/batches/sums", ".plots canvas")):
            await visitor.goto(path)
            await expect(visitor, selector)
            assert await find_violations(visitor) == []
            wide = await visitor.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0


async def test_running_means_and_outcomes_are_those_of_the_results(modules: Modules) -> None:
    code = """(samples, [numbers, results]) => [
      samples.runningMeans(numbers).mean,
      results.map((sample) => samples.outcomeOf(sample, 2)),
      results.map((sample) => samples.meanScore(sample, "match")),
      samples.histogram([0, 1, 1, 2], 2).counts,
    ]"""

    def attempt(epoch: int, number: int, status: str, value: Any = None) -> dict[str, Any]:
        scores = {} if value is None else {"match": {"value": value}}
        return {"epoch": epoch, "number": number, "status": status, "scores": scores}

    results = [
        {
            "attempts": [
                attempt(0, 0, "failed"),
                attempt(0, 1, "scored", "C"),
                attempt(1, 0, "scored", 0),
            ]
        },
        {"attempts": [attempt(0, 0, "scored", True)]},
        {"attempts": [attempt(0, 0, "scored", 1), attempt(1, 0, "failed")]},
        {"attempts": [attempt(0, 0, "limited", {"a": 1}), attempt(1, 0, "scored", "word")]},
    ]
    seen = await modules.call("batches/samples.js", code, [[1, 0, 1, 0], results])
    assert seen == [
        [1, 0.5, pytest.approx(2 / 3), 0.5],
        ["scored", "missing", "failed", "limited"],
        [0.5, 1, 1, None],
        [1, 3],
    ]

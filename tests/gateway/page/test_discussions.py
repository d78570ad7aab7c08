"""Discussions on the page."""

from typing import Any
from uuid import uuid4

import pytest

from tests.gateway.page.browser import DESKTOP, PHONE, Visitor, expect, until, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.page.discussion_stories import (
    VOTING,
    discuss_four_days,
    start_discussion,
    wait_for_discussion,
)
from tests.gateway.page.modules import Modules
from tests.gateway.page.test_accessibility import find_violations
from tests.gateway.stage import GatewayStage
from tests.workflows.discussion.debate import ballot, wants

pytestmark = pytest.mark.page

COLOUR = "getComputedStyle(document.querySelector('.said.speech.speaker-{} .author')).color"


async def test_a_discussion_is_read_from_the_list_by_keyboard(
    stage: GatewayStage, anna: Visitor
) -> None:
    await discuss_four_days(stage, "four-days")
    await anna.goto("/")
    await expect(anna, "h1")
    await anna.page.keyboard.press("d")
    await expect(anna, ".discussions a >> text=Should the team work four days a week?")
    listed = await anna.page.inner_text(".discussions")
    assert "ada, bob, cyd" in listed
    assert "yes 2, no 1, yes wins" in listed
    await anna.page.keyboard.press("j")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "article.said.speech >> text=People are tired.")
    assert await anna.page.locator(".said.speech li").count() == 2  # markdown
    assert await anna.page.evaluate(f"{COLOUR.format(1)} !== {COLOUR.format(2)}")
    phases = await anna.page.locator(".said.phase h2").all_inner_texts()
    assert phases == ["decision", "The end"]
    assert "yes 2, no 1 · yes wins" in await anna.page.inner_text(".said.tally")
    assert "cyd votes no: customers call" in await anna.page.inner_text(".discussion-log")
    first = anna.page.locator(".said.intents").first
    assert "ada, bob want to speak · granted: ada, bob" in await first.inner_text()
    assert not await first.get_by_text("Money.").is_visible()
    await anna.page.keyboard.press("e")
    await first.get_by_text("urgency 7: Money.").wait_for()
    await anna.page.keyboard.press("e")
    for key in ("j", "j", "o"):  # the opening, the intents
        await anna.page.keyboard.press(key)
    await first.get_by_text("urgency 7: Money.").wait_for()
    assert await anna.page.locator(".taking-part").count() == 0  # it is over
    async with anna.page.expect_download() as download:
        await anna.page.click("text=Download")
        await anna.page.click("dialog >> text=An event a line")
    assert (await download.value).suggested_filename == "four-days.jsonl"
    await anna.page.click("dialog >> text=ada")
    await expect(anna, "article.agent >> text=As I said.")


async def test_a_person_speaks_votes_and_steers_while_it_is_shown(
    stage: GatewayStage, anna: Visitor
) -> None:
    slow = [
        {"content": wants(1), "delay": 3},
        "**Yes** to it.",
        {"content": ballot("yes"), "delay": 5},
    ]
    await start_discussion(stage, "live", {"ada": slow}, phases=[VOTING])
    await anna.goto("/discussions/live")
    await expect(anna, ".working >> text=ada")
    keyboard = anna.page.keyboard
    await keyboard.press("p")
    await expect(anna, ".pill.status-paused")
    await keyboard.press("m")
    await keyboard.type("I pay for it.")
    await keyboard.press("Enter")
    await expect(anna, ".saying button:disabled")  # it is written after the step that runs
    await keyboard.press("Escape")
    await keyboard.press("u")
    await expect(anna, "article.speech >> text=I pay for it.")
    assert await anna.page.input_value("#say") == ""
    await keyboard.press("Escape")
    await keyboard.press("v")
    await keyboard.press("n")  # chooses `no`
    await keyboard.press("Tab")
    await keyboard.type("too dear")
    await keyboard.press("Enter")
    await expect(anna, ".said.vote >> text=anna votes no: too dear")
    await expect(anna, ".said.speech strong >> text=Yes")
    await expect(anna, ".said.tally >> text=yes 1, no 1")
    await expect(anna, ".pill.status-finished")
    assert "no majority" in await anna.page.inner_text(".said.tally")


async def test_a_discussion_is_closed_and_shared_and_another_user_only_reads(
    stage: GatewayStage, anna: Visitor, browser: Any
) -> None:
    endless = [{"content": "one two three", "chunk_delay": 60}]
    await start_discussion(stage, "shared", {"ada": endless})
    await anna.goto("/discussions/shared")
    await expect(anna, ".working")
    await anna.page.keyboard.press("s")
    await anna.page.fill("#share-user", "ben")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "dialog .grants >> text=ben")
    await anna.page.keyboard.press("Escape")
    async with visit(browser, stage.url) as ben:
        await ben.log_in(key_of(stage.ben))
        await ben.goto("/discussions")
        await expect(ben, ".discussions >> text=shared by anna")
        await ben.page.click(".discussions a")
        await expect(ben, ".working")
        assert await ben.page.locator(".taking-part, .title-line >> text=Pause").count() == 0
        await anna.page.keyboard.press("C")
        await anna.page.click("dialog >> text=Close it")
        await expect(anna, ".pill.status-closed")
        await expect(ben, ".said.note >> text=Closed")
    await wait_for_discussion(stage, "shared", "closed")


async def test_what_was_said_during_an_outage_is_there_once_afterwards(
    stage: GatewayStage, anna: Visitor
) -> None:
    slow = [{"content": wants(1), "delay": 2}, "After all.", ballot("yes")]
    anna.expected.append("ERR_INTERNET_DISCONNECTED|Failed to load resource")
    await start_discussion(stage, "outage", {"ada": slow}, phases=[VOTING])
    await anna.goto("/discussions/outage")
    await expect(anna, ".working")
    await anna.context.set_offline(True)
    await expect(anna, ".connection")
    await wait_for_discussion(stage, "outage", "finished")
    await anna.context.set_offline(False)
    await expect(anna, ".said.speech >> text=After all.")
    await expect(anna, ".pill.status-finished")
    numbers = "[...document.querySelectorAll('.said')].map((row) => row.dataset.seq)"
    await until(anna, f"new Set({numbers}).size === {numbers}.length")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_in_discussions(
    stage: GatewayStage, browser: Any, scheme: str, size: dict[str, int]
) -> None:
    past, present = f"past-{uuid4()}", f"present-{uuid4()}"  # the tests share a Temporal server
    await discuss_four_days(stage, past)
    slow = {name: [{"content": wants(1), "delay": 30}] for name in ("ada", "bob")}
    await start_discussion(stage, present, slow, phases=[VOTING])
    async with visit(browser, stage.url, color_scheme=scheme, viewport=size) as visitor:
        await visitor.log_in(key_of(stage.anna))
        for path, selector in (
            ("/discussions", ".discussions li"),
            (f"/discussions/{present}", ".voting"),
            (f"/discussions/{past}", ".said.tally"),
        ):
            await visitor.goto(path)
            await expect(visitor, selector)
            assert await find_violations(visitor) == [], path
            wide = await visitor.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path
        await visitor.page.keyboard.press("e")
        await expect(visitor, ".said.intents li")
        assert await find_violations(visitor) == []
        await visitor.page.click("text=Download")
        await expect(visitor, "dialog li")
        assert await find_violations(visitor) == []
    await stage.anna.post(f"/v1/discussions/{present}/close")


async def test_events_are_folded_into_rows(modules: Modules) -> None:
    code = """(fold, events) => {
      const rows = fold.foldEvents(events);
      return [
        rows.map(({ kind, seq }) => [kind, seq]),
        rows[1].intents.map((it) => it.granted),
        fold.countBallots(rows.slice(0, -2)),
        fold.countBallots(rows),
        [...fold.assignColours(["ada"], events)],
      ];
    }"""

    def event(sequence: int, type_: str, speaker: str, content: Any) -> dict[str, Any]:
        return {"sequence": sequence, "type": type_, "speaker": speaker, "content": content}

    def system(sequence: int, action: str, **details: Any) -> dict[str, Any]:
        return event(sequence, "SYSTEM", "system", {"action": action, "details": details})

    events = [
        system(1, "OPENED", agents=["ada", "bob"]),
        event(2, "INTENT", "ada", {"urgency": 3, "line": "x"}),
        event(3, "INTENT", "bob", {"urgency": 9, "line": "y"}),
        system(4, "GRANT", speaker="bob"),
        event(5, "SPEECH", "bob", "Hello."),
        system(6, "GRANT", speaker="eve"),
        event(7, "SPEECH", "eve", "Me too."),
        event(8, "VOTE", "ada", {"ballot": "yes"}),
        event(9, "VOTE", "ada", {"ballot": "no"}),
        event(10, "VOTE", "eve", "no"),
        event(11, "VOTE", "system", {"phase": "x", "counts": {"yes": 0, "no": 2}, "winner": "no"}),
        system(12, "SOMETHING_NEW"),
    ]
    rows, granted, before, after, colours = await modules.call("discussions/fold.js", code, events)
    assert rows == [
        *(["note", 1], ["intents", 2], ["speech", 5], ["speech", 7], ["vote", 8], ["vote", 9]),
        *(["vote", 10], ["tally", 11], ["note", 12]),
    ]
    assert granted == [False, True]
    assert (before, after) == ({"no": 2}, {})
    assert colours == [["ada", 1], ["bob", 2], ["eve", 3]]

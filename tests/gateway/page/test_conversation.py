"""A conversation on the page: what is shown, and each act by mouse and by keyboard."""

import json
from pathlib import Path
from typing import Any

import pytest

from perdure.agent.policies import Confirmation
from tests.gateway.page import stories
from tests.gateway.page.browser import Visitor, expect, until, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage, as_json
from tests.harness import text_answer, tool_call_answer

pytestmark = pytest.mark.page

TOOLS = ("terminal", "file_editor", "think", "finish")


async def open_bug_fix(stage: GatewayStage, anna: Visitor) -> str:
    """Open a conversation in which a bug was mended; return its id."""
    name = await stage.start(*stories.bug_fix(), text=stories.TASK, tools=TOOLS)
    await stage.wait_until(name, "finished")
    await anna.goto(f"/conversations/{name}")
    await anna.page.wait_for_selector("text=Both tests pass.")
    return name


async def open_asking(stage: GatewayStage, anna: Visitor) -> str:
    """Open a conversation whose agent asks before it runs a command; return its id."""
    call = tool_call_answer(("terminal", {"command": "echo released > done"}))
    always = Confirmation(policy="always")
    name = await stage.start(call, text_answer("Over."), tools=("terminal",), confirmation=always)
    await stage.wait_until(name, "waiting_for_confirmation")
    await anna.goto(f"/conversations/{name}")
    await anna.page.wait_for_selector("text=The agent wants to run this:")
    return name


async def events_of(stage: GatewayStage, name: str) -> list[dict[str, Any]]:
    page = (await stage.anna.get(f"/v1/conversations/{name}/events?limit=1000")).json()
    return list(page["items"])


async def test_a_call_unfolds_to_its_command_and_its_coloured_output(
    stage: GatewayStage, anna: Visitor
) -> None:
    await open_bug_fix(stage, anna)
    call = anna.page.locator("#seq-6 details.call-block")
    assert not await call.locator(".call-body").count()
    await call.locator("summary").click()
    await expect(anna, "#seq-6 pre.terminal .fg-1")
    assert "FAILED" in await anna.page.inner_text("#seq-6 pre.terminal .fg-1")
    assert "exit 1" in await anna.page.inner_text("#seq-6 pre.code")
    await call.locator("summary").click()
    await anna.page.wait_for_selector("#seq-6 .call-body", state="detached")


async def test_an_edit_is_shown_as_a_diff(stage: GatewayStage, anna: Visitor) -> None:
    await open_bug_fix(stage, anna)
    await anna.page.locator("#seq-8 summary").click()
    await expect(anna, "#seq-8 pre.diff")
    assert "amount - discount" in await anna.page.inner_text("#seq-8 .diff .removed")
    assert "discount / 100" in await anna.page.inner_text("#seq-8 .diff .added")


async def test_reasoning_is_folded_and_markdown_is_not(stage: GatewayStage, anna: Visitor) -> None:
    await open_bug_fix(stage, anna)
    reasoning = anna.page.locator("#seq-4 details.reasoning")
    assert not await reasoning.evaluate("node => node.open")
    await reasoning.locator("summary").click()
    assert "percentage" in await reasoning.inner_text()
    assert await anna.page.locator("article.agent table td").count() == 6
    await expect(anna, "article.agent pre code .hl-keyword")


async def test_the_head_tells_what_the_conversation_has_used(
    stage: GatewayStage, anna: Visitor
) -> None:
    await open_bug_fix(stage, anna)
    facts = await anna.page.inner_text(".facts")
    assert "21.7k" in facts
    assert "$0.06" in facts
    assert "Your turn" in await anna.page.inner_text(".title-line .pill")
    assert "4.3k tokens" in await anna.page.inner_text("#seq-12 .meta")


async def test_keys_select_rows_and_unfold_them(stage: GatewayStage, anna: Visitor) -> None:
    await open_bug_fix(stage, anna)
    await anna.page.keyboard.press("j")
    assert await selected(anna) == "seq-12"
    await anna.page.keyboard.press("k")
    await anna.page.keyboard.press("k")
    assert await selected(anna) == "seq-8"
    await anna.page.keyboard.press("o")
    await expect(anna, "#seq-8 pre.diff")
    await anna.page.keyboard.press("o")
    await anna.page.wait_for_selector("#seq-8 pre.diff", state="detached")
    await anna.page.keyboard.press("e")
    await expect(anna, "#seq-4 .call-body")
    assert await anna.page.locator(".call-body").count() == 4


async def selected(visitor: Visitor) -> str:
    """Return the id of the element that has the focus."""
    return str(await visitor.page.evaluate("document.activeElement.id"))


async def test_a_question_mark_lists_the_keys(stage: GatewayStage, anna: Visitor) -> None:
    await open_bug_fix(stage, anna)
    await anna.page.keyboard.press("?")
    await expect(anna, "dialog[open] dl.keys")
    text = await anna.page.inner_text("dialog[open]")
    for act in ("Approve", "Reject", "Pause", "Interrupt", "Fork", "Retry", "Ask", "Share", "Raw"):
        assert act in text
    await anna.page.keyboard.press("Escape")
    await anna.page.wait_for_selector("dialog", state="detached")


async def test_what_waits_is_approved_by_mouse(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_asking(stage, anna)
    assert "echo released" in await anna.page.inner_text(".waiting")
    await anna.page.click(".waiting button.primary")
    await expect(anna, "text=Over.")
    kinds = [item["kind"] for item in await events_of(stage, name)]
    assert "ObservationEvent" in kinds


async def test_what_waits_is_approved_by_keyboard(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_asking(stage, anna)
    await anna.page.keyboard.press("a")
    await stage.wait_until(name, "finished")
    await expect(anna, "text=Over.")


async def test_what_waits_is_rejected_with_a_reason(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_asking(stage, anna)
    await anna.page.keyboard.press("r")
    await anna.page.keyboard.type("Not on a Friday.")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "text=Over.")
    rejections = [i for i in await events_of(stage, name) if i["kind"] == "UserRejectObservation"]
    assert [event["rejection_reason"] for event in rejections] == ["Not on a Friday."]
    await anna.page.locator("article.call summary").click()
    await expect(anna, "text=Rejected: Not on a Friday.")


async def test_a_message_is_sent_by_enter_and_its_answer_comes(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await stage.start(text_answer("First."), text_answer("Second, at last."))
    await stage.wait_until(name, "finished")
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=First.")
    await anna.page.keyboard.press("m")
    await anna.page.keyboard.type("And now?")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "article.user >> text=And now?")
    await expect(anna, "text=Second, at last.")
    assert await anna.page.input_value("#message") == ""


async def test_words_are_shown_as_they_come(stage: GatewayStage, anna: Visitor) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    answer = {**text_answer(words), "chunk_delay": 0.15}
    name = await stage.start(text_answer("First."), answer, heartbeat_timeout=2.0)
    await stage.wait_until(name, "finished")
    await anna.goto(f"/conversations/{name}")
    await anna.page.fill("#message", "Go on.")
    await anna.page.click(".composer >> text=Send")
    await expect(anna, "article.draft")
    await until(anna, "document.querySelector('.draft')?.textContent.includes('word1 ')")
    await expect(anna, "article.message:not(.draft) >> text=word39")
    assert await anna.page.locator("article.draft").count() == 0


async def test_a_run_is_paused_and_resumed(stage: GatewayStage, anna: Visitor) -> None:
    slow = tool_call_answer(("look", {"seconds": 12}))
    name = await stage.start(slow, text_answer("Seen."))
    await anna.goto(f"/conversations/{name}")
    await anna.page.click(".conversation-head >> text=Pause")
    await expect(anna, ".pill.status-paused")
    await anna.page.click(".waiting button")
    await expect(anna, "text=Seen.")


async def test_a_run_is_interrupted_and_goes_on_by_keyboard(
    stage: GatewayStage, anna: Visitor
) -> None:
    slow = tool_call_answer(("charge", {"amount": 1, "seconds": 60}))
    name = await stage.start(slow, text_answer("Then so."))
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "article.call >> text=Running")
    await anna.page.keyboard.press("i")
    await expect(anna, ".pill.status-idle")
    await expect(anna, "text=Interrupted by anna.")
    await anna.page.keyboard.press("u")
    await expect(anna, "text=Then so.")


async def test_a_conversation_is_renamed_and_closed(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_bug_fix(stage, anna)
    await anna.page.click(".conversation-head >> text=More")
    await anna.page.click("dialog >> text=Rename")
    await anna.page.fill("#new-title", "A better title")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "h1 >> text=A better title")
    await anna.page.keyboard.press("c")
    await anna.page.click("dialog >> text=Close it")
    await expect(anna, ".pill.status-closed")
    shown = (await stage.anna.get(f"/v1/conversations/{name}")).json()
    assert shown["status"]["status"] == "closed"


async def test_a_message_opens_a_closed_conversation_again(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await stage.start(text_answer("First."), text_answer("Here again."))
    await stage.wait_until(name, "finished")
    await stage.anna.post(f"/v1/conversations/{name}/close")
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=Closed. A message opens it again.")
    await anna.page.fill("#message", "And now?")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "text=Here again.")


async def test_a_conversation_is_forked_from_an_event(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_bug_fix(stage, anna)
    await anna.page.click("#seq-8 .menu-button")
    await anna.page.click("dialog >> text=Fork from here")
    await until(anna, f"!location.pathname.includes('{name}')")
    await expect(anna, "#seq-8")
    assert await anna.page.locator("#seq-10").count() == 0
    fork = anna.page.url.rsplit("/", 1)[1]
    assert [item["seq"] for item in await events_of(stage, fork)][:10] == list(range(10))


async def test_an_answer_is_tried_again_from_where_it_began(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await stage.start(text_answer("The first answer."))
    await stage.wait_until(name, "finished")
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=The first answer.")
    await anna.page.keyboard.press("k")
    await anna.page.keyboard.press("R")
    await until(anna, f"!location.pathname.includes('{name}')")
    await expect(anna, "text=The first answer.")
    retried = anna.page.url.rsplit("/", 1)[1]
    await stage.wait_until(retried, "finished")


async def test_the_agent_is_asked_beside(stage: GatewayStage, anna: Visitor) -> None:
    agent = stage.harness.spec(text_answer("Done."))
    script = Path(agent.model.name.removeprefix("scripted:"))
    asides = [text_answer("It is **about** invoices.")]
    script.write_text(json.dumps({**json.loads(script.read_text()), "asides": asides}))
    body = {"text": "Hello?", "agent": as_json(agent)}
    name = (await stage.anna.post("/v1/conversations", json=body)).json()["id"]
    await stage.wait_until(name, "finished")
    before = len(await events_of(stage, name))
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=Done.")
    await anna.page.keyboard.press("q")
    await anna.page.fill("#question", "What is this about?")
    await anna.page.click("dialog >> button:text('Ask')")
    await expect(anna, "dialog strong >> text=about")
    assert len(await events_of(stage, name)) == before


async def test_a_conversation_is_shared_and_taken_back(
    stage: GatewayStage, anna: Visitor, browser: Any
) -> None:
    name = await open_bug_fix(stage, anna)
    await anna.page.keyboard.press("s")
    await anna.page.fill("#share-user", "ben")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "dialog li >> text=may read it")
    address = await anna.page.inner_text("dialog code")
    async with visit(browser, stage.url) as ben:
        await ben.log_in(key_of(stage.ben))
        await ben.goto(address.removeprefix(stage.url))
        await expect(ben, "text=Both tests pass.")
        await expect(ben, "text=shared by anna (read)")
        assert await ben.page.locator(".composer").count() == 0
        await anna.page.click("dialog [aria-label='Take it back from ben']")
        await anna.page.wait_for_selector("dialog li", state="detached")
        ben.expected.append("404")
        await ben.goto(f"/conversations/{name}?owner=anna")
        await expect(ben, ".failure")
        assert "Both tests pass." not in await ben.page.inner_text("body")


async def test_exports_are_downloaded(stage: GatewayStage, anna: Visitor) -> None:
    await open_bug_fix(stage, anna)
    await anna.page.keyboard.press("d")
    async with anna.page.expect_download() as download:
        await anna.page.click("dialog >> text=The log itself")
    path = await (await download.value).path()
    assert path.read_bytes().count(b'"kind"') > 10


async def test_the_files_are_shown_at_any_event_with_what_changed(
    stage: GatewayStage, anna: Visitor
) -> None:
    await open_bug_fix(stage, anna)
    await anna.page.keyboard.press("w")
    await anna.page.click("dialog >> text=invoice.py")
    await expect(anna, "dialog pre.code >> text=discount / 100")
    await anna.page.click("dialog .chip:text('Changes')")
    await expect(anna, "dialog .diff .added:has-text('discount / 100')")
    await anna.page.keyboard.press("Escape")
    await anna.page.click("#seq-4 .menu-button")
    await anna.page.click("dialog >> text=Files at this event")
    await anna.page.click("dialog >> text=invoice.py")
    await expect(anna, "dialog pre.code >> text=amount - discount")


async def test_the_timeline_leads_to_an_event(stage: GatewayStage, anna: Visitor) -> None:
    await open_bug_fix(stage, anna)
    await anna.page.click(".conversation-head >> text=Timeline")
    await expect(anna, "dialog table.timeline")
    names = await anna.page.locator("dialog tbody td:nth-child(2)").all_inner_texts()
    assert names.count("terminal") == 2
    assert names.count("file_editor") == 2
    await anna.page.click("dialog >> button:text('#6') >> nth=-1")
    await expect(anna, "#seq-6 .call-body")
    assert await selected(anna) == "seq-6"


async def test_a_link_leads_to_an_event(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_bug_fix(stage, anna)
    await anna.goto(f"/conversations/{name}#seq-6")
    await expect(anna, "#seq-6 .call-body")
    assert await selected(anna) == "seq-6"
    await anna.page.click("#seq-10 a.slot")
    await until(anna, "location.hash === '#seq-10'")


async def test_kinds_of_events_are_hidden_and_shown(stage: GatewayStage, anna: Visitor) -> None:
    await open_bug_fix(stage, anna)
    await anna.page.click(".filters >> text=Tool calls")
    await anna.page.wait_for_selector("article.call", state="detached")
    await anna.page.keyboard.press("5")
    await expect(anna, "article.prompt")
    await anna.page.keyboard.press("2")
    await expect(anna, "article.call")


async def test_an_event_is_shown_as_the_log_has_it(stage: GatewayStage, anna: Visitor) -> None:
    await open_bug_fix(stage, anna)
    await anna.page.click("#seq-12 .slot")
    await anna.page.keyboard.press("x")
    await expect(anna, "dialog pre.code")
    assert '"kind": "MessageEvent"' in await anna.page.inner_text("dialog pre.code")
    assert '"checksum"' in await anna.page.inner_text("dialog pre.code")


async def test_hostile_text_does_nothing_anywhere(stage: GatewayStage, anna: Visitor) -> None:
    call = tool_call_answer(
        ("terminal", {"command": stories.HOSTILE_OUTPUT}), content=stories.HOSTILE
    )
    name = await stage.start(
        call, text_answer(stories.HOSTILE), text=stories.HOSTILE, tools=("terminal",)
    )
    await stage.wait_until(name, "finished")
    await stage.anna.patch(f"/v1/conversations/{name}", json={"title": stories.HOSTILE[:150]})
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "article.agent h1")
    await anna.page.keyboard.press("e")
    await expect(anna, "pre.terminal")
    await anna.goto("/")
    await expect(anna, ".conversations a")
    await anna.page.go_back()
    await expect(anna, "article.agent h1")
    assert await anna.page.evaluate("globalThis.hacked") is None
    assert await anna.page.locator("article svg, article iframe, article script").count() == 0

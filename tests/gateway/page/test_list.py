"""The list of conversations, and the start of a new one."""

import json

import pytest

from perdure.agent.policies import Confirmation
from tests.gateway.page.batch_stories import start_batch, wait_for_batch
from tests.gateway.page.browser import Visitor, expect, until
from tests.gateway.page.stories import PIXEL
from tests.gateway.stage import GatewayStage, as_json
from tests.harness import text_answer, tool_call_answer

pytestmark = pytest.mark.page

ALWAYS = Confirmation(policy="always")


async def titles(visitor: Visitor) -> list[str]:
    return list(await visitor.page.locator(".item-title").all_inner_texts())


async def test_the_list_has_status_cost_and_what_is_waited_for(
    stage: GatewayStage, anna: Visitor
) -> None:
    spent = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.25}
    done = await stage.start({**text_answer("Done."), "usage": spent}, text="The first task")
    await stage.wait_until(done, "finished")
    asks = tool_call_answer(("terminal", {"command": "true"}))
    asking = await stage.start(asks, tools=("terminal",), confirmation=ALWAYS, text="The second")
    await stage.wait_until(asking, "waiting_for_confirmation")
    await anna.goto("/")
    await expect(anna, ".conversations li")
    assert await titles(anna) == ["The second", "The first task"]
    first, second = await anna.page.locator(".conversations li").all_inner_texts()
    assert "Needs approval" in first
    assert "Wants to run terminal" in first
    assert "Your turn" in second
    assert "$0.25" in second


async def test_the_list_is_live_and_the_newest_activity_is_first(
    stage: GatewayStage, anna: Visitor
) -> None:
    first = await stage.start(text_answer("Done."), text_answer("Again."), text="The first")
    await stage.wait_until(first, "finished")
    await anna.goto("/")
    await expect(anna, "text=The first")
    second = await stage.start(text_answer("Done."), text="The second")
    await expect(anna, "text=The second")
    await stage.wait_until(second, "finished")
    await expect(anna, "li:has-text('The second') .status-awaiting_user")
    await stage.anna.post(f"/v1/conversations/{first}/messages", json={"text": "Go on."})
    await until(anna, "document.querySelector('.item-title').textContent === 'The first'")


async def test_the_samples_of_a_batch_are_no_conversations_of_the_list(
    stage: GatewayStage, anna: Visitor
) -> None:
    await anna.goto("/")
    await expect(anna, "text=No conversation yet.")
    await start_batch(stage, "sums", 4, text_answer("4"))
    await wait_for_batch(stage, "sums", "finished")
    name = await stage.start(text_answer("Done."), text="By hand")
    await stage.wait_until(name, "finished")
    await expect(anna, "text=By hand")
    assert await titles(anna) == ["By hand"]


async def test_the_list_is_searched_and_filtered(stage: GatewayStage, anna: Visitor) -> None:
    for text in ("Paint the fence", "Mow the lawn"):
        name = await stage.start(text_answer("Done."), text=text)
        await stage.wait_until(name, "finished")
    await anna.goto("/")
    await expect(anna, "text=Mow the lawn")
    await anna.page.keyboard.press("/")
    await anna.page.keyboard.type("FENCE")
    await until(anna, "document.querySelectorAll('.conversations li').length === 1")
    assert await titles(anna) == ["Paint the fence"]
    await anna.page.fill("#search", "")
    await anna.page.click(".filters >> text=Running")
    await expect(anna, "text=No conversation is like this.")
    await anna.page.keyboard.press("f")
    await anna.page.keyboard.press("f")
    await until(anna, "document.querySelectorAll('.conversations li').length === 2")


async def test_the_keyboard_alone_finds_and_opens_a_conversation(
    stage: GatewayStage, anna: Visitor
) -> None:
    for text in ("One", "Two"):
        name = await stage.start(text_answer("Done."), text=text)
        await stage.wait_until(name, "finished")
    await anna.goto("/")
    await expect(anna, ".conversations li:nth-child(2)")
    await anna.page.keyboard.press("j")
    await anna.page.keyboard.press("j")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "article.user >> text=One")
    await anna.page.keyboard.press("l")
    await expect(anna, ".conversations li")


async def test_a_deleted_conversation_leaves_the_list(stage: GatewayStage, anna: Visitor) -> None:
    name = await stage.start(text_answer("Done."), text="Not for long")
    await stage.wait_until(name, "finished")
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=Done.")
    anna.expected.append("404")  # of the stream, if it notices before the page leaves
    await anna.page.keyboard.press(",")
    await anna.page.click("dialog >> text=Delete")
    await anna.page.click("dialog >> text=Delete it")
    await expect(anna, "text=No conversation yet.")
    assert (await stage.anna.get(f"/v1/conversations/{name}")).status_code == 404


async def test_a_conversation_is_started_with_a_picture_that_was_dropped(
    stage: GatewayStage, anna: Visitor
) -> None:
    agent = json.dumps(as_json(stage.harness.spec(text_answer("A fine picture."))))
    await anna.goto("/")
    await expect(anna, "text=No conversation yet.")
    await anna.page.keyboard.press("n")
    await expect(anna, "#task")
    await anna.page.keyboard.type("What is in it?")
    await anna.page.evaluate(DROP, PIXEL)
    await expect(anna, ".thumbnails img")
    await anna.page.select_option("#agent", label="An agent as JSON …")
    await anna.page.fill("#agent-json", agent)
    await anna.page.keyboard.press("Tab")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "text=A fine picture.")
    await expect(anna, "article.user img.shown")
    assert await anna.page.evaluate(
        "[...document.querySelectorAll('img.shown')].every((image) => image.naturalWidth === 8)"
    )


DROP = """(url) => {
  const bytes = Uint8Array.from(atob(url.split(",")[1]), (letter) => letter.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "picture.png", { type: "image/png" }));
  transfer.items.add(new File(["a,b\\n1,2\\n"], "table.csv", { type: "text/csv" }));
  const options = { dataTransfer: transfer, bubbles: true, cancelable: true };
  document.querySelector(".editor").dispatchEvent(new DragEvent("drop", options));
}"""


async def test_what_cannot_be_started_is_explained(anna: Visitor) -> None:
    anna.expected.append("422")
    await anna.goto("/new")
    await expect(anna, "#agent")
    await anna.page.fill("#task", "Do it.")
    await anna.page.select_option("#agent", label="An agent as JSON …")
    await anna.page.fill("#agent-json", "{nonsense")
    await anna.page.click("text=Start")
    await expect(anna, "text=The agent is no JSON")
    await anna.page.fill("#agent-json", '{"model": {"name": "openai/x"}, "tolls": []}')
    await anna.page.click("text=Start")
    await expect(anna, "[role=alert] >> text=tolls")
    assert await anna.page.input_value("#task") == "Do it."

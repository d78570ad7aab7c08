"""The pictures of the page in the documentation: `make screenshots` writes docs/page/*.png."""

import asyncio
import os
import sys
import tempfile

# Before anything imports litellm, which would else fetch its prices from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from perdure.testing.script import Script
from perdure.testing.server import serve_scripts
from tests.gateway.page import stories
from tests.gateway.page.batch_stories import question, wait_for_batch
from tests.gateway.page.browser import PHONE, Visitor, expect, open_browser, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.page.discussion_stories import discuss_four_days
from tests.gateway.page.environment import main as prepare
from tests.gateway.page.stage import open_stage
from tests.gateway.stage import GatewayStage
from tests.harness import text_answer, tool_call_answer

TARGET = Path(__file__).parents[3] / "docs" / "page"
TOOLS = ["terminal", "file_editor", "think", "finish"]

SCRIPTS: Mapping[str, list[dict[str, Any]]] = {
    "gpt-5": stories.bug_fix(),
    "gpt-5-mini": [
        tool_call_answer(("terminal", {"command": "rm -rf build && make release VERSION=2.4.0"})),
        text_answer("Released."),
    ],
    "qwen3-coder": [
        {**text_answer("Reading the changelog. " * 60), "chunk_delay": 1.0, "usage": stories.SPENT}
    ],
    "glm-4.6": [{**text_answer("The answer is 42."), "usage": stories.SPENT}],
    "kimi-k2": [{**text_answer("14"), "usage": {**stories.SPENT, "cost": 0.0021}}] * 3,
}
"""The answers of each model."""

CONVERSATIONS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("glm-4.6", "Meaning of the flaky test in CI", "Why does test_retry fail once a week?", {}),
    ("qwen3-coder", "Release notes for 2.4", "Write the release notes.", {}),
    (
        "gpt-5-mini",
        "Release 2.4.0",
        "Build and publish the release.",
        {"confirmation": {"policy": "always"}, "tags": ["release"]},
    ),
    ("gpt-5", stories.TITLE, stories.TASK, {"tags": ["billing"]}),
]


async def start_all(stage: GatewayStage, api_base: str) -> list[str]:
    """Start the conversations, and return their ids when each is where it is to be."""
    ids = []
    for model, title, text, fields in CONVERSATIONS:
        agent = {"model": make_model(model, api_base), "tools": TOOLS, **fields}
        body = {"text": text, "title": title, "agent": agent}
        started = await stage.anna.post("/v1/conversations", json=body)
        assert started.status_code == 201, started.text
        ids.append(started.json()["id"])
    states = ("finished", "running", "waiting_for_confirmation", "finished")
    for name, state in zip(ids, states, strict=True):
        await stage.wait_until(name, state)
    return ids


async def share_one(stage: GatewayStage, api_base: str) -> None:
    """Have Ben start a conversation and share it with Anna."""
    agent = {"model": make_model("glm-4.6", api_base), "tools": TOOLS}
    body = {"text": "Why is the build slow?", "title": "Slow builds on Mondays", "agent": agent}
    started = await stage.ben.post("/v1/conversations", json=body)
    assert started.status_code == 201, started.text
    path = f"/v1/conversations/{started.json()['id']}/grants/anna"
    granted = await stage.ben.put(path, json={"access": "read"})
    assert granted.is_success, granted.text


def make_model(name: str, api_base: str) -> dict[str, Any]:
    return {"name": f"openai/{name}", "api_base": api_base}


async def run_batch(stage: GatewayStage, api_base: str) -> None:
    agent = {"model": make_model("kimi-k2", api_base), "tools": ["think"]}
    spec = {"name": "arithmetic-v3", "agent": agent, "scorers": ["match"], "concurrency": 8}
    samples = [{**question(number), "target": ["14", "15"][number % 3 > 1]} for number in range(40)]
    started = await stage.anna.post("/v1/batches", json={"batch": spec, "samples": samples})
    assert started.status_code == 201, started.text
    await wait_for_batch(stage, "arithmetic-v3", "finished")


async def take_pictures(visitor: Visitor, ids: list[str]) -> None:
    await visitor.goto("/")
    await expect(visitor, ".conversations li:nth-child(4)")
    await picture(visitor, "list")
    await visitor.goto(f"/conversations/{ids[3]}")
    await expect(visitor, "text=Both tests pass.")
    calls = visitor.page.locator("article.call")
    for number in (1, 2):
        await calls.nth(number).locator("summary").last.click()
    await expect(visitor, "article.call pre.diff")
    await visitor.page.evaluate("document.querySelector('.log').scrollTop = 100")
    await picture(visitor, "conversation")
    await visitor.goto("/batches/arithmetic-v3")
    await expect(visitor, ".plots figure canvas")
    await picture(visitor, "batch")
    await take_discussion(visitor)


async def take_discussion(visitor: Visitor) -> None:
    await visitor.goto("/discussions/four-days")
    await expect(visitor, ".said.tally")
    await visitor.page.locator(".said.intents summary").last.click()
    await picture(visitor, "discussion")


async def take_phone_pictures(visitor: Visitor, ids: list[str]) -> None:
    await visitor.goto(f"/conversations/{ids[2]}")
    await expect(visitor, ".waiting.asks")
    await picture(visitor, "phone")


async def picture(visitor: Visitor, name: str) -> None:
    await visitor.page.wait_for_timeout(500)
    await visitor.page.screenshot(path=TARGET / f"{name}.png")
    print(f"docs/page/{name}.png", file=sys.stderr)


async def main() -> None:
    TARGET.mkdir(exist_ok=True)
    scripts = {
        name: Script.model_validate({"name": name, "answers": answers, "repeat": True})
        for name, answers in SCRIPTS.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        async with (
            AsyncExitStack() as closing,
            serve_scripts(scripts) as api_base,
            open_stage(Path(folder), closing) as stage,
            open_browser() as browser,
        ):
            await run_batch(stage, api_base)
            await discuss_four_days(stage, "four-days")
            await share_one(stage, api_base)
            ids = await start_all(stage, api_base)
            async with visit(browser, stage.url) as visitor:
                await visitor.log_in(key_of(stage.anna))
                await take_pictures(visitor, ids)
            phone = {"viewport": PHONE, "color_scheme": "dark", "device_scale_factor": 2}
            async with visit(browser, stage.url, **phone) as visitor:
                await visitor.log_in(key_of(stage.anna))
                await take_phone_pictures(visitor, ids)


if __name__ == "__main__":
    code = prepare()
    if code == 0:
        asyncio.run(main())
    sys.exit(code)

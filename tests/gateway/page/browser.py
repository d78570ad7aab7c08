"""A browser for the tests of the page, and its visitors, who report what a page must not do."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.gateway.page.environment import find_browser, packages

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

WAIT = 30.0
"""Seconds to wait for something on a page."""

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}

RECORD_VIOLATIONS = """
globalThis.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
globalThis.longTasks = [];
const note = (list) => longTasks.push(...list.getEntries().map((task) => task.duration));
new PerformanceObserver(note).observe({ type: "longtask", buffered: true });
"""


@asynccontextmanager
async def open_browser() -> AsyncIterator[Any]:
    """Start the browser, and stop it at the end."""
    if str(packages()) not in sys.path:
        sys.path.append(str(packages()))
    from playwright.async_api import async_playwright  # in an environment of its own

    async with async_playwright() as playwright:
        path = find_browser()
        browser = await playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        await browser.close()


@dataclass
class Visitor:
    """Somebody at the page: a browser context of its own, and what went wrong in it."""

    url: str
    context: Any
    page: Any
    problems: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Patterns of console errors that the test causes on purpose."""

    async def watch(self, page: Any) -> None:
        """Record the errors, and the requests to other hosts, of a page."""
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", self._note_request)

    async def log_in(self, key: str) -> None:
        """Begin a session with an API key, as the page does."""
        answer = await self.context.request.post(f"{self.url}/v1/login", data={"key": key})
        assert answer.ok, await answer.text()

    async def goto(self, path: str) -> None:
        await self.page.goto(self.url + path)

    async def check(self) -> None:
        """Raise AssertionError if a page had an error, broke its policy, or asked another host."""
        for page in self.context.pages:
            self.problems += await page.evaluate("globalThis.violations ?? []")
        unexpected = [
            problem
            for problem in self.problems
            if not any(re.search(pattern, problem) for pattern in self.expected)
        ]
        assert not unexpected, "\n".join(unexpected)

    def _note_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.problems.append(f"request to {request.url}")


async def expect(visitor: Visitor, selector: str) -> None:
    """Wait until the page has such an element in sight."""
    try:
        await visitor.page.wait_for_selector(selector, timeout=WAIT * 1000)
    except Exception as error:
        text = await visitor.page.inner_text("body")
        raise AssertionError(f"{selector} is not on the page, which says:\n{text}") from error


async def until(visitor: Visitor, condition: str) -> None:
    """Wait until a JavaScript expression is true; the policy forbids Playwright's own way."""
    async with asyncio.timeout(WAIT):
        while not await visitor.page.evaluate(f"() => Boolean({condition})"):
            await asyncio.sleep(0.05)


@asynccontextmanager
async def visit(browser: Any, url: str, **options: Any) -> AsyncIterator[Visitor]:
    """Open a page; what went wrong in it fails the test at the end."""
    options = {"viewport": DESKTOP, "locale": "en-GB", "timezone_id": "UTC", **options}
    context = await browser.new_context(**options)
    await context.add_init_script(RECORD_VIOLATIONS)
    page = await context.new_page()
    visitor = Visitor(url, context, page)
    await visitor.watch(page)
    try:
        yield visitor
        await visitor.check()
    finally:
        await context.close()

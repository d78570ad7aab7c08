"""An agent opens a page, sees it and clicks; its worker is killed, and no click happens twice."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from perdure.cli.mcp_file import read_servers
from perdure.embedded.temporal import TemporalServer
from perdure.events.content import ImageContent, join_text
from perdure.events.tools import AgentErrorEvent, ObservationEvent
from tests.examples.browser_environment import MCP_FILE, find_gap
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.tools.processes import find_processes
from tests.workers import worker_process
from tests.workflows.conftest import harness, temporal
from tests.workflows.watching import entries, wait_until

__all__ = ["harness", "temporal"]

pytestmark = [pytest.mark.longest, pytest.mark.timeout(300)]

# A synchronous request: the click is not over before its answer.
PAGE = b"""<!doctype html><title>Shop</title><h1>Tea, two pounds</h1>
<p id=state>nothing bought</p>
<button onclick="const r = new XMLHttpRequest(); r.open('POST', '/buy', false); r.send();
document.getElementById('state').textContent = r.responseText">Buy</button>"""


@dataclass
class Shop:
    """A page on the loopback, whose purchases are counted; each is answered once it is let go."""

    url: str = ""
    purchases: int = 0
    may_answer: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(PAGE)

        def do_POST(self) -> None:
            shop.purchases += 1
            shop.may_answer.wait(60)
            self._answer(b"%d bought" % shop.purchases)

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing: the output is the test's."""

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):  # the browser was killed
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shop.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield shop
    shop.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return tool_call_answer((f"browser__browser_{name}", arguments))


async def test_a_click_is_not_repeated_when_its_worker_is_killed(
    harness: ConversationHarness, temporal_server: TemporalServer, shop: Shop
) -> None:
    if gap := find_gap("--offline"):
        pytest.skip(f"NOT CHECKED: {gap}: `make browser` installs what is missing")
    spec = harness.spec(
        call("navigate", url=shop.url),
        call("snapshot"),
        call("take_screenshot", scale="css"),
        call("click", target="button", element="the button Buy"),
        call("snapshot"),
        call("navigate", url=shop.url),
        call("click", target="button", element="the button Buy"),
        call("snapshot"),
        text_answer("It was bought."),
        mcp=read_servers(MCP_FILE),
        heartbeat_timeout=1,
    )
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("Buy tea.", spec)
        async with asyncio.timeout(120):
            await wait_until(lambda: shop.purchases == 1)
        worker.kill()
        with worker_process(environment, harness.folder / "two.log"):
            await wait_until(lambda: shop.purchases == 2)
            shop.may_answer.set()
            async with asyncio.timeout(120):
                state = await talk.wait_for_turn()

    log = [entry.event for entry in await entries(talk)]
    answers = [event for event in log if isinstance(event, AgentErrorEvent | ObservationEvent)]
    _, page, picture, lost, after, _, _, bought = answers
    assert isinstance(page, ObservationEvent)
    assert "Tea, two pounds" in join_text(page.observation.content)
    assert isinstance(picture, ObservationEvent)
    assert any(isinstance(part, ImageContent) for part in picture.observation.content)
    assert isinstance(lost, AgentErrorEvent)
    assert lost.classification == "outcome_unknown"
    assert isinstance(after, ObservationEvent)
    assert "Tea" not in join_text(after.observation.content)
    assert isinstance(bought, ObservationEvent)
    assert "2 bought" in join_text(bought.observation.content)
    assert (shop.purchases, state.status) == (2, "finished")
    assert not find_processes(str(harness.folder / "workspaces"))

"""The conformance suite of the Model Context Protocol, unmodified, over a gateway.

Its other scenarios call tools, prompts and resources of a server made for the suite, or what this
server does not declare: logging, completion, subscriptions.
"""

import asyncio
import os
import re
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from perdure.gateway.gateway import Gateway
from perdure.settings.settings import Settings
from perdure.storage.credentials.api_keys import create_api_key
from tests.gateway.mcp.environment import PACKAGES
from tests.gateway.stage import serve_gateway
from tests.harness import ConversationHarness, text_answer

pytestmark = [
    pytest.mark.skipif(
        not PACKAGES.ready(), reason="NOT CHECKED: no suite is installed: `make mcp-conformance`"
    ),
    pytest.mark.long,
]

SUITE = PACKAGES.place / "node_modules/@modelcontextprotocol/conformance/dist/index.js"

ANY_REVISION = (
    *("tools-list", "tools-call-error", "resources-list", "prompts-list"),
    "dns-rebinding-protection",
)
SCENARIOS = {
    "2025-11-25": (*ANY_REVISION, "server-initialize", "ping"),
    "2026-07-28": (
        *(*ANY_REVISION, "caching", "http-header-validation"),
        *("server-sse-multiple-streams", "sep-2164-resource-not-found"),
    ),
}
"""The scenarios of each revision of the protocol."""

CASES = [(revision, name) for revision, names in SCENARIOS.items() for name in names]

MAX_SECONDS = 60
"""Seconds after which a scenario is taken to hang."""


class KeyAdder:
    """The application with a key in each request: the suite can send none."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {key}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


async def run_scenario(
    url: str, revision: str, scenario: str, place: Path
) -> tuple[int | None, str]:
    """Run a scenario; return the exit code of the suite, and what it printed."""
    program = await asyncio.create_subprocess_exec(
        *(str(PACKAGES.node), str(SUITE), "server", "--url", f"{url}/mcp"),
        *("--spec-version", revision, "--scenario", scenario, "--output-dir", str(place)),
        env={"PATH": os.environ["PATH"]},
        cwd=place,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(program.communicate(), MAX_SECONDS)
    return program.returncode, out.decode()


@pytest.mark.parametrize(("revision", "scenario"), CASES)
async def test_a_scenario_passes(
    world: ConversationHarness, tmp_path: Path, revision: str, scenario: str
) -> None:
    agent = world.spec(text_answer("5")).model_dump(mode="json", exclude_unset=True)
    gateway = Gateway(world.client, Settings(gateway_trusted=True, agents={"adder": agent}))
    made = await create_api_key(gateway.store, "anna", "test", ("read", "write", "admin"))
    async with serve_gateway(gateway, wrap=lambda app: KeyAdder(app, made.secret)) as url:
        code, said = await run_scenario(url, revision, scenario, tmp_path)
    result = re.search(r"Passed: (\d+)/(\d+), (\d+) failed, (\d+) warnings", said)
    assert result is not None, said
    passed, total, failed, warnings = map(int, result.groups())
    assert (code, failed, warnings) == (0, 0, 0), said
    assert passed == total > 0

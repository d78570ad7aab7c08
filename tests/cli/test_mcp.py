"""`perdure mcp` serves conversations to a program that starts it."""

import sys
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.cli.command import Perdure

pytestmark = pytest.mark.long


async def test_a_program_starts_it_and_talks_over_stdin_and_stdout(
    perdure: Perdure, script: Any
) -> None:
    path = script({"content": "5"}, {"content": "6"})
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "perdure.cli.main", "mcp"],
        env={**perdure.env, "PERDURE_MODEL": f"scripted:{path}"},
    )
    async with Client(server) as client:
        start = {"task": "2 + 3?", "request_id": "sum", "wait_seconds": 50}
        first = (await client.call_tool("start_conversation", start)).structured_content
        assert first is not None
        assert (first["status"], first["answer"]) == ("finished", "5")
    async with Client(server) as client:  # the first process is gone, its conversation is not
        again = (await client.call_tool("start_conversation", start)).structured_content
        assert again == first
        unknown = await client.call_tool("wait", {"conversation_id": "x"})
        assert unknown.is_error

"""Programs with AG-UI's client, in Node."""

import asyncio
import os

from tests.gateway.ag_ui.environment import folder, node

MAX_SECONDS = 60
"""Seconds after which a client is taken to hang."""


async def run_node(code: str, *arguments: str, **variables: str) -> str:
    """Run a program with AG-UI's client, and return what it prints."""
    program = await asyncio.create_subprocess_exec(
        *(str(node()), "--input-type=module", "--eval", code, *arguments),
        cwd=folder(),
        env={"PATH": os.environ["PATH"], **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    ending = asyncio.get_running_loop().call_later(MAX_SECONDS, program.kill)
    out, _ = await program.communicate()
    ending.cancel()
    assert program.returncode == 0, out.decode()
    return out.decode()

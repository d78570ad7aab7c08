"""The receiver of the documentation, as a process of its own."""

import asyncio
import re
import socket
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from perdure.client.webhooks.protocol import define_webhook
from perdure.client.webhooks.webhooks import Webhooks
from tests.client.webhooks.conftest import LOOPBACK, converse
from tests.harness import ConversationHarness, text_answer

PAGE = Path(__file__).parents[3] / "docs" / "webhooks.md"
RECEIVER = re.compile(r"^```python\n(# receiver\.py\n.*?)^```$", re.DOTALL | re.MULTILINE)


def find_free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@pytest.mark.long
async def test_the_receiver_of_the_documentation_takes_what_is_signed(
    harness: ConversationHarness, tmp_path: Path
) -> None:
    [code] = RECEIVER.findall(PAGE.read_text())
    (tmp_path / "receiver.py").write_text(code)
    port, webhooks = find_free_port(), Webhooks(harness.client, LOOPBACK)
    made = await webhooks.create(define_webhook(f"http://127.0.0.1:{port}/"))
    receiver = await asyncio.create_subprocess_exec(
        *(sys.executable, "receiver.py"),
        cwd=tmp_path,
        env={"WEBHOOK_SECRET": made.secret, "PORT": str(port)},
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        async with harness.worker(), asyncio.timeout(60):
            conversation = await converse(harness, text_answer("Hello."))
            assert receiver.stdout is not None
            line = (await receiver.stdout.readline()).decode()
            assert line.startswith("conversation.turn_end {'conversation_id': ")
            assert conversation.id in line
    finally:
        receiver.terminate()
        await receiver.communicate()

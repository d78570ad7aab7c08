"""A real model, small and on this machine: it streams, hangs, dies, and the turn goes on.

What it says is its own affair; asserted is what has to hold whatever a model says.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.cli.options import Format
from perdure.cli.rendering.events import SlotPrinter
from perdure.client.conversation import Conversation
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from tests.examples.local_model_environment import LOCAL_MODEL
from tests.exports.environments import VENV
from tests.harness import ConversationHarness
from tests.workflows.conftest import harness, temporal

__all__ = ["harness", "temporal"]

pytestmark = [
    pytest.mark.longest,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not LOCAL_MODEL.ready(), reason="NOT CHECKED: `make local-model` installs the real model"
    ),
]
PROGRAM = VENV.parent / "examples/local_model/server.py"
MODEL = "openai/smollm2-135m"
SILENCE = 3.0
STORY = "Tell a long story about a river."


@dataclass
class Server:
    """The server of the model, on a port that it keeps."""

    port: int
    process: "subprocess.Popen[str]"
    url: str

    @classmethod
    def start(cls, port: int = 0) -> "Server":
        command = [str(LOCAL_MODEL.python), str(PROGRAM), str(port)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        with process.stdout:
            url = process.stdout.readline().strip()
        assert url, "the server did not start"
        return cls(int(url.split(":")[2].partition("/")[0]), process, url)

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server.start()
    yield server
    server.kill()


def agent(server: Server, **fields: Any) -> Agent:
    """Return an agent with a short prompt: the model reads some thirty tokens a second."""
    model = {"native_tool_calling": False, "max_output_tokens": 60} | fields
    return Agent(
        model=ModelSpec(name=MODEL, api_base=server.url, **model),
        system_prompt="You are a helpful assistant.",
        tools=("think",),
        limits=Limits(max_iterations=3),
    )


async def wait_for_words(conversation: Conversation) -> None:
    async for steps in conversation.watch_running_steps():
        if any(step.kind == "llm.chat" and step.text for step in steps):
            return


async def test_words_are_seen_while_they_grow_and_the_answer_is_in_the_log(
    harness: ConversationHarness, server: Server
) -> None:
    async with harness.worker():
        conversation = await harness.client.start(STORY, agent(server))
        pieces = [piece async for piece in conversation.text()]
        result = await conversation.result()
    assert len(pieces) > 1
    assert "".join(pieces).strip() == result.text.strip() != ""
    assert result.usage.completion_tokens > 0


async def test_an_answer_that_ends_at_its_length_limit_is_said(
    harness: ConversationHarness, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    async with harness.worker():
        conversation = await harness.client.start(STORY, agent(server, max_output_tokens=8))
        await conversation.wait_for_turn()
    entries = await conversation.log.read(0, await conversation.log.end())
    said = next(
        entry
        for entry in entries
        if isinstance(entry.event, MessageEvent) and entry.event.source == "agent"
    )
    assert isinstance(said.event, MessageEvent)
    assert said.event.truncated
    SlotPrinter(Format.text).print_slot(said)
    assert "The answer ends at its length limit" in capsys.readouterr().out


@pytest.mark.parametrize("native", [True, False])
async def test_whatever_it_makes_of_tools_each_call_has_one_answer(
    harness: ConversationHarness, server: Server, native: bool
) -> None:
    async with harness.worker():
        spec = agent(server, native_tool_calling=native)
        conversation = await harness.client.start("Use the tool think to think about 2 + 2.", spec)
        state = await conversation.wait_for_turn()
    events = [entry.event for entry in await conversation.log.read(0, state.next_seq)]
    calls = [event.id for event in events if isinstance(event, ActionEvent)]
    answers = [
        event.action_id
        for event in events
        if isinstance(event, ObservationEvent | AgentErrorEvent) and event.action_id is not None
    ]
    assert state.status in ("finished", "stuck", "error", "paused")
    assert set(calls) <= set(answers)
    assert len(answers) == len(set(answers))
    assert [event.id for event in events] == [*dict.fromkeys(event.id for event in events)]


async def test_a_frozen_server_is_said_and_the_turn_goes_on_with_it(
    harness: ConversationHarness, server: Server
) -> None:
    async with harness.worker():
        conversation = await harness.client.start(STORY, agent(server))
        await wait_for_words(conversation)
        server.send(signal.SIGSTOP)
        trouble = None
        while trouble is None:
            await asyncio.sleep(0.2)
            trouble = await conversation.diagnose(max_silence=SILENCE)
        server.send(signal.SIGCONT)
        state = await conversation.wait_for_turn()
    assert "The model has said nothing for " in trouble.sentence
    assert (state.status, state.response_count) == ("finished", 1)


async def test_a_server_that_is_killed_and_started_again_is_asked_again(
    harness: ConversationHarness, server: Server
) -> None:
    async with harness.worker():
        conversation = await harness.client.start(STORY, agent(server))
        await wait_for_words(conversation)
        server.kill()
        trouble = None
        while trouble is None:
            await asyncio.sleep(0.2)
            trouble = await conversation.diagnose()
        again = Server.start(server.port)
        try:
            state = await conversation.wait_for_turn()
        finally:
            again.kill()
    assert "The model does not answer" in trouble.sentence
    assert state.status == "finished"
    entries = await conversation.log.read(0, state.next_seq)
    said = [
        entry.event
        for entry in entries
        if isinstance(entry.event, MessageEvent) and entry.event.source == "agent"
    ]
    assert len(said) == 1

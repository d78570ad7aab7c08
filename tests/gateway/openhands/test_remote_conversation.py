"""OpenHands' own `RemoteConversation`, unmodified, over a gateway with Temporal and a store."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.exports.openhands_environment import PYTHON, ready
from tests.gateway.stage import GatewayStage
from tests.harness import text_answer, tool_call_answer

pytestmark = [
    pytest.mark.skipif(
        not ready(), reason="NOT CHECKED: openhands-sdk is not installed, see `make openhands`"
    ),
    pytest.mark.long,
]

PAGE = Path(__file__).parents[3] / "docs" / "clients" / "openhands.md"
STORIES = Path(__file__).with_name("stories.py")

MAX_SECONDS = 110
"""Seconds after which a client is taken to hang: its import alone may take ten."""

RAN = tool_call_answer(("terminal", {"command": "echo one"}))
WROTE = tool_call_answer(
    ("file_editor", {"command": "create", "path": "plan.txt", "file_text": "the plan"})
)
DONE = text_answer("Done.")


async def run_client(stage: GatewayStage, *arguments: str) -> list[str]:
    """Run a program with openhands-sdk, and return the lines that it prints."""
    alone = {"PATH": os.environ["PATH"], "HOME": str(stage.harness.folder)}
    alone |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"}
    client = await asyncio.create_subprocess_exec(
        *(str(PYTHON), *arguments),
        env=alone,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    ending = asyncio.get_running_loop().call_later(MAX_SECONDS, client.kill)
    out, _ = await client.communicate()
    ending.cancel()
    return out.decode().splitlines()


def key_of_anna(stage: GatewayStage) -> str:
    return stage.anna.headers["Authorization"].removeprefix("Bearer ")


async def tell(
    stage: GatewayStage, story: str, *answers: dict[str, Any], native: bool = False
) -> Any:
    """Run a story of the client with a model that gives these answers, and return what it saw."""
    model = stage.harness.spec(*answers).model.name
    arguments = [str(STORIES), story, f"{stage.url}/openhands", key_of_anna(stage), model]
    lines = await run_client(stage, *arguments, *(["NATIVE"] if native else []))
    seen = [line for line in lines if line.startswith("SEEN ")]
    assert seen, "\n".join(lines[-60:])
    return json.loads(seen[0].removeprefix("SEEN "))


@pytest.mark.parametrize("native", [False, True], ids=["as MCP tools", "native"])
async def test_a_turn_with_tools(stage: GatewayStage, native: bool) -> None:
    seen = await tell(stage, "turn", RAN, WROTE, DONE, native=native)
    assert (seen["before"], seen["recorded"], seen["after"]) == ("idle", "idle", "finished")
    assert seen["texts"] == ["Write the plan.", "Done."]
    assert ["SystemPromptEvent", *seen["heard"]] == seen["kinds"], "the prompt was there before"
    names = ["Terminal", "FileEditor"] if native else ["MCPTool", "MCPTool"]
    assert seen["actions"] == [f"{name}Action" for name in names]
    assert seen["results"] == [f"{name}Observation" for name in names]
    assert (seen["iterations"], seen["has_key"]) == (7, False)
    stored = [await stage.gateway.store.read(key) for key in await stage.gateway.store.list("")]
    assert not [body for body in stored if body and b"canary-violet" in body]


async def test_a_second_client_attaches_and_goes_on(stage: GatewayStage) -> None:
    seen = await tell(stage, "attachment", text_answer("First."), text_answer("Second."))
    assert seen["known"] == ["One.", "First."]
    assert seen["texts"] == seen["first"] == ["One.", "First.", "Two.", "Second."]
    assert (seen["key"], seen["tags"]) == (True, {"team": "red"})


async def test_calls_wait_and_are_rejected_and_accepted(stage: GatewayStage) -> None:
    seen = await tell(stage, "confirmation", RAN, RAN, DONE)
    assert seen["waiting"] == seen["waiting_again"] == "waiting_for_confirmation"
    assert (seen["rejected"], seen["after"]) == ("idle", "finished")
    assert seen["policy"] == "AlwaysConfirm"
    assert seen["kinds"].count("UserRejectObservation") == 1
    assert seen["kinds"].count("ObservationEvent") == 1


async def test_a_run_is_paused_and_interrupted(stage: GatewayStage) -> None:
    nap = tool_call_answer(("terminal", {"command": "sleep 2"}))
    long = tool_call_answer(("terminal", {"command": "sleep 60"}))
    seen = await tell(stage, "pause", nap, DONE, long, DONE)
    assert seen == {"paused": "paused", "after": "finished", "interrupted": "paused", "soon": True}


async def test_a_fork_a_question_a_title_and_the_end(stage: GatewayStage) -> None:
    seen = await tell(stage, "fork", text_answer("First."), *[text_answer("Second.")] * 3)
    assert seen["title"] == "A plan"
    assert seen["forked"] == ["Another plan", {"kind": "fork"}, seen["id"]]
    assert seen["texts"] == ["One.", "First."]
    assert seen["fork_texts"] == ["One.", "First.", "Two.", "Second."]
    assert seen["early_texts"] == ["One."]
    assert (seen["answer"], seen["deleted"]) == ("ANSWER of 4 messages", 404)


async def test_the_words_come_as_they_are_said(stage: GatewayStage) -> None:
    text = "One two three four five six seven."
    seen = await tell(stage, "stream", {"content": text, "chunk_delay": 0.3})
    assert seen["text"] == text
    assert seen["pieces"] > 1
    assert seen["texts"] == ["Tell.", text]


async def test_an_error_is_told_with_its_code(stage: GatewayStage) -> None:
    seen = await tell(stage, "error", {"failures": [{"status": 401}] * 9, "content": "never"})
    assert seen == {"code": "LLMAuthenticationError", "status": "error"}


async def test_ten_turns_in_a_row_never_hang(stage: GatewayStage) -> None:
    seen = await tell(stage, "many_turns", *[text_answer(f"Answer {nth}.") for nth in range(10)])
    said = [text for nth in range(10) for text in (f"Turn {nth}.", f"Answer {nth}.")]
    assert seen["texts"] == said
    assert seen["twice"] == 0
    assert seen["longest"] < 29, "the end was told, and not only found by asking"


async def test_the_program_of_the_documentation_runs(stage: GatewayStage) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    code = code.replace("https://perdure.example.org", stage.url)
    code = code.replace("pk_…", key_of_anna(stage))
    code = code.replace("openai/gpt-5", stage.harness.spec(text_answer("5")).model.name)
    lines = await run_client(stage, "-c", code)
    assert "finished" in lines, "\n".join(lines[-40:])

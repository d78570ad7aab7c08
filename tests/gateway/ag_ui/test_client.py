"""AG-UI's own client, unmodified, over a gateway with Temporal and an S3 store."""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import temporalio.client

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.embedded.seaweed import Seaweed
from perdure.models.router import ModelRouter
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access
from tests.gateway.ag_ui.environment import CLIENT, ready
from tests.gateway.ag_ui.node import run_node
from tests.gateway.ag_ui.stage import WORDS, AgUiStage, open_stage
from tests.harness import ConversationHarness

pytestmark = [
    pytest.mark.skipif(
        not ready(), reason="NOT CHECKED: @ag-ui/client is not installed, see `make ag-ui`"
    ),
    pytest.mark.long,
]

STORIES = CLIENT / "stories.mjs"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def s3_stage(
    temporal: temporalio.client.Client,
    seaweed: Seaweed,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[AgUiStage]:
    """A gateway and a worker over an S3 store."""
    place, name = tmp_path_factory.mktemp("ag-ui-s3"), f"ag-ui-{uuid.uuid4()}"
    await seaweed.make_bucket(name)
    access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
    store = S3Store(name, access=access)
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    resources = Resources(store, ModelRouter(), place / "workspaces")
    async with open_stage(ConversationHarness(client, resources, place)) as opened:
        yield opened


async def tell(stage: AgUiStage, story: str) -> Any:
    """Run a story of the client, and return what it saw."""
    clients = (stage.gateway.anna, stage.gateway.ben)
    keys = [each.headers["Authorization"].removeprefix("Bearer ") for each in clients]
    out = await run_node(STORIES.read_text(), story, stage.gateway.url, *keys)
    [seen] = [line for line in out.splitlines() if line.startswith("SEEN ")]
    found = json.loads(seen.removeprefix("SEEN "))
    assert found.pop("warnings") == []
    return found


async def test_turns_are_the_same_streamed_and_told_again(s3_stage: AgUiStage) -> None:
    seen = await tell(s3_stage, "turns")
    assert seen["errors"] == [None] * 3
    assert seen["roles"] == [
        *("user", "assistant", "tool", "reasoning", "assistant", "user", "assistant")
    ]
    assert seen["texts"] == [
        *("2 + 3?", "I add.", "5", "Two numbers.", "It is 5.", "And then?", "Answer 2.")
    ]
    assert seen["called"] == ["add"]
    assert seen["told"] == [False, False, True]
    streamed, told = seen["messages"]
    assert streamed == told
    assert (seen["state"]["status"], seen["state"]["conversationId"]) == (
        *("finished", seen["threadId"]),
    )


async def test_a_client_that_was_lost_comes_back_and_has_each_word_once(
    s3_stage: AgUiStage,
) -> None:
    seen = await tell(s3_stage, "lost")
    assert 0 < len(seen["half"]) < len(WORDS)
    assert seen["texts"] == ["Will you be lost?", WORDS]
    assert (seen["end"], seen["error"]) == ("success", None)


async def test_interrupts_are_pending_until_each_is_answered(s3_stage: AgUiStage) -> None:
    seen = await tell(s3_stage, "interrupts")
    assert (seen["first"], seen["second"], seen["error"]) == ("interrupt", "success", None)
    assert seen["pending"][0] == ["tool_call", 'May add be called? {"a": 2, "b": 3}']
    assert (len(seen["pending"]), seen["reloaded"], seen["left"]) == (2, 2, 0)
    assert "2 pending interrupt(s)" in seen["refused"]
    assert seen["calls"] == 2
    assert seen["results"] == ["Too easy.", "5"]
    assert seen["said"] == "Done."


async def test_interrupts_are_cancelled(s3_stage: AgUiStage) -> None:
    seen = await tell(s3_stage, "cancelled")
    assert seen == {"end": "success", "said": "Done.", "error": None}


async def test_two_clients_share_a_run(s3_stage: AgUiStage) -> None:
    seen = await tell(s3_stage, "together")
    assert seen["ends"] == ["cancelled", "cancelled"]
    assert "409" in seen["refused"]
    assert seen["texts"][0] == "Sleep."
    assert seen["status"] == "idle"


async def test_failures_and_refusals_say_why(s3_stage: AgUiStage) -> None:
    seen = await tell(s3_stage, "failed")
    assert seen["last"]["type"] == "RUN_ERROR"
    assert seen["last"]["code"]
    for name, status in {"unknown": "404", "stranger": "401", "tools": "422"}.items():
        assert status in seen[name], seen[name]


async def test_another_user_sees_nothing_of_a_thread(s3_stage: AgUiStage) -> None:
    assert await tell(s3_stage, "strangers") == {"messages": [], "end": "success"}


@pytest.mark.parametrize("agent", ["adder", "speaker", "asker", "broken"])
async def test_the_validator_finds_no_fault_over_http(s3_stage: AgUiStage, agent: str) -> None:
    header = f"Authorization: {s3_stage.gateway.anna.headers['Authorization']}"
    command = ["ag_ui_validate.cli", f"{s3_stage.gateway.url}/ag-ui/{agent}", "--header", header]
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *command, "--max-warnings", "0", "--features", "shared-state"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await program.communicate()
    assert program.returncode == 0, out.decode()

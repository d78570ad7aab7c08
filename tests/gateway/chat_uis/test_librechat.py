"""LibreChat's packages, unmodified, over a gateway with Temporal and an S3 store."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml  # type: ignore[import-untyped]

from tests.gateway.chat_uis.environment import HERE, LIBRECHAT
from tests.gateway.openai.stage import WORDS, OpenAiStage
from tests.gateway.openai.test_chat import user_texts

pytestmark = [
    pytest.mark.skipif(
        not LIBRECHAT.ready(),
        reason="NOT CHECKED: LibreChat's packages are not installed, see `make chat-uis`",
    ),
    pytest.mark.long,
]

PAGE = Path(__file__).parents[3] / "docs" / "clients" / "openai.md"

MAX_SECONDS = 60

FIRST = [
    {"type": "text", "text": "I add."},
    {"type": "think", "think": 'Two numbers.\n\n→ add {"a": 2, "b": 3}\n\n← 5'},
    {"type": "text", "text": "\n\nIt is 5."},
]


async def tell(stage: OpenAiStage, story: str, chat: str = "") -> Any:
    """Run a story of LibreChat's packages, and return what they saw."""
    code = (HERE / "librechat" / "stories.mjs").read_text()
    program = await asyncio.create_subprocess_exec(
        *(str(LIBRECHAT.node), "--input-type=module", "--eval", code, "--"),
        *(story, stage.gateway.url, stage.anna.api_key, chat or str(uuid4())),
        cwd=LIBRECHAT.place,
        env={"PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    ending = asyncio.get_running_loop().call_later(MAX_SECONDS, program.kill)
    out = (await program.communicate())[0].decode()
    ending.cancel()
    assert program.returncode == 0, out
    [seen] = [line for line in out.splitlines() if line.startswith("SEEN ")]
    return json.loads(seen.removeprefix("SEEN "))


async def test_a_chat_is_one_conversation(chat_ui_stage: OpenAiStage) -> None:
    chat = str(uuid4())
    seen = await tell(chat_ui_stage, "talk", chat)
    assert seen["first"] == FIRST
    assert seen["usage"]["total_tokens"] == 10
    assert seen["second"] == [{"type": "text", "text": "Answer 2."}]
    assert await user_texts(chat_ui_stage, chat) == ["2 + 3?", "And then?"]


async def test_words_grow(chat_ui_stage: OpenAiStage) -> None:
    seen = await tell(chat_ui_stage, "grow")
    assert seen["parts"] == [{"type": "text", "text": WORDS}]
    assert seen["grown"] > 3


async def test_a_chat_that_is_named_after_its_first_answer_goes_on_with_what_was_said(
    chat_ui_stage: OpenAiStage,
) -> None:
    chat = str(uuid4())
    seen = await tell(chat_ui_stage, "unnamed", chat)
    assert seen["first"] == FIRST
    [told] = await user_texts(chat_ui_stage, chat)
    assert told.startswith("This conversation has begun elsewhere:\n\nUser: 2 + 3?")
    assert told.endswith("The newest message is:\n\nAnd then?")


async def test_what_waits_for_a_person_is_said_with_the_address_of_its_page(
    chat_ui_stage: OpenAiStage,
) -> None:
    chat = str(uuid4())
    thought, said = (await tell(chat_ui_stage, "wait", chat))["parts"]
    assert thought["think"] == '→ add {"a": 2, "b": 3}\n\n→ add {"a": 1, "b": 1}'
    assert said["text"].startswith("This waits for your approval:")
    assert said["text"].endswith(f"{chat_ui_stage.gateway.url}/conversations/{chat}")


async def test_the_endpoint_of_the_page_is_one_in_its_configuration(
    chat_ui_stage: OpenAiStage,
) -> None:
    [text] = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    [endpoint] = yaml.safe_load(text)["endpoints"]["custom"]
    seen = await tell(chat_ui_stage, "configure", json.dumps(endpoint))
    assert (seen["success"], seen["endpoint"]) == (True, endpoint), seen


async def test_a_turn_that_fails_is_an_error(chat_ui_stage: OpenAiStage) -> None:
    assert "refused the key" in (await tell(chat_ui_stage, "fail"))["error"]

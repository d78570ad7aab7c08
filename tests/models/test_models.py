"""Who answers is told by the name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.completion import Completion
from agent.spec import ModelSpec
from models.model import Request
from models.models import Models
from models.script import Answer, Script
from models.serve import serve
from tests.models.asking import ask, text_in, user

STARTED = """
import sys, models.models
print("litellm" in sys.modules, "openai" in sys.modules)
"""

ASKED = """
import asyncio, warnings
from agent.completion import Completion
from agent.spec import ModelSpec
from models.model import Request
from models.model import ModelError, Request
from models.models import Models

warnings.simplefilter("error")

async def ask():
    request = Request(ModelSpec(name="nobody/knows"), [{"role": "user", "content": "hi"}])
    try:
        await Models().complete(request, print)
    except ModelError as error:
        assert error.code == "model_not_found", error

asyncio.run(ask())
"""


def test_litellm_is_not_loaded_before_it_is_asked() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STARTED], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False False\n"


@pytest.mark.long
def test_asking_litellm_prints_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


async def test_a_scripted_name_is_played_in_process_and_others_go_through_litellm(
    tmp_path: Path,
) -> None:
    models = Models()
    path = tmp_path / "story.json"
    path.write_text(json.dumps({"answers": [{"content": "in process"}]}))
    answer = await ask(models, ModelSpec(name=f"scripted:{path}"))
    assert (text_in(answer), answer.model) == ("in process", f"scripted:{path}")
    async with serve({"s": Script(name="s", answers=(Answer(content="over HTTP"),))}) as url:
        answer = await ask(models, ModelSpec(name="openai/s", api_base=url))
    assert text_in(answer) == "over HTTP"


async def test_an_answer_is_billed_to_its_model_and_its_purpose(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(json.dumps({"answers": ["x"], "titles": ["A story"]}))
    spec = ModelSpec(name=f"scripted:{path}")
    request = Request(spec, [user("go")], purpose="title")
    answer = await Models().complete(request, lambda _: None)
    assert (answer.usage.model, answer.usage.purpose) == (spec.name, "title")
    assert Completion.model_validate(answer.model_dump()) == answer

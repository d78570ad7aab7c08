"""The model's name selects the implementation."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.model import Request
from perdure.models.router import ModelRouter
from perdure.testing.script import Script, ScriptedAnswer
from perdure.testing.server import serve_scripts
from tests.models.requests import ask, text_in, user

STARTED = """
import sys, perdure.models.router
print("litellm" in sys.modules, "openai" in sys.modules)
"""

ASKED = """
import asyncio, warnings
from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.model import Request
from perdure.models.model import ModelError, Request
from perdure.models.router import ModelRouter

warnings.simplefilter("error")

async def ask():
    request = Request(ModelSpec(name="nobody/knows"), [{"role": "user", "content": "hi"}])
    try:
        await ModelRouter().complete(request, print)
    except ModelError as error:
        assert error.code == "model_not_found", error

asyncio.run(ask())
"""


def test_litellm_is_loaded_at_the_first_request() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STARTED], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False False\n"


PRELOADED = """
import asyncio, sys
from perdure.models.router import ModelRouter
asyncio.run(ModelRouter().preload())
print("litellm" in sys.modules)
"""


@pytest.mark.parametrize(
    "key", [pytest.param("sk-any", marks=pytest.mark.long), ""], ids=["with-key", "without"]
)
def test_litellm_is_loaded_beforehand_where_a_models_key_is_set(key: str) -> None:
    env = {name: text for name, text in os.environ.items() if not name.endswith("_API_KEY")}
    ran = subprocess.run(
        [sys.executable, "-c", PRELOADED],
        capture_output=True,
        text=True,
        check=True,
        env={**env, "MISTRAL_API_KEY": key},
    )
    assert ran.stdout == f"{bool(key)}\n"


@pytest.mark.long
def test_calling_litellm_prints_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


async def test_scripted_models_run_in_process_and_others_through_litellm(
    tmp_path: Path,
) -> None:
    models = ModelRouter()
    path = tmp_path / "story.json"
    path.write_text(json.dumps({"answers": [{"content": "in process"}]}))
    answer = await ask(models, ModelSpec(name=f"scripted:{path}"))
    assert (text_in(answer), answer.model) == ("in process", f"scripted:{path}")
    async with serve_scripts(
        {"s": Script(name="s", answers=(ScriptedAnswer(content="over HTTP"),))}
    ) as url:
        answer = await ask(models, ModelSpec(name="openai/s", api_base=url))
    assert text_in(answer) == "over HTTP"


async def test_usage_has_the_answering_model_and_the_purpose(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(json.dumps({"answers": ["x"], "titles": ["A story"]}))
    spec = ModelSpec(name=f"scripted:{path}")
    request = Request(spec, [user("go")], purpose="title")
    answer = await ModelRouter().complete(request, lambda _: None)
    assert (answer.usage.model, answer.usage.purpose) == (spec.name, "title")
    assert Completion.model_validate(answer.model_dump()) == answer

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
from tests.models.anthropic_events import said
from tests.models.requests import Fixed, ask, completion, text_in, user

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


def test_litellm_is_not_loaded_with_the_router() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STARTED], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False False\n"


PRELOADED = """
import asyncio, sys
from perdure.models.router import ModelRouter
direct, model = sys.argv[1] == "direct", sys.argv[2] or None
asyncio.run(ModelRouter(direct=direct).preload(model))
print("litellm" in sys.modules)
"""


@pytest.mark.parametrize(
    ("way", "model", "key", "loads"),
    [
        ("direct", "", "", False),
        ("direct", "", "OPENAI_API_KEY", False),
        ("direct", "openai/gpt-4o", "OPENAI_API_KEY", False),
        ("direct", "", "ANTHROPIC_API_KEY", False),
        ("direct", "anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY", False),
        ("direct", "claude-opus-5", "ANTHROPIC_API_KEY", False),
        ("direct", "scripted:nowhere.json", "", False),
        pytest.param("direct", "", "MISTRAL_API_KEY", True, marks=pytest.mark.long),
        pytest.param("direct", "openai/gpt-5", "", True, marks=pytest.mark.long),
        pytest.param("direct", "anthropic/claude-opus-9", "", True, marks=pytest.mark.long),
        pytest.param("direct", "vertex_ai/claude-opus-5", "", True, marks=pytest.mark.long),
        pytest.param("litellm", "", "OPENAI_API_KEY", True, marks=pytest.mark.long),
        pytest.param("litellm", "", "ANTHROPIC_API_KEY", True, marks=pytest.mark.long),
        pytest.param("litellm", "openai/gpt-4o", "", True, marks=pytest.mark.long),
    ],
)
def test_litellm_is_loaded_beforehand_only_where_a_model_will_need_it(
    way: str, model: str, key: str, loads: bool
) -> None:
    env = {name: text for name, text in os.environ.items() if not name.endswith("_API_KEY")}
    ran = subprocess.run(
        [sys.executable, "-c", PRELOADED, way, model],
        capture_output=True,
        text=True,
        check=True,
        env={**env, key: "sk-any"} if key else env,
    )
    assert ran.stdout == f"{loads}\n"


@pytest.mark.long
def test_calling_litellm_prints_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


async def test_scripted_models_run_in_process_and_others_over_http(
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


@pytest.mark.parametrize(
    ("direct", "name", "pattern", "agent"),
    [
        (True, "openai/m", "^a", "perdure"),
        (True, "openai/m", r"^\p{L}", "AsyncOpenAI"),
        (True, "openai/gpt-5", "^a", "AsyncOpenAI"),
        (False, "openai/m", "^a", "AsyncOpenAI"),
        (True, "anthropic/m", "^a", "perdure"),
        (True, "anthropic/m", r"^\p{L}", "litellm"),
        (True, "anthropic/claude-opus-9", "^a", "litellm"),
        (False, "anthropic/m", "^a", "litellm"),
    ],
)
async def test_a_server_is_called_directly_where_litellm_would_change_nothing(
    direct: bool, name: str, pattern: str, agent: str
) -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string", "pattern": pattern}}}
    tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
    server = Fixed(completion({"content": "hi"}))
    if name.startswith("anthropic/"):
        server = Fixed(said("hi"), "text/event-stream")
    async with server.spec(name) as spec:
        await ModelRouter(direct=direct).complete(Request(spec, [user("hi")], [tool]), print)
    ((headers, _),) = server.requests
    assert headers["user-agent"].partition("/")[0] == agent


async def test_usage_has_the_answering_model_and_the_purpose(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(json.dumps({"answers": ["x"], "titles": ["A story"]}))
    spec = ModelSpec(name=f"scripted:{path}")
    request = Request(spec, [user("go")], purpose="title")
    answer = await ModelRouter().complete(request, lambda _: None)
    assert (answer.usage.model, answer.usage.purpose) == (spec.name, "title")
    assert Completion.model_validate(answer.model_dump()) == answer

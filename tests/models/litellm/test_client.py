"""litellm over real HTTP, where it is needed: other providers, and their protocols."""

import pytest

from perdure.agent.spec import ModelSpec
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import (
    ModelRefused,
    Request,
)
from tests.models.requests import (
    Fixed,
    ask,
    environment,
    user,
)

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]


async def test_an_unknown_provider_is_refused(litellm: LiteLLM) -> None:
    with pytest.raises(ModelRefused, match="No provider is known for nobody/knows") as raised:
        await ask(litellm, ModelSpec(name="nobody/knows"))
    assert raised.value.code == "model_not_found"


@pytest.mark.long
async def test_an_error_of_another_protocol_need_not_be_json(litellm: LiteLLM) -> None:
    name = "anthropic/claude-sonnet-4-5"
    async with Fixed(b"<html>No.</html>", "text/html", 401).spec(name) as spec:
        with pytest.raises(ModelRefused, match="refused the key"):
            await ask(litellm, spec)


async def test_an_unexpected_exception_is_an_internal_error(litellm: LiteLLM) -> None:
    server = Fixed(b"{}")
    async with server.spec("anthropic/claude-sonnet-4-5") as spec:
        request = Request(spec, [user("hi")], [{"type": "function", "function": 3}])
        with pytest.raises(
            ModelRefused, match=r"litellm failed on .*Error: .*: report it"
        ) as raised:
            await litellm.complete(request, lambda _: None)
    assert raised.value.code == "internal"
    assert server.requests == []


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY"),
        ("azure/my-deployment", "AZURE_API_KEY"),
    ],
)
async def test_a_missing_key_is_named(litellm: LiteLLM, name: str, variable: str) -> None:
    others = ("GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AZURE_OPENAI_API_KEY")
    with (
        environment(**dict.fromkeys((variable, *others))),
        pytest.raises(ModelRefused, match=f"needs a key, .*: set {variable} in") as raised,
    ):
        await ask(litellm, ModelSpec(name=name))
    assert raised.value.code == "auth"

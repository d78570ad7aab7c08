import warnings
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from perdure.agent.spec import ModelSpec
from perdure.models.anthropic.client import Anthropic
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import Model, Request
from perdure.models.openai_compatible.client import OpenAICompatible
from perdure.testing.server import serve_scripts
from tests.models.scripts import SCRIPTS


@dataclass(frozen=True)
class Way:
    """A way to a server of models."""

    model: Model
    provider: str = "openai"

    def spec(self, url: str | None, name: str, **fields: Any) -> ModelSpec:
        """Build the spec of a model at a server of which `url` is the OpenAI-compatible API."""
        api_base = None if url is None else self.address(url)
        return ModelSpec(name=f"{self.provider}/{name}", api_base=api_base, **fields)

    def address(self, url: str) -> str:
        """Return the `api_base` of the way's own API."""
        return url.removesuffix("/v1") if self.provider == "anthropic" else url

    @property
    def key_variable(self) -> str:
        return f"{self.provider.upper()}_API_KEY"


@pytest_asyncio.fixture(scope="session")
async def litellm() -> LiteLLM:
    """Share one litellm in the whole run, loaded and used.

    On a busy machine its import takes half a minute, and a first call of each provider a second.
    """
    model = LiteLLM()
    await model.load()
    async with serve_scripts(SCRIPTS) as url:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for provider in ("openai", "hosted_vllm", "anthropic"):
                spec = Way(model, provider).spec(url, "repeating")
                await model.complete(Request(spec, [{"role": "user", "content": "Hi."}]), _ignore)
    return model


def _ignore(_: str) -> None:
    pass


@pytest.fixture(scope="session")
def direct() -> OpenAICompatible:
    """Share the direct way and its connections."""
    return OpenAICompatible()


@pytest.fixture(scope="session")
def anthropic() -> Anthropic:
    """Share the direct way to Anthropic, and its connections."""
    return Anthropic()


@pytest.fixture(params=["anthropic", "litellm"])
def anthropic_way(request: pytest.FixtureRequest) -> Way:
    return Way(request.getfixturevalue(request.param), "anthropic")


@pytest.fixture(params=["direct", "litellm"])
def openai_way(request: pytest.FixtureRequest) -> Way:
    return Way(request.getfixturevalue(request.param))


@pytest.fixture(params=["direct", "litellm", "litellm-hosted_vllm"])
def chat_way(request: pytest.FixtureRequest) -> Way:
    """Try every way to a server of chat completions."""
    return _find_way(request)


@pytest.fixture(
    params=["direct", "litellm", "litellm-hosted_vllm", "anthropic-anthropic", "litellm-anthropic"]
)
def way(request: pytest.FixtureRequest) -> Way:
    """Try every way to a server of models."""
    return _find_way(request)


@pytest.fixture(params=["direct", "anthropic-anthropic"])
def direct_way(request: pytest.FixtureRequest) -> Way:
    """Try the ways without litellm."""
    return _find_way(request)


@pytest.fixture(params=["direct", "anthropic-anthropic", "litellm"])
def tls_way(request: pytest.FixtureRequest) -> Way:
    """Try the ways that see TLS settings change; litellm's client for others is made once."""
    return _find_way(request)


def _find_way(request: pytest.FixtureRequest) -> Way:
    model, _, provider = request.param.partition("-")
    return Way(request.getfixturevalue(model), provider or "openai")


@pytest_asyncio.fixture(scope="session")
async def url() -> AsyncIterator[str]:
    """Serve all scripts, and return the address."""
    async with serve_scripts(SCRIPTS) as url:
        yield url

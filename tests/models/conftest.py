from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from perdure.agent.spec import ModelSpec
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import Model
from perdure.models.openai_compatible.client import OpenAICompatible
from perdure.testing.server import serve_scripts
from tests.models.scripts import SCRIPTS


@dataclass(frozen=True)
class Way:
    """A way to an OpenAI-compatible server."""

    model: Model
    provider: str = "openai"

    def spec(self, url: str | None, name: str, **fields: Any) -> ModelSpec:
        return ModelSpec(name=f"{self.provider}/{name}", api_base=url, **fields)


@pytest.fixture(scope="session")
def litellm() -> LiteLLM:
    """Share one litellm in the whole run: it takes seconds to load."""
    return LiteLLM()


@pytest.fixture(scope="session")
def direct() -> OpenAICompatible:
    """Share the direct way and its connections."""
    return OpenAICompatible()


@pytest.fixture(params=["direct", "litellm"])
def openai_way(request: pytest.FixtureRequest) -> Way:
    return Way(request.getfixturevalue(request.param))


@pytest.fixture(params=["direct", "litellm", "litellm-vllm"])
def way(request: pytest.FixtureRequest) -> Way:
    name, _, variant = request.param.partition("-")
    return Way(request.getfixturevalue(name), f"hosted_{variant}" if variant else "openai")


@pytest_asyncio.fixture(scope="session")
async def url() -> AsyncIterator[str]:
    """Serve all scripts, and return the address."""
    async with serve_scripts(SCRIPTS) as url:
        yield url

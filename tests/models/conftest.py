import pytest

from perdure.models.litellm.client import LiteLLM


@pytest.fixture(scope="session")
def litellm() -> LiteLLM:
    """Share one litellm in the whole run: it takes seconds to load."""
    return LiteLLM()

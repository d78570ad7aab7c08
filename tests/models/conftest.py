import pytest

from models.litellm import LiteLLM


@pytest.fixture(scope="session")
def litellm() -> LiteLLM:
    """One for the whole run: it takes seconds to load."""
    return LiteLLM()

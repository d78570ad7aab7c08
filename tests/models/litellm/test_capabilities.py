"""Capabilities come from the spec, then from litellm's list, then from safe defaults."""

from typing import Any

import pytest

from perdure.agent.spec import ModelSpec
from perdure.models.capabilities import Capabilities
from perdure.models.litellm.client import LiteLLM
from perdure.models.litellm.route import find_route

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

CLAUDE = {"cache_marks": True, "reasoning": "blocks", "images_in_results": True, "vision": True}


@pytest.fixture(scope="module")
async def library(litellm: LiteLLM) -> Any:
    return await litellm.load()


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("anthropic/claude-sonnet-4-5", {**CLAUDE, "effort": True}),
        ("anthropic/claude-of-tomorrow", {**CLAUDE, "vision": False}),
        ("vertex_ai/claude-sonnet-4@20250514", {**CLAUDE, "effort": True}),
        ("openrouter/anthropic/claude-sonnet-4.5", {"cache_marks": True, "reasoning": ""}),
        ("openai/claude-by-a-gateway", {"cache_marks": False, "reasoning": ""}),
        ("openai/gemini-by-a-gateway", {"signed_ids": False, "images_in_results": False}),
        ("gemini/gemini-2.5-pro", {"signed_ids": True, "cache_marks": False, "reasoning": ""}),
        ("openai/gpt-4o", {"vision": True, "effort": False, "reasoning": ""}),
        ("openai/gpt-5", {"vision": True, "effort": True, "stop": False}),
        ("openai/nobody-knows", {"native_tools": True, "vision": False, "effort": True}),
        ("deepseek/deepseek-chat", {"native_tools": True, "reasoning": "text"}),
        ("deepseek/deepseek-reasoner", {"native_tools": False}),
        ("perplexity/sonar", {"native_tools": False, "stop": False}),
        ("hosted_vllm/MiniMaxAI/MiniMax-M2", {"reasoning": "text", "native_tools": True}),
    ],
)
async def test_capabilities_come_from_litellms_list(
    library: Any, name: str, features: dict[str, Any]
) -> None:
    capabilities = find_route(library, ModelSpec(name=name)).capabilities
    assert {each: getattr(capabilities, each) for each in features} == features


@pytest.mark.parametrize("support", [True, False])
async def test_the_spec_overrides_litellms_list(library: Any, support: bool) -> None:
    fields = {"native_tool_calling": support, "vision": support, "prompt_caching": support}
    for name in ("anthropic/claude-sonnet-4-5", "perplexity/sonar"):
        capabilities = find_route(library, ModelSpec(name=name, **fields)).capabilities
        assert (capabilities.native_tools, capabilities.vision, capabilities.cache_marks) == (
            support,
        ) * 3


def test_unknown_models_have_the_safest_capabilities() -> None:
    assert Capabilities() == Capabilities(
        native_tools=True, vision=False, reasoning="", effort=False
    )

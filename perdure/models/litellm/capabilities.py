"""Capabilities of models: from the model's spec, or else from litellm's list of models."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from perdure.agent.spec import ModelSpec

Json: TypeAlias = Mapping[str, Any]

CLAUDE_HOSTS = frozenset(
    {
        "anthropic",
        "azure_ai",
        "bedrock",
        "bedrock_converse",
        "databricks",
        "litellm_proxy",
        "vertex_ai",
    }
)
"""Providers for which litellm uses Anthropic's protocol with Claude: signed thinking blocks, images
in tool results."""

REASONING_REQUIRED = (
    "deepseek-v3.2",
    "deepseek-v4",
    "glm-4.7",
    "glm-5",
    "kimi-k2-thinking",
    "kimi-k2.5",
    "kimi-k2.6",
    "kimi-k3",
    "mimo-v2",
    "minimax-m2",
)
"""Parts of the names of models that degrade, or fail, without their earlier reasoning."""


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of one model."""

    native_tools: bool = True
    vision: bool = False
    images_in_results: bool = False
    """A tool result may hold images; otherwise they follow in a user message."""
    cache_marks: bool = False
    reasoning: Literal["", "text", "blocks"] = ""
    """The form in which earlier reasoning is sent back: as text, as signed blocks, or not."""
    signed_ids: bool = False
    """The ids of tool calls carry signatures that have to be sent back."""
    effort: bool = False
    stop: bool = True


def find_capabilities(
    spec: ModelSpec, provider: str, listed: Json, parameters: Collection[str]
) -> Capabilities:
    """Find the capabilities of a model; `listed` is its entry in litellm's list, or empty.

    An unlisted model is offered tools, as most can call them, but sent no images: once it refuses
    one, every later request of the conversation would fail.
    """
    name = spec.name.lower()
    claude = provider == "anthropic" or "claude" in name
    anthropic = claude and provider in CLAUDE_HOSTS
    gemini = provider == "gemini" or (provider == "vertex_ai" and "gemini" in name)
    return Capabilities(
        native_tools=_spec_or_listed(spec.native_tool_calling, _supports_tools(listed, parameters)),
        vision=_spec_or_listed(spec.vision, bool(listed.get("supports_vision"))),
        images_in_results=anthropic or gemini,
        cache_marks=_spec_or_listed(
            spec.prompt_caching, _needs_cache_marks(claude, provider, listed)
        ),
        reasoning="blocks" if anthropic else _reasoning(name, provider),
        signed_ids=gemini,
        effort="reasoning_effort" in parameters,
        stop="stop" in parameters,
    )


def _spec_or_listed(by_spec: bool | None, by_list: bool) -> bool:
    return by_list if by_spec is None else by_spec


def _supports_tools(listed: Json, parameters: Collection[str]) -> bool:
    return listed.get("supports_function_calling") is not False and "tools" in parameters


def _needs_cache_marks(claude: bool, provider: str, listed: Json) -> bool:
    """Only Claude's cache needs marks: others detect repeated prefixes, and may reject marks."""
    supported = bool(listed.get("supports_prompt_caching")) if listed else True
    return claude and supported and (provider in CLAUDE_HOSTS or provider == "openrouter")


def _reasoning(name: str, provider: str) -> Literal["", "text"]:
    required = provider == "deepseek" or any(part in name for part in REASONING_REQUIRED)
    return "text" if required else ""

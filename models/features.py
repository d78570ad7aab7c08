"""What a model takes: as its spec says, or litellm's list of models where the spec says nothing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agent.spec import ModelSpec

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
"""Where litellm speaks Anthropic's protocol to Claude: signed thinking, images in tool results."""

REASONING_WANTED = (
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
"""Parts of the names of models that lose their thread, or refuse, without their own reasoning."""


@dataclass(frozen=True)
class Features:
    """What one model takes.

    `reasoning` is how its own is sent back: as the text, as signed blocks, or not at all.
    """

    native_tools: bool = True
    vision: bool = False
    images_in_results: bool = False
    """Whether a tool result may hold images; else they follow as a message of the user."""
    cache_marks: bool = False
    reasoning: Literal["", "text", "blocks"] = ""
    signed_ids: bool = False
    """Whether the ids of tool calls carry signatures that have to come back."""
    effort: bool = False
    stop: bool = True


def features_of(
    spec: ModelSpec, provider: str, known: Json, parameters: Collection[str]
) -> Features:
    """The features of a model; `known` is what litellm's list says, which may be nothing.

    A model of which nothing is known is offered tools, as most can call them, and is shown no
    images: after the first that it cannot take, every request of the conversation would fail.
    """
    name = spec.name.lower()
    claude = provider == "anthropic" or "claude" in name
    anthropic = claude and provider in CLAUDE_HOSTS
    gemini = provider == "gemini" or (provider == "vertex_ai" and "gemini" in name)
    return Features(
        native_tools=_told(spec.native_tool_calling, _takes_tools(known, parameters)),
        vision=_told(spec.vision, bool(known.get("supports_vision"))),
        images_in_results=anthropic or gemini,
        cache_marks=_told(spec.prompt_caching, _takes_marks(claude, provider, known)),
        reasoning="blocks" if anthropic else _reasoning(name, provider),
        signed_ids=gemini,
        effort="reasoning_effort" in parameters,
        stop="stop" in parameters,
    )


def _told(by_spec: bool | None, by_list: bool) -> bool:
    return by_list if by_spec is None else by_spec


def _takes_tools(known: Json, parameters: Collection[str]) -> bool:
    return known.get("supports_function_calling") is not False and "tools" in parameters


def _takes_marks(claude: bool, provider: str, known: Json) -> bool:
    """Only Claude's cache wants marks: others find what repeats themselves, and marks harm."""
    listed = bool(known.get("supports_prompt_caching")) if known else True
    return claude and listed and (provider in CLAUDE_HOSTS or provider == "openrouter")


def _reasoning(name: str, provider: str) -> Literal["", "text"]:
    wanted = provider == "deepseek" or any(part in name for part in REASONING_WANTED)
    return "text" if wanted else ""

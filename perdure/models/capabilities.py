"""What a model can do: from its spec, then from litellm's list, then safe defaults."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from perdure.agent.spec import ModelSpec

Json: TypeAlias = Mapping[str, Any]

DEFAULT_PARAMETERS = ("stop", "tools")
"""The parameters assumed for a provider whose parameters litellm does not list."""

CLAUDE_HOSTS = re.compile(
    r"anthropic|azure_ai|bedrock(_converse)?|databricks|litellm_proxy|vertex_ai"
)
"""Providers for which litellm uses Anthropic's protocol with Claude: signed thinking blocks, images
in tool results."""

REASONING_REQUIRED = re.compile(
    r"deepseek-v(3\.2|4)|glm-(4\.7|5)|kimi-(k2-thinking|k2\.[56]|k3)|mimo-v2|minimax-m2"
)
"""Names of models that degrade, or fail, without their earlier reasoning."""


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
    anthropic = claude and CLAUDE_HOSTS.fullmatch(provider) is not None
    gemini = provider == "gemini" or (provider == "vertex_ai" and "gemini" in name)
    tools = listed.get("supports_function_calling") is not False and "tools" in parameters
    # Only Claude's cache needs marks: others detect repeated prefixes, and may reject marks.
    marks = anthropic or (claude and provider == "openrouter")
    caches = bool(listed.get("supports_prompt_caching", not listed))
    needs_text = provider == "deepseek" or REASONING_REQUIRED.search(name)
    text: Literal["", "text"] = "text" if needs_text else ""
    return Capabilities(
        native_tools=_prefer(spec.native_tool_calling, tools),
        vision=_prefer(spec.vision, bool(listed.get("supports_vision"))),
        images_in_results=anthropic or gemini,
        cache_marks=_prefer(spec.prompt_caching, marks and caches),
        reasoning="blocks" if anthropic else text,
        signed_ids=gemini,
        effort="reasoning_effort" in parameters,
        stop="stop" in parameters,
    )


def _prefer(by_spec: bool | None, by_list: bool) -> bool:
    return by_list if by_spec is None else by_spec

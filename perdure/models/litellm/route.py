"""Routes of models through litellm: provider, API key and capabilities."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from perdure.agent.spec import ModelSpec
from perdure.models.keys import has_own_server
from perdure.models.model import KEY_HEADER, NUMBER_HEADER, PURPOSE_HEADER, ModelRefused, Request

Json: TypeAlias = Mapping[str, Any]

KEY_VARIABLES = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "bedrock_converse": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "sagemaker": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "together_ai": "TOGETHERAI_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
}
"""Key variables of providers whose variable is not their name and `_API_KEY`."""

DEFAULT_PARAMETERS = ("stop", "tools")
"""The parameters assumed for a provider whose parameters litellm does not list."""

PLACEHOLDER_KEY = "no-key"
"""The key sent to a server without keys: litellm and openai refuse an empty one."""

CLAUDE_HOSTS = re.compile(
    r"anthropic|azure_ai|bedrock(_converse)?|databricks|litellm_proxy|vertex_ai"
)
"""Providers for which litellm uses Anthropic's protocol with Claude: signed thinking blocks, images
in tool results."""

REASONING_REQUIRED = re.compile(
    r"deepseek-v(3\.2|4)|glm-(4\.7|5)|kimi-(k2-thinking|k2\.[56]|k3)|mimo-v2|minimax-m2"
)
"""Names of models that degrade, or fail, without their earlier reasoning."""


def find_key_variables(env: Mapping[str, str]) -> list[str]:
    """List the names of the variables that hold keys of models.

    The keys of AWS are not among them: in a worker they are those of its store.
    """
    known = {name for name in KEY_VARIABLES.values() if not name.startswith("AWS_")}
    return sorted(
        name for name in env if env[name] and (name.endswith("_API_KEY") or name in known)
    )


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


@dataclass(frozen=True)
class Route:
    """The route of a model: litellm's facts about it."""

    key_variable: str = ""
    api_key: str | None = None
    direct: bool = False
    """litellm sends plain messages unchanged to an OpenAI-compatible server."""
    priced: bool = False
    """litellm's price list has the model."""
    capabilities: Capabilities = Capabilities()
    max_output_tokens: int | None = None


def find_route(litellm: Any, spec: ModelSpec) -> Route:
    """Find the route of a model.

    Raises ModelRefused for an invalid `api_base`, and litellm's error for an unknown provider.
    """
    if spec.api_base is not None and not spec.api_base.startswith(("http://", "https://")):
        address = f"The api_base {spec.api_base!r} of {spec.name}"
        raise ModelRefused("bad_request", f"{address} is no address: begin it with http://.")
    model, provider, _, _ = litellm.get_llm_provider(model=spec.name, api_base=spec.api_base)
    variable = KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY")
    is_own = spec.api_base or has_own_server(provider, os.environ)
    keyless = is_own and variable.endswith("_API_KEY") and not os.environ.get(variable)
    listed = find_listed(litellm, model, provider, spec.api_base)
    parameters = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    return Route(
        key_variable=variable,
        api_key=PLACEHOLDER_KEY if keyless else None,
        direct=provider == "openai" and _is_direct(listed, spec.api_base),
        priced=bool(listed),
        capabilities=find_capabilities(spec, provider, listed, parameters or DEFAULT_PARAMETERS),
        max_output_tokens=listed.get("max_output_tokens"),
    )


def find_listed(litellm: Any, model: str, provider: str, api_base: str | None) -> Json:
    """Find the model's entry in litellm's price list; empty for most self-hosted models."""
    try:
        listed: Json = litellm.get_model_info(model, provider, api_base)
    except Exception:  # litellm raises a bare Exception for a model it does not list
        return {}
    return listed


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


def _is_direct(listed: Json, api_base: str | None) -> bool:
    """Tell whether litellm sends a request to an OpenAI-compatible server unchanged.

    It rewrites requests to OpenAI's reasoning models: other roles, or the Responses API.
    """
    if listed:
        return listed.get("mode") == "chat" and not listed.get("supports_reasoning")
    return api_base is not None and "openai.com" not in api_base


def perdure_headers(request: Request) -> dict[str, str]:
    """Return the headers for a server of one's own; providers at their own addresses get none."""
    if request.model.api_base is None:
        return {}
    number = "" if request.number is None else str(request.number)
    headers = {PURPOSE_HEADER: request.purpose, NUMBER_HEADER: number, KEY_HEADER: request.key}
    return {name: value for name, value in headers.items() if value}


def without_nulls(message: Json) -> Json:
    """Drop the null fields of a message; one without any is not copied."""
    if None not in message.values():
        return message
    return {name: value for name, value in message.items() if value is not None}


def is_sent_unchanged(messages: Iterable[Json]) -> bool:
    """Tell whether litellm sends the messages unchanged: only texts, no cache marks, no nulls."""
    return all(
        isinstance(message, dict)
        and isinstance(message.get("content", ""), str)
        and "cache_control" not in message
        and None not in message.values()
        and bool(message.get("role"))
        for message in messages
    )


def tool_call_ids(messages: Sequence[Json]) -> set[str]:
    return {str(call.get("id")) for message in messages for call in message.get("tool_calls") or ()}

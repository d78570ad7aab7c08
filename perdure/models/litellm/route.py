"""Routes of models through litellm: provider, API key and capabilities."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.agent.spec import ModelSpec
from perdure.models.litellm.capabilities import Capabilities, find_capabilities
from perdure.models.model import KEY_HEADER, NUMBER_HEADER, PURPOSE_HEADER, ModelRefused, Request

KEY_VARIABLES = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "bedrock_converse": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "sagemaker": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "together_ai": "TOGETHERAI_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
}
"""Key variables of providers whose variable is not their name and `_API_KEY`."""

DEFAULT_CAPABILITIES = Capabilities()

DEFAULT_PARAMETERS = ("stop", "tools")
"""The parameters assumed for a provider whose parameters litellm does not list."""

PLACEHOLDER_KEY = "no-key"
"""The key sent to a server without keys: litellm and openai refuse an empty one."""


@dataclass(frozen=True)
class Route:
    """The route of a model: litellm's facts about it."""

    key_variable: str = ""
    api_key: str | None = None
    direct: bool = False
    """litellm sends plain messages unchanged to an OpenAI-compatible server."""
    priced: bool = False
    """litellm's price list has the model."""
    capabilities: Capabilities = DEFAULT_CAPABILITIES
    max_output_tokens: int | None = None


def find_route(litellm: Any, spec: ModelSpec) -> Route:
    """Find the route of a model.

    Raises ModelRefused for an invalid `api_base`, and litellm's error for an unknown provider.
    """
    if spec.api_base is not None and not spec.api_base.startswith(("http://", "https://")):
        detail = (
            f"The api_base {spec.api_base!r} of {spec.name} is no address: begin it with http://."
        )
        raise ModelRefused("bad_request", detail)
    model, provider, _, _ = litellm.get_llm_provider(model=spec.name, api_base=spec.api_base)
    variable = KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY")
    keyless = spec.api_base and variable.endswith("_API_KEY") and not os.environ.get(variable)
    listed = _model_info(litellm, model, provider, spec.api_base)
    parameters = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    return Route(
        key_variable=variable,
        api_key=PLACEHOLDER_KEY if keyless else None,
        direct=provider == "openai" and _is_direct(listed, spec.api_base),
        priced=bool(listed),
        capabilities=find_capabilities(spec, provider, listed, parameters or DEFAULT_PARAMETERS),
        max_output_tokens=listed.get("max_output_tokens"),
    )


def _model_info(litellm: Any, model: str, provider: str, api_base: str | None) -> Mapping[str, Any]:
    """Return the model's entry in litellm's price list; empty for most self-hosted models."""
    try:
        listed: Mapping[str, Any] = litellm.get_model_info(
            model, custom_llm_provider=provider, api_base=api_base
        )
    except Exception:  # litellm raises a bare Exception for a model it does not list
        return {}
    return listed


def _is_direct(listed: Mapping[str, Any], api_base: str | None) -> bool:
    """Tell whether litellm sends a request to an OpenAI-compatible server unchanged.

    It rewrites requests to OpenAI's reasoning models: other roles, or the Responses API.
    """
    if listed:
        return listed.get("mode") == "chat" and not listed.get("supports_reasoning")
    return api_base is not None and "openai.com" not in api_base


def perdure_headers(request: Request) -> dict[str, str]:
    """Return the headers for a self-hosted server, gateway or scripted server.

    Providers at their own addresses get none.
    """
    if request.model.api_base is None:
        return {}
    number = "" if request.number is None else str(request.number)
    headers = {
        PURPOSE_HEADER: request.purpose,
        NUMBER_HEADER: number,
        KEY_HEADER: request.key or "",
    }
    return {name: value for name, value in headers.items() if value}


def without_nulls(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop the null fields of a message; one without any is not copied."""
    if None not in message.values():
        return message
    return {name: value for name, value in message.items() if value is not None}


def is_sent_unchanged(messages: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether litellm sends the messages unchanged: only texts, no cache marks, no nulls."""
    return all(
        isinstance(message, dict)
        and isinstance(message.get("content", ""), str)
        and "cache_control" not in message
        and None not in message.values()
        and bool(message.get("role"))
        for message in messages
    )


def tool_call_ids(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Collect the ids of all tool calls in the messages."""
    return {str(call.get("id")) for message in messages for call in message.get("tool_calls") or ()}

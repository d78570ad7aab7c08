"""How a model is reached through litellm: its provider, its key, and the shortest way."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.spec import ModelSpec
from models.features import Features, features_of
from models.model import KEY_HEADER, NUMBER_HEADER, PURPOSE_HEADER, ModelRefused, Request

KEY_VARIABLES = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "bedrock_converse": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "sagemaker": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "together_ai": "TOGETHERAI_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
}
"""Where it is not the provider's name and `_API_KEY`."""

NOTHING_SPECIAL = Features()

UNLISTED = ("stop", "tools")
"""What a provider is taken to support whose parameters litellm does not list."""

NO_KEY = "no-key"
"""What a server without keys is given: litellm and openai refuse an empty one."""


@dataclass(frozen=True)
class Route:
    """What litellm knows of a model.

    `direct` says that litellm hands plain messages on to the server as they are; `priced`, that
    its price list has the model. `most_output` is how many tokens an answer may have.
    """

    key_variable: str = ""
    api_key: str | None = None
    direct: bool = False
    priced: bool = False
    features: Features = NOTHING_SPECIAL
    most_output: int | None = None


def route_of(litellm: Any, spec: ModelSpec) -> Route:
    """How to reach the model.

    Raises ModelRefused where its address is none, and what litellm raises for no known provider.
    """
    if spec.api_base is not None and not spec.api_base.startswith(("http://", "https://")):
        what = (
            f"The api_base {spec.api_base!r} of {spec.name} is no address: begin it with http://."
        )
        raise ModelRefused("bad_request", what)
    model, provider, _, _ = litellm.get_llm_provider(model=spec.name, api_base=spec.api_base)
    variable = KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY")
    keyless = spec.api_base and variable.endswith("_API_KEY") and not os.environ.get(variable)
    known = _model_info(litellm, model, provider, spec.api_base)
    parameters = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    return Route(
        key_variable=variable,
        api_key=NO_KEY if keyless else None,
        direct=provider == "openai" and _is_direct(known, spec.api_base),
        priced=bool(known),
        features=features_of(spec, provider, known, parameters or UNLISTED),
        most_output=known.get("max_output_tokens"),
    )


def _model_info(litellm: Any, model: str, provider: str, api_base: str | None) -> Mapping[str, Any]:
    """What litellm's price list says of a model: nothing, of most that somebody runs at home."""
    try:
        known: Mapping[str, Any] = litellm.get_model_info(
            model, custom_llm_provider=provider, api_base=api_base
        )
    except Exception:  # litellm raises a bare Exception for a model it does not list
        return {}
    return known


def _is_direct(known: Mapping[str, Any], api_base: str | None) -> bool:
    """Whether litellm sends a request to an OpenAI-compatible server as it was given.

    It rewrites those to OpenAI's reasoning models: other roles, or the Responses API instead.
    """
    if known:
        return known.get("mode") == "chat" and not known.get("supports_reasoning")
    return api_base is not None and "openai.com" not in api_base


def headers_of(request: Request) -> dict[str, str]:
    """What a server of one's own, a gateway or the scripted one, is told beside the request.

    A provider's own address is never told.
    """
    if request.model.api_base is None:
        return {}
    number = "" if request.number is None else str(request.number)
    told = {
        PURPOSE_HEADER: request.purpose,
        NUMBER_HEADER: number,
        KEY_HEADER: request.key or "",
    }
    return {name: value for name, value in told.items() if value}


def travels_as_it_is(messages: Iterable[Mapping[str, Any]]) -> bool:
    """Whether litellm would leave the messages as they are: texts, with no marks and no gaps."""
    return all(
        isinstance(message, dict)
        and isinstance(message.get("content", ""), str)
        and "cache_control" not in message
        and None not in message.values()
        and bool(message.get("role"))
        for message in messages
    )


def call_ids(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """The ids of all tool calls in the messages."""
    return {str(call.get("id")) for message in messages for call in message.get("tool_calls") or ()}

"""Routes of models through litellm: provider, API key and capabilities."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perdure.agent.spec import ModelSpec
from perdure.models.capabilities import DEFAULT_PARAMETERS, Capabilities, find_capabilities
from perdure.models.keys import KEY_VARIABLES as KEYS
from perdure.models.keys import has_own_server
from perdure.models.own_server import PLACEHOLDER_KEY, check_address

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


def find_key_variables(env: Mapping[str, str]) -> list[str]:
    """List the names of the variables that hold keys of models.

    The keys of AWS are not among them: in a worker they are those of its store.
    """
    known = {name for name in KEY_VARIABLES.values() if not name.startswith("AWS_")}
    return sorted(
        name for name in env if env[name] and (name.endswith("_API_KEY") or name in known)
    )


@dataclass(frozen=True)
class Route:
    """The route of a model: litellm's facts about it."""

    key_variable: str = ""
    api_key: str | None = None
    priced: bool = False
    """litellm's price list has the model."""
    capabilities: Capabilities = field(default_factory=Capabilities)
    max_output_tokens: int | None = None


def find_route(litellm: Any, spec: ModelSpec) -> Route:
    """Find the route of a model.

    Raises ModelRefused for an invalid `api_base`, and litellm's error for an unknown provider.
    """
    check_address(spec)
    model, provider, _, _ = litellm.get_llm_provider(model=spec.name, api_base=spec.api_base)
    variable = KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY")
    is_own = spec.api_base or has_own_server(provider, os.environ)
    has_key = any(os.environ.get(name) for name in (variable, *KEYS.get(provider, ())))
    keyless = is_own and variable.endswith("_API_KEY") and not has_key
    listed = find_listed(litellm, model, provider, spec.api_base)
    parameters = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    return Route(
        key_variable=variable,
        api_key=PLACEHOLDER_KEY if keyless else None,
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

"""Which of Anthropic's models are called directly: those of whose requests litellm's are known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perdure.agent.spec import ModelSpec
from perdure.models import price_table
from perdure.models.capabilities import DEFAULT_PARAMETERS, find_capabilities
from perdure.models.direct.route import LITELLM_VARIABLES, Json, Route, is_plain_address, is_set
from perdure.models.own_server import check_address

PROVIDER = "anthropic"
ADDRESS = "https://api.anthropic.com"
ADDRESS_VARIABLES = ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL")
"""The variables with another address than Anthropic's, the first before the second."""

KEY_VARIABLE = "ANTHROPIC_API_KEY"
TOKEN_VARIABLE = "ANTHROPIC_AUTH_TOKEN"
OAUTH_PREFIX = "sk-ant-oat"
"""What a token of a person's account begins with; litellm sends it with headers of its own."""

ANTHROPIC_VARIABLES = (
    "ANTHROPIC_FEDERATION_RULE_ID",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN_FILE",
    "DEFAULT_ANTHROPIC_CHAT_MAX_TOKENS",
    "DEFAULT_MAX_TOKENS",
    "DEFAULT_REASONING_EFFORT_HIGH_THINKING_BUDGET",
    "DEFAULT_REASONING_EFFORT_LOW_THINKING_BUDGET",
    "DEFAULT_REASONING_EFFORT_MEDIUM_THINKING_BUDGET",
    "DEFAULT_REASONING_EFFORT_MINIMAL_THINKING_BUDGET",
    "LITELLM_ANTHROPIC_DISABLE_URL_SUFFIX",
    "LITELLM_ENABLE_ANTHROPIC_PROMPT_CACHING",
    "LITELLM_MODIFY_PARAMS",
)
"""Variables that change what litellm sends to Anthropic: where one is set, it is called."""

DEFAULT_MAX_TOKENS = 4096
"""Tokens of an answer of a model that is not listed; Anthropic requires a limit."""

UNLISTED = re.compile(r"(?!claude-(2|instant|3-7))[A-Za-z0-9._-]+")
"""Names of models that litellm does not know, and has no rules for, at a server of one's own."""

COLD = re.compile(r"fable|opus[-_]4[-_.][78]")
"""Names of models without a temperature, besides those of which litellm's list says so."""

KNOWN_COST = re.compile(
    r"((input|output)_cost_per_token|cache_read_input_token_cost"
    r"|cache_creation_input_token_cost(_above_1hr)?)(_above_\d+k_tokens)?"
    r"|.*_batches|search_context_cost_per_query"
)
"""The costs of a list entry that `list_cost` knows, and those of what is never requested."""

LONG_PROMPT_COST = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


@dataclass(frozen=True)
class AnthropicRoute(Route):
    """The route to Anthropic, or to a server of one's own with its API."""

    max_tokens: int
    """The limit of an answer in tokens, if the model's spec has none."""
    is_adaptive: bool
    """The model chooses its budget for thinking itself."""


def find_route(spec: ModelSpec, variables: Mapping[str, str]) -> AnthropicRoute | None:
    """Find the direct route of a model; None if litellm has to be called.

    Raises ModelRefused for an invalid `api_base`.
    """
    model = _model_name(spec)
    if model is None:
        return None
    check_address(spec)
    if is_set(variables, *LITELLM_VARIABLES, *ANTHROPIC_VARIABLES) or _has_oauth(variables):
        return None
    own = spec.api_base or next(filter(None, map(variables.get, ADDRESS_VARIABLES)), None)
    listed = price_table.load_prices().get(model, {})
    is_known = _is_plain(listed, model) if listed else bool(own) and _is_unlisted(model)
    is_hot = spec.temperature not in (None, 1)
    is_cold = listed.get("supports_sampling_params") is False or COLD.search(model.lower())
    if not is_known or (is_hot and is_cold) or not is_plain_address(own or ADDRESS):
        return None
    parameters = {*DEFAULT_PARAMETERS} | ({"reasoning_effort"} if _reasons(listed) else set())
    return AnthropicRoute(
        url=_find_url(own or ADDRESS),
        model=model,
        listed=listed,
        capabilities=find_capabilities(spec, PROVIDER, listed, parameters),
        max_tokens=listed.get("max_output_tokens") or DEFAULT_MAX_TOKENS,
        is_adaptive=bool(listed.get("supports_adaptive_thinking")),
    )


def list_cost(listed: Json, tokens: Mapping[str, Any]) -> float:
    """Return the cost in US dollars by litellm's list, as litellm counts it.

    `tokens` are the counts of an `AnswerReader`.
    """
    prompt, details = tokens["prompt_tokens"], tokens["prompt_tokens_details"]
    read, written = details["cached_tokens"], details["cache_write_tokens"]
    rate = _find_rates(listed, prompt)
    by_age = tokens.get("cache_creation") or {"ephemeral_5m_input_tokens": written}
    cost = (
        max(prompt - read - written, 0) * rate["input_cost_per_token"]
        + read * rate["cache_read_input_token_cost"]
        + (by_age.get("ephemeral_5m_input_tokens") or 0) * rate["cache_creation_input_token_cost"]
        + (by_age.get("ephemeral_1h_input_tokens") or 0)
        * rate["cache_creation_input_token_cost_above_1hr"]
        + tokens["completion_tokens"] * rate["output_cost_per_token"]
    )
    factors = listed.get("provider_specific_entry") or {}
    speed = factors.get("fast", 1) if tokens.get("speed") == "fast" else 1
    return float(cost * speed * factors.get(str(tokens.get("inference_geo")).lower(), 1))


def _find_rates(listed: Json, prompt_tokens: int) -> dict[str, float]:
    """Find the prices of tokens, which for some models are higher behind a long prompt."""
    limits = map(LONG_PROMPT_COST.fullmatch, listed)
    exceeded = [int(match[1]) for match in limits if match and prompt_tokens > int(match[1]) * 1000]
    suffix = f"_above_{max(exceeded)}k_tokens" if exceeded else ""
    names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    written = "cache_creation_input_token_cost"
    return {
        name: listed.get(f"{name}{suffix}", listed.get(name, 0))
        for name in (*names, written, f"{written}_above_1hr")
    }


def _model_name(spec: ModelSpec) -> str | None:
    """Return Anthropic's name of the model, or None for other providers'.

    A name without a provider has to be listed as Anthropic's.
    """
    provider, slash, model = spec.name.partition("/")
    if slash:
        return model if provider == PROVIDER else None
    entry = price_table.load_prices().get(spec.name, {})
    return spec.name if entry.get("litellm_provider") == PROVIDER else None


def _has_oauth(variables: Mapping[str, str]) -> bool:
    return variables.get(KEY_VARIABLE, "").strip().startswith(OAUTH_PREFIX)


def _is_plain(listed: Json, model: str) -> bool:
    """Tell whether it is Anthropic's model for conversations, at known prices."""
    costs = [name for name in listed if re.search("cost|pric|uplift", name)]
    is_own = price_table.find_entry(PROVIDER, model) is listed
    is_chat = is_own and listed.get("mode") == "chat"
    return is_chat and all(map(KNOWN_COST.fullmatch, costs))


def _is_unlisted(model: str) -> bool:
    """Tell whether litellm knows nothing of a model."""
    is_listed = price_table.is_listed_in_any_case(PROVIDER, model)
    return bool(UNLISTED.fullmatch(model)) and not (
        is_listed or price_table.has_general_rule(PROVIDER, model)
    )


def _reasons(listed: Json) -> bool:
    return bool(listed.get("supports_reasoning") or listed.get("supports_adaptive_thinking"))


def _find_url(address: str) -> str:
    return address if address.endswith("/v1/messages") else f"{address}/v1/messages"

"""Which models are called directly: those whose requests litellm would send as they are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from perdure.agent.spec import ModelSpec
from perdure.events.usage import Usage
from perdure.models import price_table
from perdure.models.capabilities import DEFAULT_PARAMETERS, find_capabilities
from perdure.models.direct.route import LITELLM_VARIABLES, Json, Route, is_plain_address, is_set
from perdure.models.own_server import check_address

PROVIDER = "openai"
CATALOGUE = (PROVIDER, "text-completion-openai")
"""The providers of models that litellm takes for OpenAI's own: these ones do not reason."""

OPENAI_ADDRESS = "https://api.openai.com/v1"
ADDRESS_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""The variables with another address than OpenAI's, the first before the second."""

REWRITTEN = re.compile(r"gpt-[5-9]|gpt-\d\d|(^|/)o\d|audio|search|^responses/|^ft:")
"""Names of OpenAI's models whose requests litellm rewrites: other parameters, another API."""

SIMPLE_COST = re.compile(
    r"(input|output)_cost_per_token|cache_(read|creation)_input_token_cost"
    r"|.*_(batches|priority|flex)|search_context_cost_per_query"
)
"""The costs of a list entry that `list_cost` knows, and those of what is never requested."""


@dataclass(frozen=True)
class OpenAIRoute(Route):
    """The route to an OpenAI-compatible server."""

    is_openai: bool
    """The server is OpenAI's own, which is stricter than others."""


def find_route(spec: ModelSpec, variables: Mapping[str, str]) -> OpenAIRoute | None:
    """Find the direct route of a model; None if litellm has to be called.

    Raises ModelRefused for an invalid `api_base`.
    """
    check_address(spec)
    model = _model_name(spec)
    if model is None or is_set(variables, *LITELLM_VARIABLES):
        return None
    own = spec.api_base or next(filter(None, map(variables.get, ADDRESS_VARIABLES)), None)
    if not is_plain_address(own or OPENAI_ADDRESS):
        return None
    address = urlsplit(own or OPENAI_ADDRESS)
    is_openai = f".{address.hostname}".endswith(".openai.com")
    listed = price_table.find_entry(PROVIDER, model)
    if REWRITTEN.search(model) or not (_is_plain(listed) if listed else not is_openai):
        return None
    if not listed and price_table.has_general_rule(PROVIDER, model):
        return None
    parameters = set(DEFAULT_PARAMETERS)
    if price_table.load_prices().get(model, {}).get("litellm_provider") not in CATALOGUE:
        parameters.add("reasoning_effort")
    capabilities = find_capabilities(spec, PROVIDER, listed, parameters)
    if is_openai and capabilities.cache_marks:
        return None  # litellm takes the marks off again
    url = f"{address.geturl().rstrip('/')}/chat/completions"
    return OpenAIRoute(url, model, listed, capabilities, is_openai)


def list_cost(listed: Json, usage: Usage) -> float:
    """Return the cost in US dollars by litellm's list, as litellm counts it."""
    prompt = listed.get("input_cost_per_token", 0)
    completion = listed.get("output_cost_per_token", 0)
    read = listed.get("cache_read_input_token_cost", prompt)
    written = listed.get("cache_creation_input_token_cost", prompt)
    cached = usage.cached_tokens * read + usage.cache_write_tokens * written
    rest = max(usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens, 0)
    # Where the counts contradict each other, the larger one is paid.
    answer = max(usage.completion_tokens, usage.reasoning_tokens)
    return float(rest * prompt + cached + answer * completion)


def _model_name(spec: ModelSpec) -> str | None:
    """Return OpenAI's name of the model, or None for other providers'.

    A name without a provider has to be listed as OpenAI's, and has no address of its own.
    """
    provider, slash, model = spec.name.partition("/")
    if slash:
        return model if provider == PROVIDER else None
    entry = price_table.load_prices().get(spec.name, {})
    is_listed = entry.get("litellm_provider") == PROVIDER and spec.api_base is None
    return spec.name if is_listed else None


def _is_plain(listed: Json) -> bool:
    """Tell whether it is a model for conversations that does not reason, at simple prices."""
    costs = [name for name in listed if re.search("cost|pric|uplift", name)]
    plain = listed.get("mode") == "chat" and not listed.get("supports_reasoning")
    return plain and all(map(SIMPLE_COST.fullmatch, costs))

"""The check of a model's name before a conversation is begun with it."""

import re
from collections.abc import Collection

from perdure.agent.spec import ModelSpec
from perdure.errors import Invalid
from perdure.models import price_table
from perdure.models.keys import has_own_server
from perdure.models.litellm.client import has_listed_price
from perdure.models.own_server import is_address
from perdure.models.router import LOADERS, MODEL_GROUP
from perdure.references import find_entry_points

OPEN_PROVIDERS = re.compile(
    r"azure.*|bedrock.*|sagemaker.*|vertex_ai.*|ollama.*|huggingface|openrouter|.*vllm|lm_studio"
    r"|litellm_proxy|openai_like|custom.*|llamafile|xinference|github.*|databricks|watsonx.*"
)
"""Providers that serve more models than any list has, under names that their users choose."""

FREE_PROVIDERS = ("ollama", "ollama_chat")
"""Providers whose models cost nothing, as litellm counts."""

DIGITS = re.compile(r"\d+")


def check_name(model: ModelSpec, variables: Collection[str] = ()) -> str:
    """Check that the model may exist; return a remark where that is not sure, else "".

    `variables` are the names of those that are set where the worker runs. Raises Invalid.
    """
    name, providers = model.name, price_table.load_providers()
    if not providers or _has_loader(name):
        return ""
    if model.api_base is not None and not is_address(model.api_base):
        hint = "Write it like http://127.0.0.1:8000/v1."
        raise Invalid(f"The api_base {model.api_base!r} of {name} is no address.", hint)
    if name.partition(":")[2].startswith("//"):
        raise Invalid(f"{name} is no model.", f"Write --model openai/NAME --api-base {name}.")
    provider, slash, _ = name.partition("/")
    if not slash:
        return _check_bare_name(model)
    if provider not in providers:
        meant = price_table.suggest(provider, sorted(providers))
        names = [f"{other}/{name.partition('/')[2]}" for other in meant]
        raise Invalid(f"There is no provider {provider!r} for the model {name}.", _hint(names))
    is_own = model.api_base or has_own_server(provider, variables)
    if is_own or model.max_input_tokens or OPEN_PROVIDERS.fullmatch(provider):
        return ""
    return "" if price_table.is_listed(name) or "ft:" in name else _check_unlisted(name, provider)


def has_price(model: ModelSpec) -> bool:
    """Tell whether the costs of the model are known: by its own fields, or by litellm's list.

    Models with loaders count their costs themselves.
    """
    if model.input_price is not None or model.output_price is not None:
        return True
    provider, slash, _ = model.name.partition("/")
    is_known = provider in FREE_PROVIDERS or price_table.is_listed(model.name)
    # litellm finds names in more forms than it lists, such as those with a region.
    return _has_loader(model.name) or is_known or (bool(slash) and has_listed_price(model.name))


def _has_loader(name: str) -> bool:
    prefix, colon, _ = name.partition(":")
    return bool(colon) and (prefix in LOADERS or prefix in find_entry_points(MODEL_GROUP))


def _check_bare_name(model: ModelSpec) -> str:
    """Check a name without a provider: litellm must list it."""
    if price_table.is_listed(model.name):
        return ""
    if model.api_base:
        raise Invalid(
            f"The model {model.name} has no provider.",
            f"Write openai/{model.name} if {model.api_base} speaks OpenAI's protocol.",
        )
    names = price_table.suggest(model.name, price_table.list_chat_models())
    raise Invalid(f"There is no model {model.name}.", _hint(names))


def _check_unlisted(name: str, provider: str) -> str:
    """Refuse a name that differs from a listed one in letters; other numbers are a new version."""
    names = price_table.suggest(name, price_table.list_chat_models(provider))
    typos = [known for known in names if DIGITS.findall(known) == DIGITS.findall(name)]
    if typos:
        raise Invalid(
            f"There is no model {name}.",
            f"{_hint(typos)} If it is new, say how many tokens it reads: "
            "-c model.max_input_tokens=N.",
        )
    nearest = f" The nearest is {names[0]}." if names else ""
    return f"litellm does not list {name}: its price and limits are not known.{nearest}"


def _hint(names: list[str]) -> str:
    if names:
        return f"Did you mean {' or '.join(names)}?"
    return "Write PROVIDER/MODEL, such as openai/gpt-5 or anthropic/claude-sonnet-4-5."

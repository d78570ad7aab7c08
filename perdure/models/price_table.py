"""The models that litellm lists, read from its files: importing litellm takes seconds."""

import importlib.util
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from perdure.agent.model_spec import ModelSpec

PRICES = Path("model_prices_and_context_window_backup.json")
ENDPOINTS = Path("provider_endpoints_support_backup.json")
PROVIDERS = Path("types", "utils.py")

PROVIDER_MEMBER = re.compile(r'^    [A-Z0-9_]+ = "([a-z0-9_-]+)"', re.MULTILINE)
"""A member of litellm's enumeration of providers."""

DATE_SUFFIX = re.compile(r"-\d{4}-\d{2}-\d{2}$")
"""The date of a version at the end of a model's name."""

CHAT_MODES = ("chat", "responses", "completion")

MIN_SIMILARITY = 0.8
"""The similarity, of 1 at most, from which one name may be another one mistyped."""

MAX_SUGGESTIONS = 3


@cache
def load_prices() -> Mapping[str, Mapping[str, Any]]:
    """Load litellm's entry of each model, by the names that it goes by."""
    content = _read(PRICES)
    # 3 MB: pydantic's parser takes half the time of json's.
    entries: dict[str, dict[str, Any]] = from_json(content) if content else {}
    return {name: entry for name, entry in entries.items() if name != "sample_spec"}


@cache
def load_providers() -> frozenset[str]:
    """Load the names of all providers that litellm knows; none where it is not installed."""
    listed = {str(entry.get("litellm_provider")) for entry in load_prices().values()}
    documented = from_json(_read(ENDPOINTS) or b"{}").get("providers", {})
    prefixes = {name.partition("/")[0] for name in load_prices() if "/" in name}
    return frozenset(
        {*PROVIDER_MEMBER.findall(_read(PROVIDERS).decode()), *documented, *listed, *prefixes}
    )


def is_listed(name: str) -> bool:
    """Check whether litellm lists a model, whose name may begin with its provider."""
    provider, slash, model = name.partition("/")
    entry = load_prices().get(model if slash else name)
    return name in load_prices() or (entry or {}).get("litellm_provider") == provider


def find_entry(provider: str, model: str) -> Mapping[str, Any]:
    """Find the entry that litellm takes for a provider's model; empty if there is none."""
    keys = map(_keys_in_lower_case().get, _candidates(provider, model))
    entries = (load_prices()[key] for key in keys if key is not None)
    matches = (each for each in entries if each.get("litellm_provider", provider) == provider)
    return next(matches, {})


def find_window(model: ModelSpec) -> int | None:
    """Find the most tokens that a model takes, if that is known."""
    if model.max_input_tokens is not None:
        return model.max_input_tokens
    prices, name = load_prices(), model.name
    entry = prices.get(name) or prices.get(name.partition("/")[2]) or {}
    window: int | None = entry.get("max_input_tokens")
    return window


def is_listed_in_any_case(provider: str, model: str) -> bool:
    """Tell whether litellm lists such a name for any provider, in any case, dated or not."""
    return any(name in _keys_in_lower_case() for name in _candidates(provider, model))


def has_general_rule(provider: str, model: str) -> bool:
    """Tell whether litellm has a rule for such names, in place of an entry of its own."""
    rules = load_prices().get("fallback_generalizations", {}).get("rules", ())
    return any(
        re.search(rule["pattern"], name, re.IGNORECASE)
        for rule in rules
        for name in _candidates(provider, model)
    )


def _candidates(provider: str, model: str) -> tuple[str, ...]:
    """Return the names under which litellm looks for a model; a dated one may be listed undated."""
    undated = DATE_SUFFIX.sub("", model)
    names = (f"{provider}/{model}", model, f"{provider}/{undated}", undated)
    return tuple(name.lower() for name in names)


@cache
def _keys_in_lower_case() -> Mapping[str, str]:
    return {name.lower(): name for name in load_prices()}


def list_chat_models(provider: str | None = None) -> list[str]:
    """List the models for conversations, as they are named: of one provider, or of all.

    Those of OpenAI and Anthropic have two names, one of them without their provider.
    """
    return [
        name if name.startswith(f"{provider}/") or provider is None else f"{provider}/{name}"
        for name, entry in load_prices().items()
        if entry.get("mode") in CHAT_MODES and provider in (None, entry.get("litellm_provider"))
    ]


def suggest(name: str, names: list[str]) -> list[str]:
    """Return the names that may have been meant, the likeliest first."""
    return get_close_matches(name, names, MAX_SUGGESTIONS, MIN_SIMILARITY)


def _read(file: Path) -> bytes:
    package = importlib.util.find_spec("litellm")
    if package is None or package.origin is None:
        return b""
    path = Path(package.origin).parent / file
    return path.read_bytes() if path.exists() else b""

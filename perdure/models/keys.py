"""The environment variables with the keys of models' providers."""

from collections.abc import Collection

from perdure.agent.spec import ModelSpec
from perdure.models import price_table

KEY_VARIABLES: dict[str, tuple[str, ...]] = {
    "anthropic": (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_IDENTITY_TOKEN",
        "ANTHROPIC_IDENTITY_TOKEN_FILE",
        "ANTHROPIC_FEDERATION_RULE_ID",
    ),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"),
    **{
        provider: (f"{provider.upper()}_API_KEY",)
        for provider in (
            *("openai", "mistral", "groq", "deepseek", "xai", "openrouter", "cerebras"),
            *("deepinfra", "nvidia_nim", "moonshot", "ai21", "codestral"),
        )
    },
}
"""The variables of which each provider needs one; the first is the usual one.

Other providers have more ways to let someone in than can be told from here.
"""


def find_missing_key(model: ModelSpec, variables: Collection[str]) -> str | None:
    """Return the variable that the worker lacks to use the model; None if it has a key.

    A server of one's own needs none, nor does a provider whose ways in are not known here.
    """
    provider, slash, _ = model.name.partition("/")
    if not slash:
        entry = price_table.load_prices().get(model.name, {})
        provider = str(entry.get("litellm_provider"))
    alternatives = KEY_VARIABLES.get(provider, ())
    is_own = model.api_base is not None or has_own_server(provider, variables)
    has_key = not alternatives or any(name in variables for name in alternatives)
    return None if is_own or has_key else alternatives[0]


def has_own_server(provider: str, variables: Collection[str]) -> bool:
    """Tell whether a variable leads litellm to another server than the provider's."""
    return any(f"{provider.upper()}_{name}" in variables for name in ("API_BASE", "BASE_URL"))

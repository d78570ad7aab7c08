"""The router, which selects a model by its name, and its fallbacks when it cannot answer."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.anthropic.client import Anthropic
from perdure.models.litellm.client import LiteLLM
from perdure.models.litellm.route import find_key_variables
from perdure.models.model import (
    Complete,
    ContextOverflow,
    Model,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    OnText,
    Request,
)
from perdure.models.openai_compatible.client import OpenAICompatible
from perdure.references import BadReference, find_entry_points, import_reference
from perdure.user_modules import USER_MODULES

LOADERS = {
    "scripted": "perdure.testing.scripted_model:load",
    "replay": "perdure.testing.replay:load",
    "python": "perdure.models.router:load_reference",
}
"""The loader of a model as `module:attribute`, by what stands before the `:` of its name."""

MODEL_GROUP = "perdure.models"
"""The entry points of the loaders of other packages."""


class ModelRouter:
    """The model behind every name: a loader's for its prefix, or a provider's.

    OpenAI-compatible servers and Anthropic's are called directly, if `direct` allows it; litellm
    calls all others.
    """

    def __init__(self, *, direct: bool = True) -> None:
        self._direct = (OpenAICompatible(), Anthropic()) if direct else ()
        self._litellm = LiteLLM()

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        """Call the model or its fallbacks; `usage.model` names the model that answered."""
        answer = await complete_with_fallbacks(self._complete_one, request, on_text)
        labels = {"model": answer.model, "purpose": request.purpose}
        return answer.model_copy(update={"usage": answer.usage.model_copy(update=labels)})

    async def preload(self, model: str | None = None) -> None:
        """Load litellm where it will be needed: its first request would wait for it.

        `model` is the one of agents for which none is named. A key of a provider that is not called
        directly tells as much; whether a model of the others needs litellm is known when it is
        called.
        """
        keys = set(find_key_variables(os.environ)) - {each.key_variable for each in self._direct}
        if keys or (model and not await self._needs_no_litellm(model)):
            await self._litellm.load()

    async def _needs_no_litellm(self, name: str) -> bool:
        if find_loader(name) is not None:
            return True
        request = Request(ModelSpec(name=name), [{"role": "user", "content": "any"}])
        return await self._find_provider(request) is not self._litellm

    async def _complete_one(self, request: Request, on_text: OnText) -> Completion:
        model = _load_model(request.model.name) or await self._find_provider(request)
        return await model.complete(request, on_text)

    async def _find_provider(self, request: Request) -> Model:
        for model in self._direct:
            if await model.serves(request):
                return model
        return self._litellm


def _load_model(name: str) -> Model | None:
    reference = find_loader(name)
    return _import_loader(reference, name)(name) if reference else None


def find_loader(name: str) -> str | None:
    """Return the loader of a model that is no provider's, as `module:attribute`."""
    prefix, colon, _ = name.partition(":")
    return (LOADERS.get(prefix) or find_entry_points(MODEL_GROUP).get(prefix)) if colon else None


def load_reference(name: str) -> Model:
    """Make the model of `python:module:attribute`, once for each state of the user's modules.

    The attribute is called.
    """
    return cached_model(name, tuple(USER_MODULES.search_path), USER_MODULES.refresh())


@lru_cache(maxsize=64)
def cached_model(name: str, folders: tuple[str, ...], version: int) -> Model:  # noqa: ARG001
    return _import_loader(name.partition(":")[2], name)()


def _import_loader(reference: str, name: str) -> Callable[..., Model]:
    try:
        load: Callable[..., Model] = import_reference(reference)
    except BadReference as error:
        raise ModelRefused("model_not_found", f"The model {name!r}: {error}.") from error
    return load


async def complete_with_fallbacks(
    complete: Complete, request: Request, on_text: OnText
) -> Completion:
    """Call the model and, if it fails, its fallbacks in order; return the first answer.

    Fallbacks are not called when the first model's context window is too small for the prompt,
    which is then condensed, nor at the end of a script. If every model fails, raises the error
    that is easiest to recover from: ModelUnavailable, then ContextOverflow, then ModelRefused.
    """
    errors: list[ModelError] = []
    for spec in (request.model, *request.fallbacks):
        try:
            return await complete(replace(request, model=spec, fallbacks=()), on_text)
        except ModelError as error:
            error.model = error.model or spec.name
            errors.append(error)
            if len(errors) == 1 and error.code in ("context_overflow", "script_exhausted"):
                raise
    first, *others = sorted(errors, key=_difficulty)
    if others and isinstance(first, ModelRefused):
        raise ModelRefused(first.code, f"{first} Nor did a fallback answer: {others[0]}")
    raise first


def _difficulty(error: ModelError) -> int:
    if isinstance(error, ModelUnavailable):
        return 0
    return 1 if isinstance(error, ContextOverflow) else 2

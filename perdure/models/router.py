"""The router, which selects a model by its name."""

from collections.abc import Callable
from functools import cache

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.fallback import complete_with_fallbacks
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import Model, ModelRefused, OnText, Request
from perdure.references import BadReference, find_entry_points, import_reference

LOADERS = {
    "scripted": "perdure.testing.scripted_model:load",
    "replay": "perdure.testing.replay:load",
    "python": "perdure.models.router:load_reference",
}
"""The loader of a model as `module:attribute`, by what stands before the `:` of its name."""

MODEL_GROUP = "perdure.models"
"""The entry points of the loaders of other packages."""


class ModelRouter:
    """The model behind every name: a loader's for its prefix, litellm's for any other name."""

    def __init__(self) -> None:
        self._litellm = LiteLLM()

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        """Call the model or its fallbacks; `usage.model` names the model that answered."""
        answer = await complete_with_fallbacks(self._complete_one, request, on_text)
        labels = {"model": answer.model, "purpose": request.purpose}
        return answer.model_copy(update={"usage": answer.usage.model_copy(update=labels)})

    def context_window(self, spec: ModelSpec) -> int | None:
        """Return the maximum prompt tokens: the spec's, or litellm's once litellm is loaded."""
        return spec.max_input_tokens or self._litellm.context_window(spec.name)

    async def _complete_one(self, request: Request, on_text: OnText) -> Completion:
        return await self._find_model(request.model.name).complete(request, on_text)

    def _find_model(self, name: str) -> Model:
        prefix, colon, _ = name.partition(":")
        reference = _find_loader(prefix) if colon else None
        if reference is None:
            return self._litellm
        try:
            load: Callable[[str], Model] = import_reference(reference)
        except BadReference as error:
            raise ModelRefused("model_not_found", f"The model {name!r}: {error}.") from error
        return load(name)


def _find_loader(prefix: str) -> str | None:
    return LOADERS.get(prefix) or find_entry_points(MODEL_GROUP).get(prefix)


@cache
def load_reference(name: str) -> Model:
    """Make the model of `python:module:attribute`, once a process: the attribute is called."""
    reference = name.partition(":")[2]
    try:
        model: Model = import_reference(reference)()
    except BadReference as error:
        raise ModelRefused("model_not_found", f"The model {name!r}: {error}.") from error
    return model

"""Which model answers, by its name."""

from collections.abc import Callable

from agent.completion import Completion
from agent.spec import ModelSpec
from models import replay
from models.fallback import first_answer
from models.litellm import LiteLLM
from models.model import Model, OnText, Request
from models.scripted import PREFIX, load

LOADERS: dict[str, Callable[[str], Model]] = {PREFIX: load, replay.PREFIX: replay.load}
"""Who finds the model of a name, by how the name begins."""


class Models:
    """Every model there is: `scripted:FILE` in process, any other name through litellm."""

    def __init__(self) -> None:
        self._litellm = LiteLLM()

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        """The answer of the model, or of the first fallback that has one; its bill names who."""
        answer = await first_answer(self._ask, request, on_text)
        billed = {"model": answer.model, "purpose": request.purpose}
        return answer.model_copy(update={"usage": answer.usage.model_copy(update=billed)})

    def context_window(self, spec: ModelSpec) -> int | None:
        """The tokens a prompt may have, as the spec says, or litellm's list once it is in use."""
        return spec.max_input_tokens or self._litellm.context_window(spec.name)

    async def _ask(self, request: Request, on_text: OnText) -> Completion:
        return await self._named(request.model.name).complete(request, on_text)

    def _named(self, name: str) -> Model:
        for prefix, found in LOADERS.items():
            if name.startswith(prefix):
                return found(name)
        return self._litellm

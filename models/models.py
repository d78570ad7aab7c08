"""Which model answers, by its name."""

from agent.completion import Completion
from models.litellm import LiteLLM
from models.model import OnText, Request
from models.scripted import PREFIX, load


class Models:
    """Every model there is: `scripted:FILE` in process, any other name through litellm."""

    def __init__(self) -> None:
        self._litellm = LiteLLM()

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        if request.model.name.startswith(PREFIX):
            return await load(request.model.name).complete(request, on_text)
        return await self._litellm.complete(request, on_text)

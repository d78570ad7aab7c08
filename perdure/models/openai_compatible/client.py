"""The model that calls an OpenAI-compatible server directly."""

from collections.abc import Mapping
from typing import Any

from perdure.agent.spec import ModelSpec
from perdure.events.usage import Usage
from perdure.models.direct.client import DirectModel
from perdure.models.model import Request
from perdure.models.openai_compatible.body import BodyWriter, are_sent_unchanged
from perdure.models.openai_compatible.route import OpenAIRoute, find_route, list_cost
from perdure.models.own_server import PLACEHOLDER_KEY

HEADER_VARIABLES = {
    "OPENAI_ORG_ID": "OpenAI-Organization",
    "OPENAI_ORGANIZATION": "OpenAI-Organization",
    "OPENAI_PROJECT_ID": "OpenAI-Project",
}
"""Variables that the openai client sends as headers; of two for one header the last is taken."""


class ChunkReader:
    """The reader of an answer whose events are chunks of chat completions, up to `[DONE]`."""

    def read(self, event: Any) -> Any:
        return event

    def is_last(self, _: Any) -> bool:
        return False


class ChatCompletions:
    """OpenAI's API of chat completions."""

    key_variable = "OPENAI_API_KEY"

    def __init__(self) -> None:
        self._bodies = BodyWriter()

    def find_route(self, spec: ModelSpec, variables: Mapping[str, str]) -> OpenAIRoute | None:
        return find_route(spec, variables)

    def can_write(self, request: Request, route: OpenAIRoute) -> bool:
        return are_sent_unchanged(request.tools, route.is_openai)

    def write(self, request: Request, route: OpenAIRoute, *, stream: bool) -> bytes:
        return self._bodies.write(request, route, stream=stream)

    def headers(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        key = variables.get(self.key_variable, "").strip() or PLACEHOLDER_KEY
        extra = {header: variables.get(name) for name, header in HEADER_VARIABLES.items()}
        return {
            "Authorization": f"Bearer {key}",
            **{header: value for header, value in extra.items() if value},
        }

    def open_reader(self) -> ChunkReader:
        return ChunkReader()

    def list_cost(self, route: OpenAIRoute, _: Mapping[str, Any], usage: Usage) -> float:
        return list_cost(route.listed, usage)


class OpenAICompatible(DirectModel[OpenAIRoute]):
    """The model with the spec's `name` at OpenAI's, or at an OpenAI-compatible server."""

    def __init__(self) -> None:
        super().__init__(ChatCompletions())

"""The model that calls Anthropic's Messages API directly."""

from collections.abc import Mapping
from typing import Any

from perdure.agent.spec import ModelSpec
from perdure.events.usage import Usage
from perdure.models.anthropic.answer import AnswerReader
from perdure.models.anthropic.body import BodyWriter
from perdure.models.anthropic.route import (
    KEY_VARIABLE,
    TOKEN_VARIABLE,
    AnthropicRoute,
    find_route,
    list_cost,
)
from perdure.models.direct.client import DirectModel
from perdure.models.model import Request
from perdure.models.own_server import PLACEHOLDER_KEY

VERSION = "2023-06-01"
"""The version of the API."""


class Messages:
    """Anthropic's Messages API."""

    key_variable = KEY_VARIABLE

    def __init__(self) -> None:
        self._bodies = BodyWriter()

    def find_route(self, spec: ModelSpec, variables: Mapping[str, str]) -> AnthropicRoute | None:
        return find_route(spec, variables)

    def can_write(self, request: Request, route: AnthropicRoute) -> bool:
        return self._bodies.can_write(request, route)

    def write(self, request: Request, route: AnthropicRoute, *, stream: bool) -> bytes:
        return self._bodies.write(request, route, stream=stream)

    def headers(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Return the version and the key, or the token that takes its place."""
        key, token = (variables.get(name, "").strip() for name in (KEY_VARIABLE, TOKEN_VARIABLE))
        if token and not key:
            return {"anthropic-version": VERSION, "Authorization": f"Bearer {token}"}
        return {"anthropic-version": VERSION, "x-api-key": key or PLACEHOLDER_KEY}

    def open_reader(self) -> AnswerReader:
        return AnswerReader()

    def list_cost(self, route: AnthropicRoute, tokens: Mapping[str, Any], _: Usage) -> float:
        return list_cost(route.listed, tokens)


class Anthropic(DirectModel[AnthropicRoute]):
    """The model with the spec's `name` at Anthropic's, or at a server with its API."""

    def __init__(self) -> None:
        super().__init__(Messages())

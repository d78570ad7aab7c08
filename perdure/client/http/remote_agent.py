"""An agent that a gateway has by a name, as far as its users are told what it is."""

from typing import Any

from pydantic import Field

from perdure.agent.spec import Agent


class RemoteAgent(Agent):
    """A named agent of a gateway, which alone knows it whole; a start sends `request`."""

    request: dict[str, Any] = Field(exclude=True)
    """Its name as `extends`, and the fields of the start, which are stronger."""

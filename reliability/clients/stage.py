"""The servers of a run, with an agent that users of any client may name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.storage.user_agents import UserAgents
from reliability.chaos.environment import USER
from reliability.chaos.load.conversations import make_agent
from reliability.following.scripts import VARIANTS
from reliability.following.stage import UNLIMITED, Stage, open_stage

GATEWAY = ("only",)
"""One gateway: a client of others knows one address."""

NO_SESSION_LIMIT = {"PERDURE_GATEWAY_MAX_CONCURRENT_CONVERSATIONS": "0"}
"""A setting of a gateway whose one user has the conversations of all programs."""


@dataclass
class ClientsStage:
    """The stage of those who follow, with agents by the names of the model's scripts."""

    following: Stage
    folder: Path

    @property
    def url(self) -> str:
        """The gateway of all clients: it comes back at the same address."""
        return self.following.gateways[0].url

    @property
    def effects(self) -> Path:
        return self.folder / "effects"


@asynccontextmanager
async def open_clients_stage(folder: Path, seed: int, workers: int) -> AsyncIterator[ClientsStage]:
    settings = {**UNLIMITED, **NO_SESSION_LIMIT, "PERDURE_GATEWAY_TRUSTED": "true"}
    async with open_stage(folder, seed, workers, GATEWAY, settings) as stage:
        agents = UserAgents(stage.client.store, USER)
        for name in (f"following-{nth}" for nth in range(VARIANTS)):
            agent = make_agent(name, stage.model)
            await agents.save(name, agent.model_dump(mode="json", exclude_unset=True))
        yield ClientsStage(stage, folder)

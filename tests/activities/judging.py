"""An attempt to be scored, and who scores it."""

from pathlib import Path
from typing import Any

import pytest

from activities.judging import Judgement, judged
from activities.world import World
from agent.completion import Completion
from evaluation.sample import sample_of
from evaluation.score import Outcome
from evaluation.spec import BatchSpec, batch_of
from events.usage import Usage
from models.model import OnText, Request
from sandbox.sandbox import NONE, Sandbox
from storage.files import FileStore
from tests.builders import completion
from tools.secrets.registry import Secrets

AT_HAND = "tests.activities.scoring_at_hand"
SAID = "I think that it is 42."


class Grader:
    """A model that says these replies, or raises them, and remembers what it was asked."""

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[Request] = []

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.asked.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        on_text(reply)
        return completion(words=reply, usage=Usage(prompt_tokens=10, cost=0.25, model="m"))


class Shelf:
    """Where replies are kept: in memory, as they are in a store."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    async def read(self, scorer: str) -> bytes | None:
        return self.bodies.get(scorer)

    async def keep(self, scorer: str, body: bytes) -> bytes:
        return self.bodies.setdefault(scorer, body)


class Scene:
    """An attempt to be scored."""

    def __init__(self, folder: Path) -> None:
        self.grader = Grader()
        self.shelf = Shelf()
        self.folder = folder / "workspace"
        self.folder.mkdir()
        self.store = FileStore(folder / "store")
        self.environment = {"PERDURE_SECRET_DOOR": "open sesame"}
        self.target: Any = "42"
        self.looking = True
        self.sandbox: Sandbox = NONE

    async def judged(self, *scorers: Any, said: str = SAID) -> Judgement:
        secrets = Secrets(environment=self.environment)
        place = (self.store, self.grader, self.folder.parent)
        world = World(*place, secrets=secrets, sandbox=self.sandbox)
        sample = sample_of({"id": "one", "input": "6 * 7?", "target": self.target})
        outcome = Outcome(text=said, messages=({"role": "assistant", "content": said},))
        folder = self.folder if self.looking else None
        return await judged(world, batch(*scorers), sample, outcome, folder, self.shelf)

    async def why(self, *scorers: Any, **given: Any) -> str:
        """Why there is no score, with whose fault that is."""
        judgement = await self.judged(*scorers, **given)
        assert judgement.failure is not None
        assert judgement.scores == {}
        return f"{judgement.failure.kind} {judgement.failure.code} {judgement.failure.detail}"


def batch(*scorers: Any) -> BatchSpec:
    table = {"name": "b", "dataset": "d.jsonl", "model": "the-agent", "scorers": list(scorers)}
    return batch_of(table)


def command(line: str, **given: Any) -> dict[str, Any]:
    return {"kind": "command", "command": line, "timeout": 60, **given}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)

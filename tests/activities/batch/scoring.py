"""Fixtures for scoring an attempt."""

from pathlib import Path
from typing import Any

import pytest

from perdure.activities.batch.scoring import ScoringResult, score_attempt
from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.evaluation.sample import build_sample
from perdure.evaluation.score import Outcome
from perdure.evaluation.spec import BatchSpec, parse_batch
from perdure.events.usage import Usage
from perdure.models.model import OnText, Request
from perdure.sandbox.sandbox import UNCONFINED, Sandbox
from perdure.secrets.registry import Secrets
from perdure.storage.files import FileStore
from tests.builders import completion

SCORERS_MODULE = "tests.activities.batch.example_scorers"
ANSWER = "I think that it is 42."


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


class MemoryReplies:
    """Replies in memory, as a store keeps them."""

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
        self.shelf = MemoryReplies()
        self.folder = folder / "workspace"
        self.folder.mkdir()
        self.store = FileStore(folder / "store")
        self.environment = {"PERDURE_SECRET_DOOR": "open sesame"}
        self.target: Any = "42"
        self.looking = True
        self.sandbox: Sandbox = UNCONFINED

    async def score(self, *scorers: Any, answer: str = ANSWER) -> ScoringResult:
        secrets = Secrets(environment=self.environment)
        place = (self.store, self.grader, self.folder.parent)
        world = Resources(*place, secrets=secrets, sandbox=self.sandbox)
        sample = build_sample({"id": "one", "input": "6 * 7?", "target": self.target})
        outcome = Outcome(text=answer, messages=({"role": "assistant", "content": answer},))
        folder = self.folder if self.looking else None
        return await score_attempt(world, batch(*scorers), sample, outcome, folder, self.shelf)

    async def failure_detail(self, *scorers: Any, **given: Any) -> str:
        """Why there is no score, with whose fault that is."""
        judgement = await self.score(*scorers, **given)
        assert judgement.failure is not None
        assert judgement.scores == {}
        return f"{judgement.failure.kind} {judgement.failure.code} {judgement.failure.detail}"


def batch(*scorers: Any) -> BatchSpec:
    table = {"name": "b", "dataset": "d.jsonl", "model": "the-agent", "scorers": list(scorers)}
    return parse_batch(table)


def command(line: str, **given: Any) -> dict[str, Any]:
    return {"kind": "command", "command": line, "timeout": 60, **given}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)

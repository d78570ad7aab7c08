"""Fixtures for scoring an attempt."""

from pathlib import Path
from typing import Any

import pytest

from perdure.activities.batch.scoring import score_attempt
from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.evaluation.result import AttemptResult
from perdure.evaluation.sample import build_sample
from perdure.evaluation.score import Outcome
from perdure.evaluation.spec import BatchSpec, parse_batch
from perdure.events.usage import Usage
from perdure.models.model import OnText, Request
from perdure.sandbox.sandbox import UNCONFINED, Sandbox
from perdure.secrets.registry import Secrets
from perdure.storage.batches import BatchFolder
from perdure.storage.files import FileStore
from tests.builders import completion

SCORERS_MODULE = "tests.activities.batch.example_scorers"
ANSWER = "I think that it is 42."
CONVERSATION_ID = "3368a426-c9ab-5673-b2bc-036f592b6c08"


class Grader:
    """A model that says these replies, or raises them, and remembers what it was asked."""

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        on_text(reply)
        return completion(words=reply, usage=Usage(prompt_tokens=10, cost=0.25, model="m"))


class MemoryFolder(BatchFolder):
    """A batch folder that keeps the replies to one attempt in memory, by scorer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FileStore(folder), "local", "b")
        self.bodies: dict[str, bytes] = {}

    async def read_grading(self, sample: str, epoch: int, number: int, scorer: str) -> bytes | None:
        assert (sample, epoch, number) == ("one", 0, 0)
        return self.bodies.get(scorer.rpartition(".")[0])

    async def record_grading(
        self, sample: str, epoch: int, number: int, scorer: str, body: bytes
    ) -> bytes:
        assert (sample, epoch, number) == ("one", 0, 0)
        return self.bodies.setdefault(scorer.rpartition(".")[0], body)


class Scene:
    """An attempt to be scored."""

    def __init__(self, folder: Path) -> None:
        self.grader = Grader()
        self.shelf = MemoryFolder(folder / "store")
        self.folder = folder / "workspace"
        self.folder.mkdir()
        self.environment = {"PERDURE_SECRET_DOOR": "open sesame"}
        self.target: Any = "42"
        self.looking = True
        self.sandbox: Sandbox = UNCONFINED

    async def score(self, *scorers: Any, answer: str = ANSWER) -> AttemptResult:
        secrets = Secrets(environment=self.environment)
        place = (self.shelf.store, self.grader, self.folder.parent)
        world = Resources(*place, secrets=secrets, sandbox=self.sandbox)
        sample = build_sample({"id": "one", "input": "6 * 7?", "target": self.target})
        outcome = Outcome(
            text=answer,
            messages=({"role": "assistant", "content": answer},),
            workspace=str(self.folder) if self.looking else None,
        )
        result = AttemptResult(conversation_id=CONVERSATION_ID, status="scored")
        return await score_attempt(world, self.shelf, batch(*scorers), sample, outcome, result)

    async def failure_detail(self, *scorers: Any, **options: Any) -> str:
        """Return the reason for the lack of a score, with whose fault that is."""
        judgement = await self.score(*scorers, **options)
        assert judgement.failure is not None
        assert judgement.scores == {}
        return f"{judgement.failure.kind} {judgement.failure.code} {judgement.failure.detail}"


def batch(*scorers: Any) -> BatchSpec:
    table = {"name": "b", "dataset": "d.jsonl", "model": "the-agent", "scorers": list(scorers)}
    return parse_batch(table)


def command(line: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "command", "command": line, "timeout": 60, **fields}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)

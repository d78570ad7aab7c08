"""Scoring an attempt: every scorer of the batch in turn, or why there is no score."""

import inspect
from asyncio import timeout as time_limit
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from activities.command import Where, run, undisturbed
from activities.masking import masked
from activities.step import later
from activities.world import World
from agent.completion import Completion
from evaluation.patience import TRIES, longest
from evaluation.result import Failure, FailureKind, ended_by
from evaluation.sample import Sample
from evaluation.score import Outcome, Score, Unscorable
from evaluation.scorers.command import Command
from evaluation.scorers.custom import Custom
from evaluation.scorers.model_graded import ModelGraded
from evaluation.scorers.scorers import AnyScorer
from evaluation.spec import BatchSpec
from events.content import text_of
from events.usage import Usage
from exports.totals import added
from models.model import ContextOverflow, ModelRefused, ModelUnavailable, Request
from storage.datasets.references import found
from storage.datasets.rows import BadDataset
from tools.threads import in_thread
from tools.tool import ToolFailed

LONGEST_VARIABLE = 128 * 1024 - 64
"""Bytes of a variable's value: with its name, Linux takes 128 KiB of a program."""

T = TypeVar("T")


class Gradings(Protocol):
    """Replies of grading models, which are paid for once; `keep` gives the one that is kept."""

    async def read(self, scorer: str) -> bytes | None: ...

    async def keep(self, scorer: str, body: bytes) -> bytes: ...


@dataclass(frozen=True)
class Judgement:
    """The scores of all scorers, or the failure of one; `usage` is that of grading models."""

    scores: dict[str, Score] = field(default_factory=dict)
    failure: Failure | None = None
    usage: Usage = field(default_factory=Usage)


class NotGraded(Exception):
    """No score can be had, whatever the attempt was like."""

    def __init__(self, kind: FailureKind, code: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.code = code


async def judged(
    world: World,
    batch: BatchSpec,
    sample: Sample,
    outcome: Outcome,
    folder: Path | None,
    gradings: Gradings,
) -> Judgement:
    """What the scorers of the batch say of an outcome; `folder` is the workspace as it was left.

    Raises ApplicationError where a grading model is to be asked again later, OSError, and what
    `gradings` raises.
    """
    judge = _Judge(world, batch, sample, outcome, folder, gradings)
    scores: dict[str, Score] = {}
    for scorer in batch.scorers:
        try:
            score = await judge.score(scorer)
        except Unscorable as error:
            failure = judge.failed(scorer, "scorer", "unscorable", error)
        except NotGraded as error:
            failure = judge.failed(scorer, error.kind, error.code, error)
        else:
            scores[scorer.called] = masked(score, world.secrets.mask)
            continue
        return Judgement(failure=failure, usage=judge.usage)
    return Judgement(scores=scores, usage=judge.usage)


@dataclass
class _Judge:
    world: World
    batch: BatchSpec
    sample: Sample
    outcome: Outcome
    folder: Path | None
    gradings: Gradings
    usage: Usage = field(default_factory=Usage)

    async def score(self, scorer: AnyScorer) -> Score:
        """Raises Unscorable and NotGraded."""
        seconds = longest(scorer, self.batch.agent.model)
        match scorer:
            case Command():
                return await self._by_command(scorer)
            case ModelGraded():
                return await self._by_model(scorer)
            case Custom():
                return await _guarded(self._by_function(scorer), seconds)
            case _:
                score = partial(scorer.score, self.sample, self.outcome.text)
                return await _guarded(in_thread(score), seconds)

    def failed(self, scorer: AnyScorer, kind: FailureKind, code: str, error: Exception) -> Failure:
        detail = self.world.secrets.mask(f"{scorer.called}: {error}")
        return Failure(kind=kind, code=code, detail=detail)

    async def _by_command(self, scorer: Command) -> Score:
        if self.folder is None:
            raise Unscorable(
                "the workspace is not here any more, and the command has to look at it: run the "
                "sample again."
            )
        where = Where(
            self.folder,
            self.world.sandbox,
            self.batch.agent.network,
            self.world.secrets.masker,
            _variables(self.sample),
            self.outcome.text,
        )
        try:
            ran = await run(scorer.command, where, scorer.timeout)
        except ToolFailed as error:
            raise NotGraded("infrastructure", "no_shell", str(error)) from error
        return scorer.read(ran.exit_code, ran.output)

    async def _by_function(self, scorer: Custom) -> Score:
        """One that blocks has a thread of its own; a coroutine is awaited here."""
        try:
            function = await in_thread(partial(found, scorer.function))
        except BadDataset as error:
            raise Unscorable(str(error)) from error
        call = partial(function, self.sample, self.outcome, **scorer.options)
        value: Any = await in_thread(call)
        if inspect.isawaitable(value):
            value = await value
        return scorer.read(value)

    async def _by_model(self, scorer: ModelGraded) -> Score:
        """A reply without a grade may be followed by one that has it."""
        prompt = scorer.prompt(self.sample, self.outcome.text)
        for number in range(TRIES):
            reply = await self._reply(scorer, prompt, number)
            self.usage = added(self.usage, reply.usage)
            words = text_of(reply.message.content)
            try:
                return await in_thread(partial(scorer.read, words))
            except Unscorable as error:
                last = error
        raise last

    async def _reply(self, scorer: ModelGraded, prompt: str, number: int) -> Completion:
        name = _kept_as(scorer.called, number)
        body = await self.gradings.read(name)
        if body is None:
            answer = masked(await self._asked(scorer, prompt, number), self.world.secrets.mask)
            told = answer.model_dump_json(exclude_none=True).encode()
            body = await undisturbed(self.gradings.keep(name, told))
        try:
            return Completion.model_validate_json(body)
        except ValidationError as error:
            raise Unscorable(f"what is kept as {name!r} is no reply of a model.") from error

    async def _asked(self, scorer: ModelGraded, prompt: str, number: int) -> Completion:
        model = scorer.model or self.batch.agent.model
        graded = self.outcome.conversation_id
        request = Request(
            model,
            [{"role": "user", "content": prompt}],
            purpose="grade",
            number=number,
            key=f"{graded}/{_kept_as(scorer.called, number)}" if graded else None,
        )
        try:
            return await self.world.model.complete(request, lambda _: None)
        except ModelUnavailable as error:
            raise later(error) from error
        except (ModelRefused, ContextOverflow) as error:
            raise NotGraded(_blamed(error.code), error.code, str(error)) from error


async def _guarded(work: Awaitable[T], seconds: float) -> T:
    """What it gives; it may be anybody's code. Raises Unscorable for whatever goes wrong in it."""
    try:
        async with time_limit(seconds) as limit:
            return await work
    except Unscorable:
        raise
    except (Exception, SystemExit) as error:
        if limit.expired():
            raise Unscorable(f"it took over {seconds:g} seconds: make it faster.") from error
        raise Unscorable(f"it raised {type(error).__name__}: {error}") from error


def _variables(sample: Sample) -> dict[str, str]:
    """What a command is told of its sample. Raises Unscorable."""
    target = sample.target[0] if sample.target else ""
    if "\0" in target or len(target.encode()) > LONGEST_VARIABLE:
        raise Unscorable(
            f"the target of the sample {sample.id!r} cannot be the variable SAMPLE_TARGET: it has "
            f"a NUL, or over {LONGEST_VARIABLE:,} bytes; put it into a file of the sample."
        )
    return {"SAMPLE_ID": sample.id, "SAMPLE_TARGET": target}


def _kept_as(scorer: str, number: int) -> str:
    """Another name for every reply, also where a scorer's own name has a `~` in it."""
    name = scorer.replace("~", "~~")
    return f"{name}~{number}" if number else name


def _blamed(code: str) -> FailureKind:
    """Who has to act where the grading model refused: nothing of that is the agent's doing."""
    failure = ended_by(code)
    return "scorer" if failure is None or failure.kind == "agent" else failure.kind

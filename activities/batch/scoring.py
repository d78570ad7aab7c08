"""Scoring an attempt by every scorer of its batch."""

import hashlib
import inspect
from asyncio import timeout as time_limit
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError

from perdure.activities.batch.command import CommandContext, delay_cancellation, run_command
from perdure.activities.support.resources import Resources
from perdure.agent.calls.completion import Completion
from perdure.evaluation.result import AttemptFailure, AttemptResult, FailureKind, failure_of_code
from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Outcome, Score, ScoringError, parse_score
from perdure.evaluation.scorers.command import CommandScorer
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.scorers.model_graded import MAX_GRADING_TRIES, ModelGraded
from perdure.evaluation.scorers.scorers import AnyScorer
from perdure.evaluation.spec import BatchSpec
from perdure.events.content import join_text
from perdure.events.usage import Usage
from perdure.models.model import ContextOverflow, ModelRefused, Request
from perdure.references import BadReference, import_reference
from perdure.secrets.masking import mask_value
from perdure.secrets.registry import Secrets
from perdure.storage.batches import BatchFolder
from perdure.temporal.worker_load import waiting
from perdure.tools.threads import run_in_thread
from perdure.tools.tool import ToolFailed
from perdure.user_modules import USER_MODULES

MAX_VARIABLE_BYTES = 128 * 1024 - 64
"""Size limit of a variable's value; with its name, Linux takes 128 KiB."""

T = TypeVar("T")


class GradingFailed(Exception):
    """An attempt cannot be scored for a reason outside of it."""

    def __init__(self, kind: FailureKind, code: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.code = code


FindWorkspace: TypeAlias = Callable[[], Awaitable[str | None]]


async def score_attempt(
    resources: Resources,
    folder: BatchFolder,
    batch: BatchSpec,
    sample: Sample,
    outcome: Outcome,
    result: AttemptResult,
    find_workspace: FindWorkspace | None = None,
) -> AttemptResult:
    """Add the scores of all scorers of the batch to a result, or the failure of one.

    The grading models come first: they need no workspace, and may have queues of their own.
    Raises ApplicationError on another queue than that of a grading model or of the workspace,
    ModelUnavailable, OSError, and StoreError.
    """
    scoring = _Scoring(resources, folder, batch, sample, outcome, result)
    scores: dict[str, Score] = {}
    changes: dict[str, Any] = {}
    for scorer in sorted(batch.scorers, key=lambda scorer: not isinstance(scorer, ModelGraded)):
        try:
            if find_workspace is not None and not isinstance(scorer, ModelGraded):
                path = await find_workspace()
                scoring.outcome = outcome.model_copy(update={"workspace": path})
                find_workspace = None
            scores[scorer.score_name] = await scoring.score(scorer)
        except (ScoringError, GradingFailed) as error:
            changes = {"status": "failed", "failure": _failure(scorer, error)}
            break
    else:
        changes["scores"] = {
            scorer.score_name: scores[scorer.score_name] for scorer in batch.scorers
        }
    # Results are not in the log, which masks what it records.
    masked = mask_value(changes, scoring.secrets.mask)
    return result.model_copy(update={**masked, "grading": scoring.usage})


@dataclass
class _Scoring:
    resources: Resources
    folder: BatchFolder
    batch: BatchSpec
    sample: Sample
    outcome: Outcome
    result: AttemptResult
    usage: Usage = field(default_factory=Usage)

    @property
    def secrets(self) -> Secrets:
        return self.resources.secrets_of(self.folder.user_id)

    async def score(self, scorer: AnyScorer) -> Score:
        """Score by one scorer. Raises ScoringError and GradingFailed."""
        seconds = scorer.time_limit(self.batch.agent.model)
        match scorer:
            case CommandScorer():
                return await self._score_by_command(scorer)
            case ModelGraded():
                return await self._score_by_model(scorer)
            case CustomScorer():
                return await _run_guarded(self._score_by_function(scorer), seconds)
            case _:
                score = partial(scorer.score, self.sample, self.outcome.text)
                return await _run_guarded(run_in_thread(score), seconds)

    async def _score_by_command(self, scorer: CommandScorer) -> Score:
        if self.outcome.workspace is None:
            raise ScoringError(
                "the workspace is not here any more, and the command has to look at it: run the "
                "sample again."
            )
        context = CommandContext(
            Path(self.outcome.workspace),
            self.resources.sandbox,
            self.batch.agent.network,
            self.secrets.masker,
            _command_variables(self.sample),
            self.outcome.text,
        )
        try:
            with waiting():
                result = await run_command(scorer.command, context, scorer.timeout)
        except ToolFailed as error:
            raise GradingFailed("infrastructure", "no_shell", str(error)) from error
        return scorer.read(result.exit_code, result.output)

    async def _score_by_function(self, scorer: CustomScorer) -> Score:
        """Call a custom scorer in a thread; await it here if it is a coroutine."""
        USER_MODULES.use_client_folder(self.batch.agent.code)
        try:
            await run_in_thread(USER_MODULES.refresh)
            function = await run_in_thread(partial(import_reference, scorer.function))
        except BadReference as error:
            raise ScoringError(f"{scorer.function!r}: {error}.") from error
        call = partial(function, self.sample, self.outcome, **scorer.options)
        value: Any = await run_in_thread(call)
        if inspect.isawaitable(value):
            value = await value
        return parse_score(value)

    async def _score_by_model(self, scorer: ModelGraded) -> Score:
        """Ask the grading model until a reply has a grade."""
        prompt = scorer.prompt(self.sample, self.outcome.text)
        for number in range(MAX_GRADING_TRIES):
            reply = await self._reply(scorer, prompt, number)
            self.usage += reply.usage
            words = join_text(reply.message.content)
            try:
                return await run_in_thread(partial(scorer.read, words))
            except ScoringError as error:
                last = error
        raise last

    async def _reply(self, scorer: ModelGraded, prompt: str, number: int) -> Completion:
        """Return a model's reply, paid for once: the stored one, unless the scorers changed."""
        name = _reply_name(scorer.score_name, number)
        scorers = "".join(each.model_dump_json() for each in self.batch.scorers)
        digest = hashlib.sha256(scorers.encode()).hexdigest()[:8]
        key = (self.sample.id, self.result.epoch, self.result.number, f"{name}.{digest}")
        body = await self.folder.read_grading(*key)
        if body is None:
            answer = await self._ask_model(scorer, prompt, number, name)
            # Masked as text: as JSON, a secret such as a number would be cut out of its syntax.
            masked = mask_value(answer, self.secrets.mask)
            encoded = masked.model_dump_json(exclude_none=True).encode()
            body = await delay_cancellation(self.folder.record_grading(*key, encoded))
        try:
            return Completion.model_validate_json(body)
        except ValidationError as error:
            raise ScoringError(f"what is kept as {name!r} is no reply of a model.") from error

    async def _ask_model(
        self, scorer: ModelGraded, prompt: str, number: int, name: str
    ) -> Completion:
        request = Request(
            scorer.model or self.batch.agent.model,
            [{"role": "user", "content": prompt}],
            purpose="grade",
            number=number,
            key=f"{self.result.conversation_id}/{name}",
        )
        self.resources.queues.admit_model(request.model.name)
        try:
            return await self.resources.model.complete(request, lambda _: None)
        except (ModelRefused, ContextOverflow) as error:
            failure = failure_of_code(error.code)
            # Who must act is never the agent, which asked nothing.
            kind: FailureKind = "scorer"
            if failure is not None and failure.kind != "agent":
                kind = failure.kind
            raise GradingFailed(kind, error.code, str(error)) from error


async def _run_guarded(work: Awaitable[T], seconds: float) -> T:
    """Await code that may be anybody's. Raises ScoringError for any error in it."""
    try:
        async with time_limit(seconds) as limit:
            return await work
    except ScoringError:
        raise
    except (Exception, SystemExit) as error:
        if limit.expired():
            raise ScoringError(f"it took over {seconds:g} seconds: make it faster.") from error
        raise ScoringError(f"it raised {type(error).__name__}: {error}") from error


def _command_variables(sample: Sample) -> dict[str, str]:
    """Return a command's variables. Raises ScoringError if the target cannot be one."""
    target = sample.target[0] if sample.target else ""
    if "\0" in target or len(target.encode()) > MAX_VARIABLE_BYTES:
        raise ScoringError(
            f"the target of the sample {sample.id!r} cannot be the variable SAMPLE_TARGET: it has "
            f"a NUL, or over {MAX_VARIABLE_BYTES:,} bytes; put it into a file of the sample."
        )
    return {"SAMPLE_ID": sample.id, "SAMPLE_TARGET": target}


def _reply_name(scorer: str, number: int) -> str:
    """Return a unique name for each reply, even if a scorer's name contains a `~`."""
    name = scorer.replace("~", "~~")
    return f"{name}~{number}" if number else name


def _failure(scorer: AnyScorer, error: ScoringError | GradingFailed) -> AttemptFailure:
    detail = f"{scorer.score_name}: {error}"
    if isinstance(error, GradingFailed):
        return AttemptFailure(kind=error.kind, code=error.code, detail=detail)
    return AttemptFailure(kind="scorer", code="unscorable", detail=detail)

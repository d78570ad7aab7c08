"""A batch: each sample of a dataset is tried by a conversation of its own, and scored."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

from agent.misfit import misfit
from agent.trial import Allowance, AllowanceAsked
from evaluation.progress import Progress
from evaluation.running import MOST_RUNNING, BatchStart, Retune
from workflows.parts import Parts
from workflows.window import Window

Shape = TypeVar("Shape", bound=BaseModel)


# As with a conversation: what it is started with may make no sense.
@workflow.defn(name="Batch", failure_exception_types=[ValueError])
class Batch:
    """The workflow of one batch. What has a result is in the store, and is never run again."""

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        start = _read(BatchStart, sent)
        self.runner: Window | Parts = Parts(start) if start.parts > 1 else Window(start)

    @workflow.run
    async def run(self, *sent: Any) -> Progress:  # noqa: ARG002 - `__init__` has it
        try:
            return await self.runner.work()
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            return await self.runner.stop()

    @workflow.signal(description="Begin no further sample, and pause those that run.")
    async def pause(self) -> None:
        self.runner.hold()

    @workflow.signal(description="Go on.")
    async def resume(self) -> None:
        self.runner.resume()

    @workflow.update(description="Change {concurrency, cost, tokens, time} while it runs.")
    async def retune(self, *changes: Any) -> Progress:
        return self.runner.retune(_read(Retune, changes))

    @retune.validator
    def check_changes(self, *changes: Any) -> None:
        asked = _read(Retune, changes)
        if asked == Retune():
            raise _refusal("Name what is to change: concurrency, cost, tokens or time.")
        most = MOST_RUNNING * self.runner.start.parts
        if asked.concurrency is not None and asked.concurrency > most:
            raise _refusal(f"This batch runs at most {most} samples at a time.")

    @workflow.signal(description="Of a batch to its part: as retune.")
    async def tune(self, *changes: Any) -> None:
        if (asked := _heard(Retune, changes)) is not None:
            self.runner.retune(asked)

    @workflow.signal(description="Of a sample, or a part: it may not go on within its allowance.")
    async def ask(self, *asked: Any) -> None:
        if (wanted := _heard(AllowanceAsked, asked)) is not None:
            self.runner.ask(wanted)

    @workflow.signal(description="Of a batch to its part: so much may be spent in all.")
    async def grant(self, *granted: Any) -> None:
        allowed = _heard(Allowance, granted)
        if allowed is not None and isinstance(self.runner, Window):
            self.runner.limit(allowed)

    @workflow.signal(description="Of a part to its batch: how far it is.")
    async def report(self, *told: Any) -> None:
        progress = _heard(Progress, told[1:])
        if progress is not None and isinstance(self.runner, Parts) and isinstance(told[0], int):
            self.runner.report(told[0], progress)


def _read(shape: type[Shape], sent: Any) -> Shape:
    """Raises ApplicationError with a sentence: what a workflow is sent may make no sense."""
    try:
        [value] = sent
        return shape.model_validate(value)
    except ValidationError as error:
        wrong = misfit(error)
    except ValueError:
        wrong = f"there are {len(sent)} values"
    fields = ", ".join(shape.model_fields)
    raise _refusal(f"A batch takes one object with {fields} here ({wrong}).") from None


def _heard(shape: type[Shape], sent: Any) -> Shape | None:
    """None where it makes no sense: who signals cannot be told, and no batch ends for it."""
    try:
        return _read(shape, sent)
    except ApplicationError as error:
        workflow.logger.warning("%s", error)
        return None


def _refusal(sentence: str) -> ApplicationError:
    return ApplicationError(sentence, type="BadRequest", non_retryable=True)

"""The workflow of a batch: one scored conversation for each attempt at a sample."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

from perdure.agent.loop.attempt import Allowance, AllowanceRequest
from perdure.evaluation.messages import MAX_RUNNING_ATTEMPTS, BatchStart, LimitsUpdate
from perdure.evaluation.progress import Progress
from perdure.events.validation_errors import describe_errors
from perdure.workflows.batch.run import BatchRun
from perdure.workflows.batch.shards import ShardedBatch
from perdure.workflows.requests import bad_request

Shape = TypeVar("Shape", bound=BaseModel)


# As with a conversation, invalid input fails the workflow with a sentence.
@workflow.defn(name="Batch", failure_exception_types=[ValueError])
class Batch:
    """The workflow of one batch; an attempt whose result is in the store is never made again."""

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        start = _parse(BatchStart, sent)
        kind = ShardedBatch if start.parts > 1 else BatchRun
        self.runner: BatchRun | ShardedBatch = kind(start)

    @workflow.run
    async def run(self, *sent: Any) -> Progress:  # noqa: ARG002 - `__init__` has it
        try:
            return await self.runner.run()
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            await self.runner.stop()
            progress = self.runner.current_progress()
            reason = (
                "It was cancelled. Samples that were at work count as failed: "
                f"`perdure batch retry {progress.name}` runs them again, and what is missing."
            )
            return progress.model_copy(update={"status": "stopped", "reason": reason})

    @workflow.signal(description="Begin no further sample, and pause those that run.")
    async def pause(self) -> None:
        self.runner.hold()

    @workflow.signal(description="Go on.")
    async def resume(self) -> None:
        self.runner.resume()

    @workflow.update(description="Change {concurrency, cost, tokens, time} while it runs.")
    async def retune(self, *changes: Any) -> Progress:
        return self.runner.update_limits(_parse(LimitsUpdate, changes))

    @retune.validator
    def check_changes(self, *changes: Any) -> None:
        parsed = _parse(LimitsUpdate, changes)
        if parsed == LimitsUpdate():
            raise bad_request("Name what is to change: concurrency, cost, tokens or time.")
        most = MAX_RUNNING_ATTEMPTS * self.runner.start.parts
        if parsed.concurrency is not None and parsed.concurrency > most:
            raise bad_request(f"This batch runs at most {most} samples at a time.")

    @workflow.signal(description="Of a batch to its part: as retune.")
    async def tune(self, *changes: Any) -> None:
        if (parsed := _parse_signal(LimitsUpdate, changes)) is not None:
            self.runner.update_limits(parsed)

    @workflow.signal(description="Of a sample, or a part: it may not go on within its allowance.")
    async def ask(self, *request: Any) -> None:
        if (parsed := _parse_signal(AllowanceRequest, request)) is not None:
            self.runner.request_allowance(parsed)

    @workflow.signal(description="Of a batch to its part: so much may be spent in all.")
    async def grant(self, *allowance: Any) -> None:
        parsed = _parse_signal(Allowance, allowance)
        if parsed is not None and isinstance(self.runner, BatchRun):
            self.runner.set_limit(parsed)

    @workflow.signal(description="Of a part to its batch: how far it is.")
    async def report(self, *arguments: Any) -> None:
        parsed = _parse_signal(Progress, arguments[1:])
        if parsed and isinstance(self.runner, ShardedBatch) and isinstance(arguments[0], int):
            self.runner.update_progress(arguments[0], parsed)


def _parse(shape: type[Shape], sent: Any) -> Shape:
    """Parse the only argument of a handler. Raises ApplicationError if it is invalid."""
    try:
        [value] = sent
        return shape.model_validate(value)
    except ValidationError as error:
        problem = describe_errors(error)
    except ValueError:
        problem = f"there are {len(sent)} values"
    fields = ", ".join(shape.model_fields)
    raise bad_request(f"A batch takes one object with {fields} here ({problem}).") from None


def _parse_signal(shape: type[Shape], sent: Any) -> Shape | None:
    """Parse a signal; return None if it is invalid, as the sender gets no answer."""
    try:
        return _parse(shape, sent)
    except ApplicationError as error:
        workflow.logger.warning("%s", error)
        return None

"""The workflow of a discussion: its start, and the handlers of its requests."""

from typing import Any

from pydantic import ValidationError
from temporalio import workflow

from perdure.agent.discussion.state import Contribution, DiscussionStart, DiscussionStatus
from perdure.errors import Invalid
from perdure.events.discussion import MODERATOR, SYSTEM
from perdure.events.validation_errors import describe_errors
from perdure.workflows.discussion.run import DiscussionRun
from perdure.workflows.requests import bad_request


# As with a conversation, invalid input fails the workflow with a sentence.
@workflow.defn(name="Discussion", failure_exception_types=[ValueError])
class Discussion:
    """The workflow of one discussion, whose log (not its history) must never be lost."""

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        [start] = sent
        self.runner = DiscussionRun(DiscussionStart.model_validate(start))

    @workflow.run
    async def run(self, *sent: Any) -> DiscussionStatus:  # noqa: ARG002 - `__init__` has it
        return await self.runner.run()

    @workflow.signal(description="A person says or votes: {type, content, speaker, id}.")
    async def say(self, *sent: Any) -> None:
        try:
            self.runner.add(_with_id(self._parse(sent)))
        except Invalid as error:  # the sender of a signal gets no answer
            workflow.logger.warning("%s", error)

    @workflow.update(description="A person says or votes, and learns where in the log it stands.")
    async def contribute(self, *sent: Any) -> int:
        return await self.runner.record(_with_id(self._parse(sent)))

    @contribute.validator
    def check_contribution(self, *sent: Any) -> None:
        try:
            self._parse(sent)
        except Invalid as error:
            raise bad_request(str(error)) from None

    @workflow.signal(description="Pause between two steps, and pause the turns that run.")
    async def pause(self) -> None:
        self.runner.pause()

    @workflow.signal(description="Go on.")
    async def resume(self) -> None:
        self.runner.resume()

    @workflow.signal(description="End the discussion for good; its log stays.")
    async def close(self) -> None:
        self.runner.close()

    @workflow.query(description="Status, phase and round, speeches, tally, last summary, cost.")
    def status(self) -> DiscussionStatus:
        return self.runner.status()

    def _parse(self, sent: Any) -> Contribution:
        """Parse what a person says. Raises Invalid."""
        try:
            [value] = sent
            item = Contribution.model_validate(value)
        except ValidationError as error:
            problem = describe_errors(error)
            raise Invalid(f"A contribution has {_FIELDS} ({problem}).") from None
        except ValueError:
            raise Invalid(f"A contribution is one object with {_FIELDS}.") from None
        state = self.runner.state
        taken = {MODERATOR, SYSTEM, *(state.outline.agents if state else ())}
        if item.speaker in taken:
            raise Invalid(f"{item.speaker} is no name of a person here.")
        return item


def _with_id(item: Contribution) -> Contribution:
    return item.model_copy(update={"id": item.id or str(workflow.uuid4())})


_FIELDS = ", ".join(Contribution.model_fields)

"""The code of a conversation as a later version might have it: old histories do not fit it."""

from datetime import timedelta
from typing import Any

from temporalio import workflow

from agent.start import Snapshot
from agent.steps import Open, Step
from workflows.conversation import Conversation


@workflow.defn(name="Conversation", failure_exception_types=[ValueError])
class Newer(Conversation):
    """It takes breath before each step."""

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        super().__init__(*sent)

    @workflow.run
    async def run(self, *sent: Any) -> Snapshot:
        return await super().run(*sent)

    async def at_work(self, *steps: Step | Open | None) -> None:
        await workflow.sleep(timedelta(milliseconds=1))
        await super().at_work(*steps)

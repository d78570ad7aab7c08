"""The code of a conversation as a later version might have it: old histories do not fit it."""

from datetime import timedelta
from typing import Any

from temporalio import workflow

from perdure.agent.loop.start import ConversationStatus
from perdure.agent.loop.steps import Open, Step
from perdure.workflows.conversation import Conversation


@workflow.defn(name="Conversation", failure_exception_types=[ValueError])
class NewerConversation(Conversation):
    """It takes breath before each step."""

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        super().__init__(*sent)

    @workflow.run
    async def run(self, *sent: Any) -> ConversationStatus:
        return await super().run(*sent)

    async def run_steps(self, *steps: Step | Open | None) -> None:
        await workflow.sleep(timedelta(milliseconds=1))
        await super().run_steps(*steps)

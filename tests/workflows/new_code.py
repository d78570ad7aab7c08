"""The code of a conversation as a later version might have it: old histories do not fit it."""

from datetime import timedelta
from typing import Any

from temporalio import workflow

from perdure.agent.loop.start import ConversationStatus
from perdure.agent.loop.steps import Open, Step
from perdure.workflows.conversation import Conversation
from perdure.workflows.loop import ConversationLoop
from perdure.workflows.messages import parse_start


class NewerLoop(ConversationLoop):
    """A loop that sleeps before each step."""

    async def run_steps(self, *steps: Step | Open | None) -> None:
        await workflow.sleep(timedelta(milliseconds=1))
        await super().run_steps(*steps)


@workflow.defn(name="Conversation", failure_exception_types=[ValueError])
class NewerConversation(Conversation):
    """The workflow around the newer loop."""

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        super().__init__(*sent)
        self.loop = NewerLoop(parse_start(sent))

    @workflow.run
    async def run(self, *sent: Any) -> ConversationStatus:
        return await super().run(*sent)

"""Other versions of the code of a conversation, as a bad deploy brings them."""

from datetime import timedelta
from typing import Any

from temporalio import workflow


@workflow.defn(name="Conversation")
class BrokenConversation:
    """A workflow with a mistake."""

    @workflow.run
    async def run(self, sent: Any) -> None:  # noqa: ARG002
        raise RuntimeError("the code is broken")


@workflow.defn(name="Conversation")
class NondeterministicConversation:
    """A workflow that does something else first."""

    @workflow.run
    async def run(self, sent: Any) -> None:  # noqa: ARG002
        await workflow.sleep(timedelta(hours=1))

    @workflow.signal
    async def send_message(self, sent: Any) -> None:
        """Take any message."""


@workflow.defn(name="Conversation")
class OversizedConversation:
    """A workflow that hands over too much."""

    @workflow.run
    async def run(self, sent: Any) -> None:  # noqa: ARG002
        wait = timedelta(hours=1)
        await workflow.execute_activity("any", "x" * 3_000_000, start_to_close_timeout=wait)


@workflow.defn(name="Discussion")
class NondeterministicDiscussion:
    """A discussion's workflow that does something else first."""

    @workflow.run
    async def run(self, sent: Any) -> None:  # noqa: ARG002
        await workflow.sleep(timedelta(hours=1))

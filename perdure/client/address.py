"""The ids under which a user's workflows are found in Temporal."""

from dataclasses import dataclass, field
from typing import Self

from temporalio.client import Client

from perdure.client.description import describe_workflow, is_running
from perdure.client.recorded_user import load_recorded_user
from perdure.temporal.names import DEFAULT_USER, batch_workflow_id, conversation_workflow_id


@dataclass
class WorkflowAddress:
    """The id of a workflow of one user.

    Versions before this one gave ids without a user to everybody. A workflow that still runs under
    such an id is found by its own user, and by nobody else.
    """

    user_id: str
    own_id: str
    former_id: str | None = None
    """The id that versions before gave; None if no such workflow can run."""
    workflow_id: str = field(init=False)
    """The id that was found last, else its own."""

    def __post_init__(self) -> None:
        self.workflow_id = self.own_id

    @classmethod
    def of_conversation(cls, user_id: str, conversation_id: str) -> Self:
        former_id = conversation_workflow_id(DEFAULT_USER, conversation_id)
        return cls(user_id, conversation_workflow_id(user_id, conversation_id), former_id)

    @classmethod
    def of_batch(cls, user_id: str, name: str) -> Self:
        former_id = batch_workflow_id(DEFAULT_USER, name)
        return cls(user_id, batch_workflow_id(user_id, name), former_id)

    async def find(self, temporal: Client) -> str | None:
        """Find the id under which the workflow runs, or would be started; cache its own id.

        Returns None if another user's workflow of before has the id. Raises Unreachable.
        """
        former_id = self.former_id  # which another call may settle meanwhile
        if former_id is None:
            return self.own_id
        is_shared = self.own_id == former_id
        if not is_shared and is_running(await describe_workflow(temporal, self.own_id)):
            return self._settle()
        former = await describe_workflow(temporal, former_id)
        if former is None or not is_running(former):
            return self._settle()
        is_mine = await load_recorded_user(temporal, former) == self.user_id
        if is_shared:
            return self._settle() if is_mine else None
        if not is_mine:
            return self._settle()
        self.workflow_id = former_id
        return former_id

    def _settle(self) -> str:
        self.former_id, self.workflow_id = None, self.own_id
        return self.own_id

"""The doorbell of a conversation: Temporal's long poll for new events of its workflow's history.

A step that has ended has written its events, so its end is when the log is read.
"""

from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.description import Description, is_running
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import Unreachable

LONG_POLL_TIMEOUT = timedelta(seconds=40)
"""The time for an answer; the server answers after 20 s if nothing has happened."""


def _event_types(*names: str) -> frozenset[int]:
    return frozenset(EventType.Value(f"EVENT_TYPE_{name}") for name in names)


_STEP_SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
_TASK_SCHEDULED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
_CONTINUED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
_LOCAL_STEP_ENDED = EventType.EVENT_TYPE_MARKER_RECORDED

_TASK_ENDED = _event_types("WORKFLOW_TASK_COMPLETED")
_RUN_ENDED = _event_types(
    *(
        f"WORKFLOW_EXECUTION_{end}"
        for end in ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELED", "TERMINATED")
    )
)

_STEP_ENDS = {
    EventType.Value(f"EVENT_TYPE_ACTIVITY_TASK_{end}"): f"activity_task_{end.lower()}"
    for end in ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELED")
}
"""The kinds of events that end a step, with the first part of the name of their attributes."""


class HistoryWatch:
    """The history of a conversation's workflow as far as it has been read.

    `is_open` tells whether the run goes on, `is_busy` whether it has work: a step at work, or a
    workflow task that is to be done. `steps` are the steps at work.
    """

    def __init__(self, workflow: ConversationWorkflow) -> None:
        self._workflow = workflow
        self._temporal: Client = workflow.temporal
        self._token = b""
        self._workflow_id = ""
        self.run_id: str | None = None
        self.is_open = False
        self.steps: set[int] = set()
        self.has_task = False

    @property
    def is_busy(self) -> bool:
        return self.is_open and (self.has_task or bool(self.steps))

    async def find_run(self) -> None:
        """Find the newest run of the workflow, whose history is then read from its beginning.

        The run that is being read stays as it is. Raises Unreachable.
        """
        description: Description | None = await self._workflow.describe()
        if description is None:
            self._begin("", None, is_open=False)
            return
        execution = description.workflow_execution_info.execution
        if not (self.is_open and execution.run_id == self.run_id):
            self._begin(execution.workflow_id, execution.run_id, is_open=is_running(description))

    async def poll(self) -> bool | None:
        """Wait for new events of the open run; tell whether the log may have new entries.

        Returns None if nothing has happened for the time of a long poll. Raises Unreachable.
        """
        request = GetWorkflowExecutionHistoryRequest(
            namespace=self._temporal.namespace,
            execution=WorkflowExecution(workflow_id=self._workflow_id, run_id=self.run_id or ""),
            next_page_token=self._token,
            wait_new_event=True,
            skip_archival=True,
        )
        service = self._temporal.workflow_service
        try:
            answer = await service.get_workflow_execution_history(
                request, timeout=LONG_POLL_TIMEOUT
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:  # deleted, or beyond its retention
                self._begin("", None, is_open=False)
                return True
            if error.status is RPCStatusCode.INVALID_ARGUMENT:  # a token of before a failover
                self._begin("", None, is_open=False)
            raise Unreachable(f"Temporal does not show the history: {error.message}") from error
        run_id, self._token = self.run_id, answer.next_page_token
        events = list(answer.history.events)
        rings = [self._read(event) for event in events]  # all of them, whatever one says
        if not answer.next_page_token and self.run_id == run_id:
            self._begin(self._workflow_id, run_id, is_open=False)
        return any(rings) if events else None

    def _begin(self, workflow_id: str, run_id: str | None, *, is_open: bool) -> None:
        self._workflow_id, self.run_id, self.is_open = workflow_id, run_id, is_open
        self._token, self.has_task = b"", False
        self.steps.clear()

    def _read(self, event: HistoryEvent) -> bool:
        """Take one event; tell whether entries of the log may have come with it."""
        kind = event.event_type
        if kind == _STEP_SCHEDULED:
            self.steps.add(event.event_id)
        elif kind == _TASK_SCHEDULED:
            self.has_task = True
        elif kind in _TASK_ENDED:
            self.has_task = False
        elif name := _STEP_ENDS.get(kind):
            attributes = getattr(event, f"{name}_event_attributes")
            self.steps.discard(attributes.scheduled_event_id)
            return True
        elif kind == _CONTINUED:
            continued = event.workflow_execution_continued_as_new_event_attributes
            self._begin(self._workflow_id, continued.new_execution_run_id, is_open=True)
            return True
        elif kind in _RUN_ENDED:
            self._begin(self._workflow_id, self.run_id, is_open=False)
            return True
        return kind == _LOCAL_STEP_ENDED

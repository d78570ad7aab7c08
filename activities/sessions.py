"""The activities around a user's sessions: asking for admission, and finding who works."""

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import timedelta

import temporalio.client
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.activities.support.resources import Activities
from perdure.activities.support.step import check_owner
from perdure.temporal.fairness import user_priority
from perdure.temporal.names import conversation_workflow_id, sessions_workflow_id
from perdure.temporal.sessions import (
    ADMISSION_QUERY,
    ASK,
    ASK_ACTIVITY,
    SURVEY_ACTIVITY,
    Admission,
    AdmissionStatus,
    Ask,
    SessionsStart,
    Survey,
    WorkingConversation,
)
from perdure.temporal.timeouts import TASK_TIMEOUT

QUERY_TIMEOUT = timedelta(seconds=3)
"""Time within which a conversation must answer; one that does not is taken to work."""

CATCH_UP_TIME = 5.0
"""Seconds for a conversation to take in events that its log has already."""

CATCH_UP_INTERVAL = 0.05


@dataclass
class SessionsActivities(Activities):
    temporal: temporalio.client.Client

    @activity.defn(name=ASK_ACTIVITY)
    async def ask(self, ask: Ask) -> None:
        """Signal the workflow of the user's sessions, and start it if it does not run."""
        check_owner(ask.user_id)
        queue = activity.info().task_queue
        await self.temporal.start_workflow(
            "Sessions",
            SessionsStart(user_id=ask.user_id),
            id=sessions_workflow_id(ask.user_id, queue),
            task_queue=queue,
            task_timeout=TASK_TIMEOUT,
            priority=user_priority(ask.user_id),
            start_signal=ASK,
            start_signal_args=[ask.request],
        )

    @activity.defn(name=SURVEY_ACTIVITY)
    async def survey(self, survey: Survey) -> list[WorkingConversation]:
        """Find which of the conversations work, or are about to, by the admission they had."""
        check_owner(survey.user_id)
        found = await asyncio.gather(
            *(self._find_working(survey.user_id, admission) for admission in survey.admissions)
        )
        return [working for working in found if working is not None]

    async def _find_working(self, user_id: str, admission: Admission) -> WorkingConversation | None:
        workflow_id = conversation_workflow_id(user_id, admission.conversation_id)
        handle = self.temporal.get_workflow_handle(workflow_id)
        if not await _is_running(handle):
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_TIME):
                return await self._ask_caught_up(user_id, admission, handle)
        return WorkingConversation(admission=admission)

    async def _ask_caught_up(
        self,
        user_id: str,
        admission: Admission,
        handle: temporalio.client.WorkflowHandle[object, object],
    ) -> WorkingConversation | None:
        """Ask a conversation until it knows every event that its log has.

        Whoever saw in the log that a turn has ended may count on it.
        """
        log = self.resources.log(user_id, admission.conversation_id)
        while (status := await _query(handle)) is not None:
            if status.admission_id != admission.admission_id:
                return None
            if await log.find(status.next_seq) is None:
                return WorkingConversation(admission=admission, active_at=status.active_at)
            await asyncio.sleep(CATCH_UP_INTERVAL)
        return WorkingConversation(admission=admission)


async def _is_running(handle: temporalio.client.WorkflowHandle[object, object]) -> bool:
    try:
        description = await handle.describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    except ValueError:  # the SDK knows no workflow that an operator has paused in Temporal
        return True
    return description.status is WorkflowExecutionStatus.RUNNING


async def _query(
    handle: temporalio.client.WorkflowHandle[object, object],
) -> AdmissionStatus | None:
    """Query the admission of a conversation; None if it does not answer."""
    with contextlib.suppress(RPCError, WorkflowQueryFailedError, ValueError):
        status: AdmissionStatus = await handle.query(
            ADMISSION_QUERY, result_type=AdmissionStatus, rpc_timeout=QUERY_TIMEOUT
        )
        return status
    return None

"""The workflow of a user's sessions: it admits conversations to work, up to a limit."""

import contextlib
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.workflow import ContinueAsNewVersioningBehavior

from perdure.temporal.names import conversation_workflow_id
from perdure.temporal.sessions import (
    ADMIT,
    SURVEY_ACTIVITY,
    SUSPEND,
    Admission,
    AdmissionRequest,
    SessionsStart,
    Survey,
    WorkingConversation,
)
from perdure.temporal.timeouts import UNLIMITED_RETRIES
from perdure.workflows.batch.background import signal_workflow

SURVEY_TIMEOUT = timedelta(seconds=30)
"""Time limit of one attempt at a survey."""

FIRST_SURVEY = timedelta(minutes=1)
"""Time without a request after which the workflow looks whether it still counts anything.

It waits twice as long each time, `MAX_SURVEY_INTERVAL` at most.
"""

MAX_SURVEY_INTERVAL = timedelta(hours=1)

LEAVE_TIMEOUT = timedelta(seconds=5)
"""Time after which a conversation that was suspended may have been lost, and is looked at."""

MAX_RUN_EVENTS = 1000
"""History events after which the run continues as new."""


@workflow.defn(name="Sessions")
class Sessions:
    """The conversations of one user that work, of those that count.

    A conversation asks before it works and is admitted by a signal. Where the limit is reached, the
    least recently active one is suspended, and has to be at rest first: at no time do more work
    than the limit. One that comes to rest by itself says nothing: whether those that were admitted
    still work is looked up when their number matters.
    """

    @workflow.init
    def __init__(self, start: SessionsStart) -> None:
        self.user_id = start.user_id
        self.admissions = list(start.admissions)
        self.requests = list(start.requests)

    @workflow.run
    async def run(self, start: SessionsStart) -> None:  # noqa: ARG002 - `__init__` has it
        interval = FIRST_SURVEY
        while True:
            await self.await_request(interval)
            if self.requests:
                interval = FIRST_SURVEY
                await self.answer(self.requests[0])
                del self.requests[0]
            else:
                interval = min(2 * interval, MAX_SURVEY_INTERVAL)
                await self.drop_those_at_rest()
                if not (self.admissions or self.requests):
                    return
            if self.should_continue_as_new():
                workflow.continue_as_new(
                    SessionsStart(
                        user_id=self.user_id,
                        admissions=tuple(self.admissions),
                        requests=tuple(self.requests),
                    ),
                    initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
                )

    async def await_request(self, max_wait: timedelta) -> None:
        if self.requests:
            return
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: bool(self.requests),
                timeout=max_wait,
                timeout_summary="see whether anything still works",
            )

    # A request that is no such would fail the workflow task, whoever sent it.
    @workflow.signal(description="Of a conversation: may it work? A request may come twice.")
    def ask(self, *sent: Any) -> None:
        with contextlib.suppress(ValueError):
            [value] = sent
            request = AdmissionRequest.model_validate(value)
            if request not in self.requests:
                self.requests.append(request)

    @workflow.signal(description="Of a conversation: it does not work by this admission any more.")
    def leave(self, *sent: Any) -> None:
        [admission_id] = sent if len(sent) == 1 else (None,)
        self.admissions = [it for it in self.admissions if it.admission_id != admission_id]

    @workflow.query(description="The ids of the conversations that were admitted.")
    def admitted(self) -> list[str]:
        return [admission.conversation_id for admission in self.admissions]

    async def answer(self, request: AdmissionRequest) -> None:
        """Admit a conversation, once there is room for it."""
        mine = request.admission
        if mine not in self.admissions:
            self.admissions = self.others(mine)  # those of its earlier turns are over
            if len(self.admissions) >= request.limit and not await self.make_room(request):
                return
            self.admissions.append(mine)
        await self.signal(mine, ADMIT)

    async def make_room(self, request: AdmissionRequest) -> bool:
        """Suspend as many conversations as needed; return False if the new one does not ask."""
        mine = request.admission
        working = await self.survey((*self.admissions, mine))
        admitted = {it.admission.admission_id for it in working}
        self.admissions = [it for it in self.admissions if it.admission_id in admitted]
        if mine.admission_id not in admitted:
            return False
        surplus = len(self.admissions) + 1 - request.limit
        # In the order in which they were admitted, where they do not tell.
        moments = {it.admission.admission_id: it.active_at for it in working}
        by_activity = sorted(self.admissions, key=lambda it: moments[it.admission_id] or "~")
        for admission in by_activity[: max(0, surplus)]:
            await self.suspend(admission)
        return True

    async def suspend(self, admission: Admission) -> None:
        """Suspend a conversation, and wait until it is at rest."""
        await self.signal(admission, SUSPEND)
        while admission in self.admissions:
            try:
                await workflow.wait_condition(
                    lambda: admission not in self.admissions,
                    timeout=LEAVE_TIMEOUT,
                    timeout_summary="see whether it was lost",
                )
            except TimeoutError:
                await self.drop_those_at_rest()

    async def drop_those_at_rest(self) -> None:
        working = {it.admission.admission_id for it in await self.survey(tuple(self.admissions))}
        self.admissions = [it for it in self.admissions if it.admission_id in working]

    async def survey(self, admissions: tuple[Admission, ...]) -> list[WorkingConversation]:
        if not admissions:
            return []
        working: list[WorkingConversation] = await workflow.execute_activity(
            SURVEY_ACTIVITY,
            Survey(user_id=self.user_id, admissions=admissions),
            result_type=list[WorkingConversation],
            start_to_close_timeout=SURVEY_TIMEOUT,
            retry_policy=UNLIMITED_RETRIES,
        )
        return working

    def others(self, mine: Admission) -> list[Admission]:
        return [it for it in self.admissions if it.conversation_id != mine.conversation_id]

    async def signal(self, admission: Admission, name: str) -> None:
        workflow_id = conversation_workflow_id(self.user_id, admission.conversation_id)
        await signal_workflow(workflow_id, name, admission.admission_id)

    def should_continue_as_new(self) -> bool:
        info = workflow.info()
        is_long = info.get_current_history_length() > MAX_RUN_EVENTS
        return (
            is_long
            or info.is_continue_as_new_suggested()
            or info.is_target_worker_deployment_version_changed()
        )

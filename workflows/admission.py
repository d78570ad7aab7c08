"""The admission of a conversation to those of its user that may work at once."""

import contextlib
from datetime import timedelta
from typing import Protocol

from temporalio import workflow

from perdure.agent.loop.admission import until_suspended, will_run
from perdure.agent.loop.inbox import InboxItem, InterruptRequest
from perdure.agent.loop.start import Start
from perdure.agent.loop.state import State
from perdure.temporal.names import sessions_workflow_id
from perdure.temporal.sessions import (
    ASK_ACTIVITY,
    LEAVE,
    Admission,
    AdmissionRequest,
    AdmissionStatus,
    Ask,
)
from perdure.temporal.timeouts import UNLIMITED_RETRIES
from perdure.workflows.batch.background import signal_workflow
from perdure.workflows.step_runner import StepRunner

ASK_TIMEOUT = timedelta(seconds=10)
"""Time limit of one attempt to ask, which is a request to Temporal."""

ASK_AGAIN = timedelta(seconds=30)
"""Time after which a conversation asks again, should the sessions have been lost."""


class Applicant(Protocol):
    start: Start
    state: State
    inbox: list[InboxItem]
    runner: StepRunner

    async def record(self, item: InboxItem) -> None: ...


class ConversationAdmission:
    """The admission that a conversation has, or has asked for; without a limit it needs none.

    A conversation asks before it begins to work, and asks anew after each rest.
    """

    def __init__(self, applicant: Applicant) -> None:
        start = applicant.start
        self.applicant, self.limit, self.user_id = applicant, start.session_limit, start.user_id
        self.id = start.admission_id
        self.is_admitted = start.admission_id is not None
        self.active_at = start.active_at

    def note_activity(self) -> None:
        """Note that the user has said something now."""
        self.active_at = workflow.now().isoformat()

    def will_run(self) -> bool:
        return will_run(self.applicant.state, until_suspended(self.applicant.inbox))

    def status(self) -> AdmissionStatus:
        return AdmissionStatus(
            admission_id=self.id if self.will_run() else None,
            active_at=self.active_at,
            next_seq=self.applicant.state.next_seq,
        )

    async def ensure(self) -> None:
        """Return once the conversation is admitted, or will not work. Raises ActivityError."""
        while self.limit is not None and self.id is None and self.will_run():
            self.id = str(workflow.uuid4())
            await self._await_answer(self.id, self.limit)
            if not self.is_admitted:
                self.id = None

    async def _await_answer(self, admission_id: str, limit: int) -> None:
        def is_over() -> bool:
            return self.is_admitted or self.id != admission_id or not self.will_run()

        while not is_over():
            await self._ask(admission_id, limit)
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(
                    is_over, timeout=ASK_AGAIN, timeout_summary="ask for admission again"
                )

    async def _ask(self, admission_id: str, limit: int) -> None:
        conversation_id = self.applicant.start.conversation_id
        admission = Admission(conversation_id=conversation_id, admission_id=admission_id)
        request = AdmissionRequest(admission=admission, limit=limit)
        await workflow.execute_activity(
            ASK_ACTIVITY,
            Ask(user_id=self.user_id, request=request),
            start_to_close_timeout=ASK_TIMEOUT,
            retry_policy=UNLIMITED_RETRIES,
            summary="ask to work beside the user's other conversations",
        )

    def admit(self, admission_id: str) -> None:
        if self.id == admission_id:
            self.is_admitted = True

    async def suspend(self, admission_id: str) -> None:
        """Stop what works by this admission, and tell the sessions once it is at rest."""
        if self.id == admission_id and self.will_run():
            self.end()
            self.applicant.runner.stop()
            await self.applicant.record(InterruptRequest(reason="too_many_conversations"))
        sessions = sessions_workflow_id(self.user_id, workflow.info().task_queue)
        await signal_workflow(sessions, LEAVE, admission_id)

    def end(self) -> None:
        """End the admission: the conversation has come to rest, or is about to."""
        self.id, self.is_admitted = None, False

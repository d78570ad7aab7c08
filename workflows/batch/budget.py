"""Spending of a batch while it runs: allowances, requests and limits."""

from temporalio import workflow

from perdure.agent.loop.attempt import Allowance, AllowanceRequest
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.progress import Progress
from perdure.temporal.names import conversation_workflow_id
from perdure.workflows.batch.background import signal_workflow
from perdure.workflows.batch.state import BatchState


class BatchBudget(BatchState):
    """Grants allowances to attempts; a shard asks its batch for more, a batch its operator."""

    def request_allowance(self, request: AllowanceRequest) -> None:
        """Take the request of an attempt that cannot go on within its allowance."""
        if request.holder in self.running:
            self.budget.request_more(request)
            self.grant_requests()

    def grant_requests(self) -> None:
        """Grant requests from what is left; if no attempt can go on, ask for more."""
        for name, allowance in self.budget.grant_requests().items():
            self.launch(signal_workflow(conversation_workflow_id(name), "grant", allowance))
        if self.budget.requests:
            self.handle_shortage()

    def handle_shortage(self) -> None:
        """Wait for what running attempts give back; if there is none, ask the batch or pause."""
        if not self.budget.is_deadlocked(set(self.running)) or self.is_paused:
            return
        if self.start.part is not None:
            self.request_from_parent()
            return
        self.pause(
            f"The batch has spent {self.budget.spending_text}, and what is left is not enough to "
            f"go on: perdure batch retune {self.start.name} --cost … (or --tokens …)"
        )

    def request_from_parent(self) -> None:
        """Ask the batch of this shard for a larger share."""
        limit, used = self.budget.sufficient_limit(), self.budget.ledger.committed
        if limit == self.requested_limit:
            return
        self.requested_limit = limit
        spent = Allowance(cost=used.cost, tokens=used.tokens)
        holder = workflow.info().workflow_id
        request = AllowanceRequest(holder=holder, spent=spent, needed=limit)
        self.signal_parent("ask", request)

    def resume(self) -> None:
        for name in self.running if self.is_held else ():
            self.launch(signal_workflow(conversation_workflow_id(name), "resume"))
        self.stop_clock()
        self.pause_reason, self.is_held, self.consecutive_failures = None, False, 0
        self.grant_requests()
        self.publish_progress()

    def update_limits(self, changes: LimitsUpdate) -> Progress:
        self.concurrency = changes.concurrency or self.concurrency
        self.time = changes.time or self.time
        limit = self.budget.changed_limit(changes.cost, changes.tokens)
        if limit != self.budget.ledger.limit:
            self.set_limit(limit)
        self.publish_progress()
        self.has_changed = True
        return self.current_progress()

    def set_limit(self, allowance: Allowance) -> None:
        """Set the limit of spending; a batch that waits for it goes on."""
        self.budget.set_limit(allowance)
        self.requested_limit = None
        if self.is_paused and not self.is_held:
            self.resume()
        self.grant_requests()
        self.has_changed = True

"""A batch too large for one workflow: it is run in parts, side by side, by a workflow each."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError, WorkflowAlreadyStartedError

from agent.trial import Allowance, AllowanceAsked
from evaluation.budget import Budget
from evaluation.ledger import Amount, Ledger, allowance, amount_of, reserve
from evaluation.progress import MEMO, Progress, together
from evaluation.running import BatchStart, Retune
from workflows.attempts import TASK_TIMEOUT, priority_of
from workflows.failures import why
from workflows.working import Working, tell

HALF = 0.5
"""The part of the limit that is shared out at first; the rest goes to those who ask."""


class Parts(Working):
    """What its parts have told; each of them is a sliding window over its own samples."""

    def __init__(self, start: BatchStart) -> None:
        super().__init__()
        self.start = start
        self.budget = Budget(start.ledger, {})
        self.concurrency = start.concurrency
        self.pause_reason: str | None = None
        self.held = False
        self.told: dict[int, Progress] = {}
        self.left = set(range(start.parts))

    async def work(self) -> Progress:
        """Raises ApplicationError where a part failed: once the others are done."""
        self.show()
        failures = await asyncio.gather(*(self.part(at) for at in range(self.start.parts)))
        if told := [one for one in failures if one is not None]:
            raise ApplicationError(told[0], type="PartFailed", non_retryable=True)
        return self.now()

    def name(self, at: int) -> str:
        return f"batch-{self.start.name}/{at}"

    async def part(self, at: int) -> str | None:
        """Run a part to its end; why it failed, where it did."""
        try:
            ended = await workflow.execute_child_workflow(
                "Batch",
                self.beginning(at),
                id=self.name(at),
                result_type=Progress,
                task_timeout=TASK_TIMEOUT,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                priority=priority_of(self.start),
                static_summary=f"{self.start.name}, part {at + 1} of {self.start.parts}",
            )
        except (ChildWorkflowError, WorkflowAlreadyStartedError) as error:
            return f"Part {at} of the batch failed: {why(error)}"
        self.told[at] = ended
        self.left.discard(at)
        self.budget.end(self.name(at), amount_of(ended.spent))
        self.grant_more()
        self.show()
        return None

    def beginning(self, at: int) -> BatchStart:
        start, parts = self.start, self.start.parts
        chunks = start.end - start.first
        return start.model_copy(
            update={
                "part": at,
                "parts": 1,
                "first": start.first + chunks * at // parts,
                "end": start.first + chunks * (at + 1) // parts,
                "expected": None,
                "concurrency": _share(self.concurrency, parts, at),
                "ledger": Ledger(limit=self.allowed(at)),
            }
        )

    def allowed(self, at: int) -> Allowance:
        """What a part may spend before it asks for more."""
        limit, share = self.budget.ledger.limit, HALF / self.start.parts
        amount = Amount(cost=(limit.cost or 0) * share, tokens=int((limit.tokens or 0) * share))
        ledger = reserve(self.budget.ledger, self.name(at), amount)
        assert ledger is not None, "half of the limit is there for all parts together"
        self.budget.ledger = ledger
        return allowance(ledger, amount)

    def report(self, at: int, progress: Progress) -> None:
        self.told[at] = progress
        self.show()

    def show(self) -> None:
        told = self.now().model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        workflow.upsert_memo({MEMO: told})

    def ask(self, asked: AllowanceAsked) -> None:
        self.budget.ask(asked)
        self.grant_more()

    def grant_more(self) -> None:
        for name, granted in self.budget.grants().items():
            self.launch(tell(name, "grant", granted))
        running = {self.name(at) for at in self.left}
        stuck = self.budget.asking and self.budget.is_all_there_is(running)
        if stuck and self.pause_reason is None:
            self.pause_reason = (
                "What is left of the batch's budget is not enough to go on: "
                f"perdure batch retune {self.start.name} --cost … (or --tokens …)"
            )
            self.show()

    def hold(self) -> None:
        self.pause_reason = f"It was paused. To go on: perdure batch resume {self.start.name}"
        self.held = True
        self.tell_all("pause")
        self.show()

    def resume(self) -> None:
        self.pause_reason, self.held = None, False
        self.tell_all("resume")
        self.grant_more()
        self.show()

    def retune(self, changes: Retune) -> Progress:
        self.concurrency = changes.concurrency or self.concurrency
        for at in self.left if changes.concurrency or changes.time else ():
            share = _share(self.concurrency, self.start.parts, at)
            own = Retune(concurrency=share, time=changes.time)
            self.launch(tell(self.name(at), "tune", own))
        raised = self.budget.raised(changes.cost, changes.tokens)
        if raised != self.budget.ledger.limit:
            self.budget.limit(raised)
            self.pause_reason = self.pause_reason if self.held else None
            self.grant_more()
        self.show()
        return self.now()

    def now(self) -> Progress:
        """As the parts told last: what runs there by now, they tell themselves."""
        whole = together(self.start.name, list(self.told.values()))
        limit = self.budget.ledger.limit
        paused = "paused" if self.pause_reason else "running"
        return whole.model_copy(
            update={
                "expected": max(self.start.expected or 0, whole.expected),
                "status": paused if self.left else whole.status,
                "reason": self.pause_reason or whole.reason,
                "concurrency": self.concurrency,
                "cost": limit.cost,
                "tokens": limit.tokens,
                "parts": self.start.parts,
            }
        )

    async def stop(self) -> Progress:
        self.stop_working()
        return self.now().model_copy(update={"status": "stopped", "reason": "It was cancelled."})

    def tell_all(self, name: str) -> None:
        for at in self.left:
            self.launch(tell(self.name(at), name))


def _share(whole: int, parts: int, at: int) -> int:
    """At least 1: a part that does nothing would never end."""
    return max(1, whole * (at + 1) // parts - whole * at // parts)

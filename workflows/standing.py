"""Where a batch, or a part of one, stands: what runs, what waits, how long it has been at work."""

from collections import deque
from datetime import timedelta
from typing import Any

from temporalio import workflow

from agent.trial import Allowance
from evaluation.budget import Budget
from evaluation.progress import MEMO, BatchStatus, Progress
from evaluation.running import BatchStart, Job, Place
from workflows.working import Working, tell

REPORTED = 500
"""Epochs after which a part tells the whole how far it is."""


class Standing(Working):
    """Everything that a run of the workflow knows, and hands over to the next."""

    def __init__(self, start: BatchStart) -> None:
        super().__init__()
        self.start = start
        self.budget = Budget(start.ledger, start.asking)
        self.concurrency = start.concurrency
        self.time = start.time
        self.pause_reason = start.pause
        self.held = start.held
        self.in_a_row = start.in_a_row
        self.waiting: deque[Job] = deque()
        self.again: deque[Job] = deque(start.again)
        self.place = start.place or Place(chunk=start.first)
        self.running: dict[str, Job] = dict(start.running)
        self.starting = 0
        self.refilling = False
        self.busy = 0
        self.progress = start.progress or Progress(name=start.name, expected=start.expected or 0)
        self.since = workflow.now()
        self.out_of_time = False
        self.asked_for: Allowance | None = None
        self.reported = self.progress.finished

    def show(self) -> None:
        """Tell how far it is, in a place that is read without asking this code.

        Who queries a workflow has its newest events applied before their turn, where a worker does
        not know it any more, and what they begin may then come in another order than it is
        replayed (sdk-core 0.5). A description of the workflow asks nobody.
        """
        self.launch(self._shown())  # in the order of what else is begun

    async def _shown(self) -> None:
        told = self.now().model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        workflow.upsert_memo({MEMO: told})

    def hold(self) -> None:
        """Pause, and have every conversation that runs pause too."""
        self.pause(f"It was paused. To go on: perdure batch resume {self.start.name}")
        self.held = True
        for name in self.running:
            self.launch(tell(f"conv-{name}", "pause"))

    def pause(self, reason: str) -> None:
        self.stop_clock()
        self.pause_reason = reason
        self.show()

    def stop_clock(self) -> None:
        self.progress = self.progress.model_copy(update={"seconds": self.seconds()})
        self.since = workflow.now()
        self.news = True

    def now(self) -> Progress:
        """Where it stands at this moment."""
        ledger = self.budget.ledger
        return self.progress.model_copy(
            update={
                "status": self.status(),
                "reason": self.reason(),
                "running": len(self.running),
                "seconds": self.seconds(),
                "concurrency": self.concurrency,
                "cost": ledger.limit.cost,
                "tokens": ledger.limit.tokens,
                "reserved": sum(one.cost for one in ledger.reserved.values()),
            }
        )

    def status(self) -> BatchStatus:
        if self.is_over():
            return "stopped" if self.out_of_time else "finished"
        return "paused" if self.is_paused else "running"

    def reason(self) -> str | None:
        if self.out_of_time:
            return f"Its {self.time:g} s are over: run it again with a larger batch_limits.time."
        return self.pause_reason

    @property
    def is_paused(self) -> bool:
        return self.pause_reason is not None

    def is_over(self) -> bool:
        if self.running or self.busy:
            return False
        nothing_left = not (self.waiting or self.again) and self.place.chunk >= self.start.end
        return self.out_of_time or nothing_left

    def seconds(self) -> float:
        """How long it has been at work: a pause does not count."""
        if self.is_paused:
            return self.progress.seconds
        return self.progress.seconds + (workflow.now() - self.since) / timedelta(seconds=1)

    def has_time(self) -> bool:
        self.out_of_time = self.time is not None and self.seconds() >= self.time
        return not self.out_of_time

    def report(self) -> None:
        """Tell the whole how far this part is, now and then."""
        if self.start.part is not None and self.progress.finished - self.reported >= REPORTED:
            self.reported = self.progress.finished
            self.to_the_whole("report", self.start.part, self.now())

    def to_the_whole(self, name: str, *value: Any) -> None:
        parent = workflow.info().parent
        if parent is not None:
            self.launch(tell(parent.workflow_id, name, *value))

    def handed_over(self) -> BatchStart:
        first = self.waiting[0] if self.waiting else None
        then = Place(chunk=first.chunk, line=first.line, epoch=first.epoch) if first else self.place
        self.stop_clock()
        return self.start.model_copy(
            update={
                "ledger": self.budget.ledger,
                "asking": self.budget.asking,
                "concurrency": self.concurrency,
                "time": self.time,
                "pause": self.pause_reason,
                "held": self.held,
                "in_a_row": self.in_a_row,
                "again": tuple(self.again),
                "place": then,
                "running": self.running,
                "progress": self.progress,
            }
        )

    def is_long(self) -> bool:
        info = workflow.info()
        return (
            info.get_current_history_length() > self.start.long
            or info.is_continue_as_new_suggested()
        )

    def is_quiet(self) -> bool:
        """Whether nothing is on its way that a next run would not hear of."""
        unheard = self.starting or self.busy or (self.is_rescoring and self.running)
        return not unheard and workflow.all_handlers_finished()

    @property
    def is_rescoring(self) -> bool:
        return self.start.mode == "rescore"

"""A sliding window over the samples of a batch: so many conversations at a time."""

from collections import deque
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError

from agent.trial import Allowance, AllowanceAsked, Scored, Trial
from evaluation.budget import Budget
from evaluation.ledger import amount_of
from evaluation.progress import BatchStatus, Progress, counted, spent_by
from evaluation.running import (
    BatchStart,
    Followed,
    Job,
    Lost,
    Page,
    PageAsked,
    Place,
    Retune,
    Surveyed,
)
from evaluation.sample import conversation_id
from workflows.attempts import attempted, rescored_by
from workflows.failures import why
from workflows.working import Working, cancel, tell

AT_ONCE = 50
"""Children that one workflow task starts: some 60 KB of what Temporal takes 4 MB of."""

MOST_TOGETHER = 16
"""Free places that are waited for, so that several children are started in one workflow task."""

IN_A_ROW = 10
"""Failures one after the other that are not the samples' fault, before somebody is asked."""

REPORTED = 500
"""Epochs after which a part tells the whole how far it is."""

MANY = 100
"""Attempts that wait to be made once more, before they go before those that were never made."""

HELD = "It was paused."


class Window(Working):
    """What runs, what has ended and what is left, of one batch or of a part of one."""

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
        self.busy = 0
        self.progress = start.progress or Progress(name=start.name, expected=start.expected or 0)
        self.since = workflow.now()
        self.out_of_time = False
        self.asked_for: Allowance | None = None
        self.reported = self.progress.finished

    async def work(self) -> Progress:
        """Raises ActivityError where the batch itself cannot be read."""
        if self.start.progress is None:
            await self.survey()
        if self.running:
            self.launch(self.follow(list(self.running)))
        while not self.is_over():
            self.news = False
            await self.refill()
            self.begin()
            if self.is_long() and self.is_quiet():
                workflow.continue_as_new(self.handed_over())
            await workflow.wait_condition(lambda: self.news or self.is_over())
            self.check()
        return self.now()

    async def survey(self) -> None:
        """Learn how many there are, and what has a result already."""
        start = self.start
        if not start.fresh or start.expected is None:
            asked = Surveyed(
                name=start.name,
                user_id=start.user_id,
                samples=start.samples,
                first=start.first,
                end=start.end,
                epochs=start.epochs,
                fresh=start.fresh,
            )
            self.progress = await self.did("batch.survey", asked, Progress)
            settled = {"settled": amount_of(self.progress.spent), "count": self.progress.attempts}
            self.budget.ledger = self.budget.ledger.model_copy(update=settled)
        began = workflow.now().strftime("%Y-%m-%dT%H:%M:%S.%f")
        self.progress = self.progress.model_copy(update={"started": began})

    async def refill(self) -> None:
        """Have jobs at hand for the free places."""
        while not (self.waiting or self.is_paused) and self.place.chunk < self.start.end:
            start = self.start
            asked = PageAsked(
                name=start.name,
                user_id=start.user_id,
                samples=start.samples,
                place=self.place,
                epochs=start.epochs,
                mode=start.mode,
                fresh=start.fresh,
            )
            page: Page = await self.did("batch.page", asked, Page)
            self.waiting.extend(page.jobs)
            self.place = page.then

    def begin(self) -> None:
        """Start what there is room for, several at a time: each start has a price in history."""
        draining = self.is_rescoring and self.is_long()
        if self.is_paused or self.starting or draining or not self.has_time():
            return
        free = self.concurrency - len(self.running)
        left = len(self.waiting) + len(self.again)
        if free < max(1, min(self.concurrency // 8, MOST_TOGETHER, left)):
            return
        for _ in range(min(free, left, AT_ONCE)):
            due = self.again if len(self.again) >= MANY or not self.waiting else self.waiting
            job, name = due[0], self.conversation(due[0])
            granted = Allowance() if self.is_rescoring else self.budget.begin(name, self.start.most)
            if granted is None:
                self.is_short_of_money()
                return
            due.popleft()
            if job.counted is not None:
                self.progress = counted(self.progress, job.counted, -1)
            job = self.running[name] = job.model_copy(update={"counted": None})
            self.launch(self.attempt(name, job, granted))

    async def attempt(self, name: str, job: Job, granted: Allowance) -> None:
        """Make an attempt, and take in what came of it."""
        if self.is_rescoring:
            self.settle(name, job, await rescored_by(self.start, job, self.trial(job, granted)))
            return
        self.starting += 1
        try:
            child = await attempted(self.start, name, job, self.trial(job, granted))
        finally:
            self.starting -= 1
            self.news = True
        if child is None:  # it runs already, begun by a workflow of this batch that was lost
            await tell(f"conv-{name}", "grant", granted)
            await self.follow([name])
            return
        if self.held:
            await tell(f"conv-{name}", "pause")
        try:
            ended = Followed(conversation_id=name, scored=(await child).scored)
        except ChildWorkflowError as error:
            ended = Followed(conversation_id=name, failure=why(error))
        await self.take(ended)

    async def follow(self, names: list[str]) -> None:
        """Wait for conversations that this run did not start."""
        left = set(names)
        while left:
            ended: list[Followed] = await self.did("batch.follow", sorted(left), list[Followed])
            for one in ended:
                left.discard(one.conversation_id)
                await self.take(one)

    async def take(self, ended: Followed) -> None:
        """Take in what became of a conversation; one that nobody knows of is begun again."""
        name, scored = ended.conversation_id, ended.scored
        job = self.running[name]
        if scored is None and ended.failure is None:
            del self.running[name]
            self.again.appendleft(job)
            self.news = True
            return
        if scored is None:
            trial = self.trial(job, Allowance())
            lost = Lost(user_id=self.start.user_id, trial=trial, detail=ended.failure or "")
            self.busy += 1
            try:
                scored = await self.did("batch.lost", lost, Scored)
            finally:
                self.busy -= 1
        self.settle(name, job, scored)

    def settle(self, name: str, job: Job, scored: Scored) -> None:
        """Count what came of an attempt; one that may be made once more waits for its turn."""
        del self.running[name]
        if not self.is_rescoring:
            self.budget.end(name, amount_of(scored.usage))
            self.progress = spent_by(self.progress, scored)
        if self.is_worth_another(job, scored):
            self.again.append(job.model_copy(update={"number": job.number + 1}))
        else:
            self.progress = counted(self.progress, scored)
            finished = {"finished": self.progress.finished + 1}
            self.progress = self.progress.model_copy(update=finished)
        self.judge(scored)
        self.grant_more()
        self.report()
        self.news = True

    def is_worth_another(self, job: Job, scored: Scored) -> bool:
        retries = self.start.retries
        failed = scored.status == "failed" and scored.failure in retries.on
        return failed and job.number < retries.times and not self.is_rescoring

    def judge(self, scored: Scored) -> None:
        """Ask somebody when everything fails for a reason that no sample is at fault for."""
        world = scored.failure in ("infrastructure", "configuration")
        self.in_a_row = self.in_a_row + 1 if scored.status == "failed" and world else 0
        if self.in_a_row >= max(IN_A_ROW, self.concurrency) and not self.is_paused:
            self.pause(
                f"{self.in_a_row} attempts in a row failed, the last one with {scored.code}: "
                f"{scored.detail} Mend that, and then: perdure batch resume {self.start.name}"
            )

    def ask(self, asked: AllowanceAsked) -> None:
        """A sample cannot go on within its allowance."""
        if asked.holder in self.running:
            self.budget.ask(asked)
            self.grant_more()

    def grant_more(self) -> None:
        """Give those who ask what there is; where nobody else can go on, somebody is asked."""
        for name, granted in self.budget.grants().items():
            self.launch(_told(f"conv-{name}", "grant", granted))
        if self.budget.asking:
            self.is_short_of_money()

    def is_short_of_money(self) -> None:
        """What is left does not do for one more: wait for what others give back, or ask."""
        if not self.budget.is_all_there_is(set(self.running)) or self.is_paused:
            return
        if self.start.part is not None:
            self.ask_the_whole()
            return
        self.pause(
            f"The batch has spent {self.budget.spent}, and what is left is not enough to go on: "
            f"perdure batch retune {self.start.name} --cost … (or --tokens …)"
        )

    def ask_the_whole(self) -> None:
        """Ask the batch that this is a part of for a larger share."""
        wanted, used = self.budget.larger(), self.budget.ledger.committed
        if wanted == self.asked_for:
            return
        self.asked_for = wanted
        spent = Allowance(cost=used.cost, tokens=used.tokens)
        holder = workflow.info().workflow_id
        asked = AllowanceAsked(holder=holder, spent=spent, wanted=wanted)
        self.to_the_whole("ask", asked)

    def hold(self) -> None:
        """Pause, and have every conversation that runs pause too."""
        self.pause(f"{HELD} To go on: perdure batch resume {self.start.name}")
        self.held = True
        for name in self.running:
            self.launch(_told(f"conv-{name}", "pause"))

    def pause(self, reason: str) -> None:
        self.stop_clock()
        self.pause_reason = reason

    def resume(self) -> None:
        for name in self.running if self.held else ():
            self.launch(_told(f"conv-{name}", "resume"))
        self.stop_clock()
        self.pause_reason, self.held, self.in_a_row = None, False, 0
        self.grant_more()

    def retune(self, changes: Retune) -> Progress:
        self.concurrency = changes.concurrency or self.concurrency
        self.time = changes.time or self.time
        raised = self.budget.raised(changes.cost, changes.tokens)
        if raised != self.budget.ledger.limit:
            self.limit(raised)
        self.news = True
        return self.now()

    def limit(self, allowed: Allowance) -> None:
        """So much may be spent from now on; a batch that waits for it goes on."""
        self.budget.limit(allowed)
        self.asked_for = None
        if self.is_paused and not self.held:
            self.resume()
        self.grant_more()
        self.news = True

    def report(self) -> None:
        """Tell the whole how far this part is, now and then."""
        if self.start.part is not None and self.progress.finished - self.reported >= REPORTED:
            self.reported = self.progress.finished
            self.to_the_whole("report", self.start.part, self.now())

    def to_the_whole(self, name: str, *value: Any) -> None:
        parent = workflow.info().parent
        if parent is not None:
            self.launch(_told(parent.workflow_id, name, *value))

    async def stop(self) -> Progress:
        """End all that runs; what has a result keeps it."""
        self.stop_working()
        self.stop_clock()
        for name in list(self.running):
            await cancel(f"conv-{name}")
        self.running.clear()
        return self.now().model_copy(update={"status": "stopped", "reason": "It was cancelled."})

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

    @property
    def is_rescoring(self) -> bool:
        return self.start.mode == "rescore"

    def is_over(self) -> bool:
        if self.running or self.busy:
            return False
        nothing_left = not (self.waiting or self.again) and self.place.chunk >= self.start.end
        return self.out_of_time or nothing_left

    def has_time(self) -> bool:
        self.out_of_time = self.time is not None and self.seconds() >= self.time
        return not self.out_of_time

    def seconds(self) -> float:
        """How long it has been at work: a pause does not count."""
        if self.is_paused:
            return self.progress.seconds
        return self.progress.seconds + (workflow.now() - self.since) / timedelta(seconds=1)

    def stop_clock(self) -> None:
        self.progress = self.progress.model_copy(update={"seconds": self.seconds()})
        self.since = workflow.now()
        self.news = True

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

    def conversation(self, job: Job) -> str:
        start = self.start
        return conversation_id(f"{start.user_id}/{start.name}", job.sample, job.epoch, job.number)

    def trial(self, job: Job, granted: Allowance) -> Trial:
        return Trial(
            batch=self.start.name,
            samples=self.start.samples,
            chunk=job.chunk,
            line=job.line,
            epoch=job.epoch,
            number=job.number,
            setup=job.setup,
            turns=job.turns,
            scoring=self.start.scoring,
            look=self.start.look,
            allowance=None if granted == Allowance() else granted,
        )


async def _told(workflow_id: str, name: str, *value: Any) -> None:
    await tell(workflow_id, name, *value)

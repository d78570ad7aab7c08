"""A sliding window over the samples of a batch: so many conversations at a time."""

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError

from agent.trial import Allowance, Scored, Trial
from evaluation.ledger import amount_of
from evaluation.progress import Progress, counted, spent_by
from evaluation.running import (
    Followed,
    Job,
    Lost,
    Page,
    PageAsked,
    SampleSet,
    Surveyed,
)
from evaluation.sample import conversation_id
from workflows.attempts import attempted, rescored_by
from workflows.failures import why
from workflows.spending import Spending
from workflows.working import cancel, tell

MOST_TOGETHER = 16
"""Free places that are waited for, so that several children are started in one workflow task."""

IN_A_ROW = 10
"""Failures one after the other that are not the samples' fault, before somebody is asked."""

MANY = 100
"""Attempts that wait to be made once more, before they go before those that were never made."""


class Window(Spending):
    """What runs, what has ended and what is left, of one batch or of a part of one."""

    async def work(self) -> Progress:
        """Raises ActivityError where the batch itself cannot be read."""
        if self.start.progress is None:
            await self.survey()
        if self.running:
            self.launch(self.follow(list(self.running)))
        self.show()
        while not self.is_over():
            self.news = False
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
            asked = Surveyed(of=self.sample_set(), first=start.first, end=start.end)
            self.progress = await self.did("batch.survey", asked, Progress)
            settled = {"settled": amount_of(self.progress.spent), "count": self.progress.attempts}
            self.budget.ledger = self.budget.ledger.model_copy(update=settled)
        began = workflow.now().strftime("%Y-%m-%dT%H:%M:%S.%f")
        self.progress = self.progress.model_copy(update={"started": began})

    async def refill(self) -> None:
        """Have jobs at hand for the free places."""
        while not self.waiting and self.place.chunk < self.start.end:
            asked = PageAsked(of=self.sample_set(), place=self.place, mode=self.start.mode)
            page: Page = await self.did("batch.page", asked, Page)
            self.waiting.extend(page.jobs)
            self.place = page.then
        self.refilling = False
        self.begin()

    def begin(self) -> None:
        """Start what there is room for, several at a time: each start has a price in history.

        What is started depends on what has ended, in its order, and not on how much of it a
        workflow task brings: a query may bring a part of it earlier than it is replayed.
        """
        if self.is_paused or self.is_long() or not self.has_time():
            return
        before = len(self.running)
        self.begin_more()
        if len(self.running) > before:
            self.show()
        if not (self.waiting or self.refilling) and self.place.chunk < self.start.end:
            self.refilling = True
            self.launch(self.refill())

    def begin_more(self) -> None:
        free = self.concurrency - len(self.running)
        left = len(self.waiting) + len(self.again)
        if free < min(self.together(), max(1, left)):
            return
        for _ in range(min(free, left)):  # at 1.2 KB each: Temporal takes 4 MB at a time
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

    def together(self) -> int:
        """How many places are left free before they are filled."""
        return max(1, min(self.concurrency // 8, MOST_TOGETHER))

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
        self.begin()
        if self.is_paused or not (self.waiting or self.again):  # nothing more is begun, and shown
            self.show()
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

    async def stop(self) -> Progress:
        """End all that runs; what has a result keeps it."""
        self.stop_working()
        self.stop_clock()
        for name in list(self.running):
            await cancel(f"conv-{name}")
        self.running.clear()
        return self.now().model_copy(update={"status": "stopped", "reason": "It was cancelled."})

    def sample_set(self) -> SampleSet:
        start = self.start
        return SampleSet(
            name=start.name,
            user_id=start.user_id,
            samples=start.samples,
            epochs=start.epochs,
            fresh=start.fresh,
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

"""What a batch may spend while it runs, and what is done when nothing is left."""

from temporalio import workflow

from agent.trial import Allowance, AllowanceAsked
from evaluation.progress import Progress
from evaluation.running import Retune
from workflows.standing import Standing
from workflows.working import tell


class Spending(Standing):
    """Samples reserve, ask and give back; a part asks the whole, and the whole its operator."""

    def ask(self, asked: AllowanceAsked) -> None:
        """A sample cannot go on within its allowance."""
        if asked.holder in self.running:
            self.budget.ask(asked)
            self.grant_more()

    def grant_more(self) -> None:
        """Give those who ask what there is; where nobody else can go on, somebody is asked."""
        for name, granted in self.budget.grants().items():
            self.launch(tell(f"conv-{name}", "grant", granted))
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

    def resume(self) -> None:
        for name in self.running if self.held else ():
            self.launch(tell(f"conv-{name}", "resume"))
        self.stop_clock()
        self.pause_reason, self.held, self.in_a_row = None, False, 0
        self.grant_more()
        self.show()

    def retune(self, changes: Retune) -> Progress:
        self.concurrency = changes.concurrency or self.concurrency
        self.time = changes.time or self.time
        raised = self.budget.raised(changes.cost, changes.tokens)
        if raised != self.budget.ledger.limit:
            self.limit(raised)
        self.show()
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

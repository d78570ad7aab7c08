"""A conversation whose people and whose steps do what chance has them do."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from agent.answer import events_of
from agent.assessment import Assessment
from agent.configure import changed
from agent.decide import decide
from agent.inbox import (
    CloseAsked,
    CondenseAsked,
    Confirmed,
    Failed,
    InterruptAsked,
    Item,
    Noted,
    PauseAsked,
    Refused,
    Rejected,
    ResumeAsked,
    Said,
)
from agent.spec import (
    RISKS,
    Spec,
)
from agent.state import HARMLESS, State, asking, knows, lost, uncondensed, untitled
from agent.steps import (
    Act,
    Condense,
    Delegate,
    Entitle,
    Prepare,
    Record,
    Settle,
    Step,
    Think,
)
from events.digest import Digest
from events.event import AnyEvent
from events.usage import Usage
from tests.agent.chances import CHANGES, specs
from tests.agent.offering import Offering, offered
from tests.agent.recording import recorded
from tests.builders import (
    after,
    call,
    completion,
    condensation,
    configured,
    digests,
    error,
    failed,
    id_of,
    observation,
    opened,
    overflow,
    partial,
    prompt,
    understood,
    updated,
)

FAULTS = ("refused", "unavailable", "overflow", "stopped")

MOST_TRIES = 3
"""Overflows in a row that condensing is tried against."""

TOOLS = {
    **offered(lambda name, _: understood(name), "write", "delegate", "finish", "think"),
    "look": Offering(prompt().tools[0], lambda _: understood("look"), lambda _: ("file:a",)),
}

batches = st.lists(
    st.sampled_from(["look", "look", "write", "delegate", "think", "finish", "fly"]),
    min_size=1,
    max_size=3,
)

SIGNALS = (
    *(PauseAsked(), InterruptAsked(), CondenseAsked(), CloseAsked()),
    *(Noted(key="title", value="Doors"), Refused(detail="Too long.")),
)


class Drive:
    """What it has done is checked against the laws as it goes."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.state = State()
        self.inbox: list[Item] = []
        self.log: list[Digest] = []
        self.names: dict[int, str] = {}
        self.answers: dict[int, int] = {}
        self.allowed: set[int] = set()
        self.done: list[int] = []
        self.seconds_left = data.draw(st.sampled_from([None, None, 500.0, 40.0]))
        self.take([opened(), configured(data.draw(specs))])

    @property
    def spec(self) -> Spec:
        assert self.state.spec is not None
        return self.state.spec

    # People.

    def disturb(self) -> None:
        """Somebody wants something, or the workflow is lost and opened again."""
        asks: list[Callable[[], Item | None]] = [
            *[lambda: Said(text="hi")] * 4,
            *[ResumeAsked] * 2,
            *[self.confirmed] * 2,
            *[self.rejected, self.changed, self.repeated, self.crash],
            *[lambda: self.draw(*SIGNALS)] * 5,
        ]
        item = self.draw(*asks)()
        if item is not None:
            self.inbox.append(item)

    def slots(self) -> tuple[int, ...]:
        """Some of what waits, and some of what was never there."""
        waits = [one.seq for one in asking(self.state)] or [0]
        chosen = st.lists(st.sampled_from([*waits, *waits, self.state.next_seq]), max_size=3)
        return tuple(self.data.draw(chosen))

    def confirmed(self) -> Confirmed:
        return Confirmed(actions=self.slots())

    def rejected(self) -> Rejected:
        return Rejected(actions=self.slots(), reason="No.")

    def changed(self) -> Item:
        return changed(self.spec, self.draw(*CHANGES))

    def repeated(self) -> Item | None:
        said = Said(text="hi", message_id=self.draw("m-1", "m-2"))
        twice = knows(self.state, said) or said in self.inbox
        return None if twice else said

    def crash(self) -> None:
        self.take([opened("another run")])

    # Steps.

    def rest(self, steps: int) -> bool:
        """Whether it comes to rest within so many rounds of steps."""
        return any(not self.step() for _ in range(steps))

    def step(self) -> tuple[Step, ...]:
        if self.seconds_left is not None:
            self.seconds_left -= 5.0
        steps = decide(self.state, self.inbox, self.seconds_left)
        assert len(steps) <= 1 or all(isinstance(step, Act | Delegate) for step in steps)
        for step in self.data.draw(st.permutations(steps)) if len(steps) > 1 else steps:
            self.do(step)
        return steps

    def do(self, step: Step) -> None:
        match step:
            case Record():
                self.record(step)
            case Prepare():
                self.take([self.draw(*[prompt()] * 7, failed("tool_not_found"))])
            case Think():
                self.think()
            case Condense():
                self.condense(step)
            case Entitle():
                self.entitle()
            case Act(action=seq) | Delegate(action=seq):
                self.act(seq)
            case Settle(action=seq):
                self.take([self.draw(error, observation)(id_of(seq), self.names[seq])])

    def record(self, step: Record) -> None:
        refused = set(step.refusal.actions) if step.refusal else set[int]()
        for item in step.items:
            if isinstance(item, Confirmed):
                self.allowed |= set(item.actions) - refused
        self.take(recorded(self.state, step))
        del self.inbox[: step.taken]

    def think(self) -> None:
        self.check_limits()
        outcome = self.draw("words", "words", *["calls"] * 8, *FAULTS)
        match outcome:
            case "unavailable":
                self.inbox.append(Failed(code="model_unavailable", detail="Try again."))
            case "refused":
                self.take([failed("auth")])
            case "overflow":
                self.take([overflow()])
            case "stopped":
                self.inbox.append(InterruptAsked())
                self.take(self.draw([partial()], []))
            case _:
                self.answer([] if outcome == "words" else self.data.draw(batches))

    def check_limits(self) -> None:
        limits, spent = self.spec.limits, self.state.spent
        tokens = spent.prompt_tokens + spent.completion_tokens
        assert self.answers.get(self.state.turn, 0) < limits.max_iterations
        assert limits.max_budget is None or spent.cost < limits.max_budget
        assert limits.max_tokens is None or tokens < limits.max_tokens
        assert limits.max_events is None or self.state.next_seq < limits.max_events
        assert self.seconds_left is None or self.seconds_left > 0

    def answer(self, names: list[str]) -> None:
        turn, base = self.state.turn, self.state.next_seq
        self.answers[turn] = self.answers.get(turn, 0) + 1
        made = [call(name, f"call_{nth}") for nth, name in enumerate(names)]
        answer = completion(*made, words="Hm.", response=f"response-{base}")
        risk = self.draw(*RISKS)
        told = Assessment("risky", [("rules", lambda _: risk)], lambda nth: id_of(base + nth))
        bill = Usage(cost=self.draw(0.0, 0.25, 1.0), prompt_tokens=self.draw(10, 300))
        self.take(events_of(answer, TOOLS, told), bill)

    def condense(self, step: Condense) -> None:
        outcome = self.draw("done", "done", "in vain", "stopped", "refused")
        if step.tries > MOST_TRIES:
            outcome = "in vain"
        if outcome == "stopped":
            self.inbox.append(InterruptAsked())
        elif outcome == "refused":
            self.take([failed("auth")])
        elif outcome == "in vain":
            self.in_vain(step)
        else:
            first = self.state.next_seq - max(1, self.state.shown // 2)
            bill = Usage(cost=self.draw(0.0, 0.5), purpose="condense")
            self.take([condensation(first, self.state.next_seq - 1, "In short.")], bill)

    def in_vain(self, step: Condense) -> None:
        match step.asked:
            case "size":
                self.state = uncondensed(self.state)
            case "user":
                self.take([updated("not_condensed", "There is nothing to condense yet.")])
            case "overflow":
                self.take([failed("context_overflow")])

    def entitle(self) -> None:
        if self.draw(True, False):
            self.take([updated("title", "Doors")], Usage(cost=0.25, purpose="title"))
        else:
            self.state = untitled(self.state)

    def act(self, seq: int) -> None:
        [pending] = [one for one in self.state.pending if one.seq == seq]
        asks = self.spec.confirmation.asks(pending.risk) and pending.tool_name not in HARMLESS
        assert not asks or seq in self.allowed, "nobody has allowed this"
        assert pending.repeatable or seq not in self.done, "this must not be done twice"
        assert self.seconds_left is None or self.seconds_left > 0
        self.done.append(seq)
        outcome = self.draw("returned", "returned", "returned", "raised", "lost", "lost")
        if outcome == "lost":
            self.state = lost(self.state, seq, "gone")
        else:
            made = observation if outcome == "returned" else error
            self.take([made(id_of(seq), self.names[seq])])

    def take(self, events: Sequence[AnyEvent], usage: Usage | None = None) -> None:
        facts = digests(*events, start=self.state.next_seq, usage=usage)
        self.names |= {fact.seq: fact.tool_name for fact in facts if fact.tool_name}
        self.log += facts
        self.state = after(self.state, *events, usage=usage)

    def draw(self, *choices: Any) -> Any:
        return self.data.draw(st.sampled_from(choices))

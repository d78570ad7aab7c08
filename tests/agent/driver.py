"""A conversation driven by random requests and random outcomes of steps."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from perdure.agent.calls.answer import parse_response
from perdure.agent.calls.risk import RiskAssessor
from perdure.agent.configure import check_changes
from perdure.agent.loop.decide import decide
from perdure.agent.loop.inbox import (
    Approval,
    CloseRequest,
    CondenseRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    RefusedInput,
    Rejection,
    ResumeRequest,
    StateNote,
    TurnFailure,
    UserMessage,
    WebhookFailure,
)
from perdure.agent.loop.state import (
    HARMLESS_TOOLS,
    RunNotes,
    State,
    actions_to_confirm,
    is_recorded,
    note_lost_call,
    postpone_condensing,
    update_notes,
)
from perdure.agent.loop.steps import (
    Act,
    Condense,
    Delegate,
    GenerateTitle,
    Prepare,
    Record,
    ResolveLostCall,
    Step,
    Think,
)
from perdure.agent.policies import RISK_LEVELS
from perdure.agent.spec import Agent
from perdure.events.event import AnyEvent
from perdure.events.summary import EventSummary
from perdure.events.usage import Usage
from tests.agent.chances import CHANGES, specs
from tests.agent.offering import FakeTool, fake_tools
from tests.agent.recording import events_of_step
from tests.builders import (
    apply_events,
    call,
    completion,
    condensation,
    error,
    error_event,
    id_of,
    observation,
    opened_event,
    overflow,
    parsed_action,
    partial_message,
    prompt,
    spec_event,
    state_update,
    summaries_of,
)

FAILURES = ("refused", "unavailable", "overflow", "stopped")

MAX_OVERFLOWS = 3
"""Overflows in a row after which condensing fails."""

TOOLS = {
    **fake_tools(lambda name, _: parsed_action(name), "write", "delegate", "finish", "think"),
    "look": FakeTool(prompt().tools[0], lambda _: parsed_action("look"), lambda _: ("file:a",)),
}

batches = st.lists(
    st.sampled_from(["look", "look", "write", "delegate", "think", "finish", "fly"]),
    min_size=1,
    max_size=3,
)

SIGNALS = (
    *(PauseRequest(), InterruptRequest(), CondenseRequest(), CloseRequest()),
    *(StateNote(key="title", value="Doors"), RefusedInput(detail="Too long.")),
    WebhookFailure(webhook_id="1f", event="turn_end", event_id="e", reason="It said 500."),
)


class RandomConversation:
    """A conversation whose every step is checked against the laws."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.state = State()
        self.notes = RunNotes()
        self.inbox: list[InboxItem] = []
        self.log: list[EventSummary] = []
        self.names: dict[int, str] = {}
        self.responses: dict[int, int] = {}
        self.approved: set[int] = set()
        self.done: list[int] = []
        self.seconds_left = data.draw(st.sampled_from([None, None, 500.0, 40.0]))
        self.append([opened_event(), spec_event(data.draw(specs))])

    @property
    def spec(self) -> Agent:
        assert self.state.spec is not None
        return self.state.spec

    # People.

    def add_request(self) -> None:
        """Add a random request to the inbox, or lose the workflow and reopen it."""
        asks: list[Callable[[], InboxItem | None]] = [
            *[lambda: UserMessage(text="hi")] * 4,
            lambda: UserMessage(text="hi", run=False),
            *[ResumeRequest] * 2,
            *[self.approval] * 2,
            *[self.rejection, self.spec_change, self.new_message, self.crash],
            *[lambda: self.draw(*SIGNALS)] * 5,
        ]
        item = self.draw(*asks)()
        if item is not None:
            self.inbox.append(item)

    def draw_seqs(self) -> tuple[int, ...]:
        """Draw slots of actions that wait, or of no action."""
        waits = [item.seq for item in actions_to_confirm(self.state)] or [0]
        chosen = st.lists(st.sampled_from([*waits, *waits, self.state.next_seq]), max_size=3)
        return tuple(self.data.draw(chosen))

    def approval(self) -> Approval:
        return Approval(actions=self.draw_seqs())

    def rejection(self) -> Rejection:
        return Rejection(actions=self.draw_seqs(), reason="No.", run=self.draw(True, False))

    def spec_change(self) -> InboxItem:
        return check_changes(self.spec, self.draw(*CHANGES))

    def new_message(self) -> InboxItem | None:
        message = UserMessage(text="hi", message_id=self.draw("m-1", "m-2"))
        twice = is_recorded(self.state, message) or message in self.inbox
        return None if twice else message

    def crash(self) -> None:
        self.notes = RunNotes()
        self.append([opened_event("another run")])

    # Steps.

    def runs_to_rest(self, steps: int) -> bool:
        """Check that the conversation comes to rest within so many rounds of steps."""
        return any(not self.step() for _ in range(steps))

    def step(self) -> tuple[Step, ...]:
        if self.seconds_left is not None:
            self.seconds_left -= 5.0
        steps = decide(self.state, self.inbox, self.seconds_left, self.notes)
        assert len(steps) <= 1 or all(isinstance(step, Act | Delegate) for step in steps)
        for step in self.data.draw(st.permutations(steps)) if len(steps) > 1 else steps:
            self.do(step)
        return steps

    def do(self, step: Step) -> None:
        match step:
            case Record():
                self.record(step)
            case Prepare():
                self.append([self.draw(*[prompt()] * 7, error_event("tool_not_found"))])
            case Think():
                self.think()
            case Condense():
                self.condense(step)
            case GenerateTitle():
                self.generate_title()
            case Act(action_seq=seq) | Delegate(action_seq=seq):
                self.act(seq)
            case ResolveLostCall(action_seq=seq):
                self.append([self.draw(error, observation)(id_of(seq), self.names[seq])])

    def record(self, step: Record) -> None:
        refused = set(step.refusal.action_seqs) if step.refusal else set[int]()
        for item in step.items:
            if isinstance(item, Approval):
                self.approved |= set(item.actions) - refused
        self.append(events_of_step(self.state, step))
        del self.inbox[: step.from_inbox]

    def think(self) -> None:
        self.check_limits()
        outcome = self.draw("words", "words", *["calls"] * 8, *FAILURES)
        match outcome:
            case "unavailable":
                self.inbox.append(TurnFailure(code="model_unavailable", detail="Try again."))
            case "refused":
                self.append([error_event("auth")])
            case "overflow":
                self.append([overflow()])
            case "stopped":
                self.inbox.append(InterruptRequest())
                self.append(self.draw([partial_message()], []))
            case _:
                self.answer([] if outcome == "words" else self.data.draw(batches))

    def check_limits(self) -> None:
        limits, spent = self.spec.limits, self.state.usage
        tokens = spent.prompt_tokens + spent.completion_tokens
        assert self.responses.get(self.state.turn, 0) < limits.max_iterations
        assert limits.max_budget is None or spent.cost < limits.max_budget
        assert limits.max_tokens is None or tokens < limits.max_tokens
        assert limits.max_events is None or self.state.next_seq < limits.max_events
        assert self.seconds_left is None or self.seconds_left > 0

    def answer(self, names: list[str]) -> None:
        turn, base = self.state.turn, self.state.next_seq
        self.responses[turn] = self.responses.get(turn, 0) + 1
        made = [call(name, f"call_{nth}") for nth, name in enumerate(names)]
        answer = completion(*made, words="Hm.", response=f"response-{base}")
        risk = self.draw(*RISK_LEVELS)
        assessor = RiskAssessor("risky", [("rules", lambda _: risk)], lambda nth: id_of(base + nth))
        bill = Usage(cost=self.draw(0.0, 0.25, 1.0), prompt_tokens=self.draw(10, 300))
        self.append(parse_response(answer, TOOLS, assessor), bill)

    def condense(self, step: Condense) -> None:
        outcome = self.draw("done", "done", "in vain", "stopped", "refused")
        if step.overflows > MAX_OVERFLOWS:
            outcome = "in vain"
        if outcome == "stopped":
            self.inbox.append(InterruptRequest())
        elif outcome == "refused":
            self.append([error_event("auth")])
        elif outcome == "in vain":
            self.fail_to_condense(step)
        else:
            first = self.state.next_seq - max(1, self.state.view_events // 2)
            bill = Usage(cost=self.draw(0.0, 0.5), purpose="condense")
            self.append([condensation(first, self.state.next_seq - 1, "In short.")], bill)

    def fail_to_condense(self, step: Condense) -> None:
        match step.reason:
            case "size":
                self.notes = postpone_condensing(self.notes, self.state)
            case "user":
                self.append([state_update("not_condensed", "There is nothing to condense yet.")])
            case "overflow":
                self.append([error_event("context_overflow")])

    def generate_title(self) -> None:
        if self.draw(True, False):
            self.append([state_update("title", "Doors")], Usage(cost=0.25, purpose="title"))
        else:
            self.notes = self.notes.model_copy(update={"title_failed": True})

    def act(self, seq: int) -> None:
        [pending] = [item for item in self.state.pending if item.seq == seq]
        asks = (
            self.spec.confirmation.required_for(pending.risk)
            and pending.tool_name not in HARMLESS_TOOLS
        )
        assert not asks or seq in self.approved, "nobody has allowed this"
        assert pending.repeatable or seq not in self.done, "this must not be done twice"
        assert self.seconds_left is None or self.seconds_left > 0
        self.done.append(seq)
        outcome = self.draw("returned", "returned", "returned", "raised", "lost", "lost")
        if outcome == "lost":
            self.notes = note_lost_call(self.notes, seq, "gone")
        else:
            made = observation if outcome == "returned" else error
            self.append([made(id_of(seq), self.names[seq])])

    def append(self, events: Sequence[AnyEvent], usage: Usage | None = None) -> None:
        facts = summaries_of(*events, start=self.state.next_seq, usage=usage)
        self.names |= {fact.seq: fact.tool_name for fact in facts if fact.tool_name}
        self.log += facts
        self.state = apply_events(self.state, *events, usage=usage)
        self.notes = update_notes(self.notes, self.state, facts)

    def draw(self, *choices: Any) -> Any:
        return self.data.draw(st.sampled_from(choices))

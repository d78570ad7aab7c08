"""Whatever comes of its steps, a conversation goes on until it rests, and can go on from there."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.answer import Parse, events_of
from agent.decide import decide
from agent.inbox import CloseAsked, Failed, Item, PauseAsked, Refused, ResumeAsked, Said
from agent.spec import Limits
from agent.state import State, lost
from agent.steps import Act, Prepare, Record, Settle, Step, Think
from events.control import PauseEvent
from events.event import AnyEvent
from events.usage import Usage
from tests.builders import (
    SPEC,
    WHEN,
    after,
    call,
    completion,
    configured,
    digests,
    error,
    failed,
    id_of,
    observation,
    opened,
    prompt,
    status,
    understood,
    user,
)

PAUSE = PauseEvent(timestamp=WHEN)
BUDGET = 2.0

LONG_ENOUGH = 60
"""Steps: a turn has at most 3 answers of 3 calls, each lost and settled, and a failure or two."""


def parses(name: str) -> Parse:
    return lambda _: understood(name)


TOOLS = {name: parses(name) for name in ("look", "write", "finish")}

batches = st.lists(st.sampled_from(["look", "write", "finish", "fly"]), min_size=1, max_size=3)

ASKED: list[Item | None] = [PauseAsked(), ResumeAsked(), ResumeAsked(), CloseAsked(), None]

people = st.sampled_from([*[Said(text="hi")] * 4, *ASKED])
"""None: the workflow is lost, and the conversation opened again."""


def recorded(item: Item) -> AnyEvent:
    """The event that `log.append` writes for an item."""
    match item:
        case Said():
            return user(item.text, item.message_id)
        case PauseAsked():
            return PAUSE
        case ResumeAsked():
            return status("resumed")
        case CloseAsked():
            return status("closed")
        case Failed():
            return failed(item.code, item.detail)
        case Refused():
            return status("no").model_copy(update={"key": "refused"})


class Drive:
    """A conversation whose steps come out as chance has it."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.limits = Limits(max_iterations=data.draw(st.integers(0, 3)), max_budget=BUDGET)
        spec = SPEC.model_copy(update={"limits": self.limits})
        self.state = after(State(), opened(), configured(spec))
        self.inbox: list[Item] = []
        self.names: dict[int, str] = {}
        self.answers: dict[int, int] = {}

    def until_it_rests(self) -> None:
        for _ in range(LONG_ENOUGH):
            if not self.step():
                return

    def step(self) -> Step | None:
        step = decide(self.state, self.inbox)
        if step:
            self.do(step)
        return step

    def do(self, step: Step) -> None:
        match step:
            case Record(items=items):
                self.take([recorded(item) for item in items])
                del self.inbox[: len(items)]
            case Prepare():
                self.take([self.draw(prompt(), prompt(), failed("tool_not_found"))])
            case Think():
                self.think()
            case Act(action=seq):
                self.act(seq)
            case Settle(action=seq):
                self.take([self.draw(error, observation)(id_of(seq), self.names[seq])])

    def think(self) -> None:
        assert self.state.spent.cost < BUDGET
        outcome = self.draw("words", "calls", "calls", "calls", "refused", "unavailable")
        if outcome == "unavailable":
            self.inbox.append(Failed(code="model_unavailable", detail="Try again."))
        elif outcome == "refused":
            self.take([failed("auth")])
        else:
            self.answer([] if outcome == "words" else self.data.draw(batches))

    def answer(self, names: list[str]) -> None:
        turn = self.state.turn
        self.answers[turn] = self.answers.get(turn, 0) + 1
        made = [call(name, f"call_{nth}") for nth, name in enumerate(names)]
        answer = completion(*made, words="Hm.", response=f"response-{self.state.next_seq}")
        self.take(events_of(answer, TOOLS), Usage(cost=self.draw(0.0, 0.25, 1.0)))

    def act(self, seq: int) -> None:
        outcome = self.draw("returned", "returned", "returned", "raised", "lost")
        if outcome == "lost":
            self.state = lost(self.state, seq, "gone")
        else:
            made = observation if outcome == "returned" else error
            self.take([made(id_of(seq), self.names[seq])])

    def take(self, events: Sequence[AnyEvent], usage: Usage | None = None) -> None:
        facts = digests(*events, start=self.state.next_seq, usage=usage)
        self.names |= {fact.seq: fact.tool_name for fact in facts if fact.tool_name}
        self.state = after(self.state, *events, usage=usage)

    def draw(self, *choices: Any) -> Any:
        return self.data.draw(st.sampled_from(choices))


@given(st.data())
def test_no_state_is_a_dead_end(data: st.DataObject) -> None:
    drive = Drive(data)
    for asked in data.draw(st.lists(people, max_size=6)):
        if asked is None:
            drive.take([opened("another run")])
        else:
            drive.inbox.append(asked)
        for _ in range(data.draw(st.integers(0, 8))):
            drive.step()
    drive.until_it_rests()
    assert decide(drive.state, drive.inbox) is None
    assert drive.state.at_rest
    assert not drive.inbox
    assert not [one for one in drive.state.pending if one.lost]
    assert max(drive.answers.values(), default=0) <= drive.limits.max_iterations


@given(st.data())
@settings(max_examples=30)
def test_a_conversation_that_rests_can_be_set_to_work_and_closed(data: st.DataObject) -> None:
    drive = Drive(data)
    drive.inbox = [Said(text="hi")]
    drive.until_it_rests()
    drive.inbox = [ResumeAsked(), Said(text="Go on.")]
    assert isinstance(drive.step(), Record)
    assert not drive.state.at_rest
    assert decide(drive.state, ())
    drive.do(Record(items=(CloseAsked(),)))
    assert drive.state.status == "closed"
    assert decide(drive.state, ()) is None

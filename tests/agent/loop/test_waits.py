"""The decisions about waits: when they begin, when they end, and what of it is kept."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.activities.support.inbox_events import to_event
from perdure.agent.loop.decide import decide
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import (
    Answer,
    CloseRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    RefusedInput,
    ResumeRequest,
    Signal,
    UserMessage,
    WaitEnd,
    WaitStart,
)
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Record
from perdure.agent.loop.wait_steps import LATE_ANSWER
from perdure.agent.policies import Confirmation
from perdure.events.event import AnyEvent
from perdure.events.summary import EventSummary
from perdure.events.tools import ObservationEvent, UserRejectObservation
from perdure.events.waiting import QuestionEvent, SignalEvent, WaitEvent
from tests.builders import (
    SPEC,
    TIMESTAMP,
    action,
    id_of,
    observation,
    opened_event,
    prompt,
    rejection,
    spec_event,
    status_event,
    summaries_of,
    user,
)

LATER = "2026-03-01T09:00:01.000000"
UNTIL = "2026-03-01T10:00:00.000000"
CALL = {"timestamp": TIMESTAMP, "action_id": id_of(4), "tool_call_id": "call_1"}

WAIT = WaitEvent(**CALL, until=UNTIL, signal="paid")
QUESTION = QuestionEvent(**CALL, question="Which?", choices=("red", "blue"))


def state_of(*events: AnyEvent) -> State:
    """Fold a log whose agent has tools that wait, and has called `wait` in slot 4."""
    log = summaries_of(opened_event(), spec_event(SPEC), prompt(), user(), action("wait"), *events)
    waits = {"suspending": ("wait", "ask_user"), "repeatable": ("wait", "look")}
    return fold(State(), [_change(it, waits) if it.seq == 2 else it for it in log])


def _change(summary: EventSummary, fields: Mapping[str, tuple[str, ...]]) -> EventSummary:
    return summary.model_copy(update=fields)


def ended_by(name: str) -> AnyEvent:
    return observation(id_of(4), "wait").model_copy(update={"ended_by": name})


def items(state: State, *inbox: InboxItem, at: str = TIMESTAMP) -> list[InboxItem]:
    """Return what is recorded next; an empty list if there is nothing to do."""
    steps = decide(state, inbox, at=at)
    assert all(isinstance(step, Record) for step in steps)
    return [item for step in steps if isinstance(step, Record) for item in step.items]


def test_a_call_of_a_tool_that_waits_is_recorded_and_not_run() -> None:
    assert items(state_of()) == [WaitStart(action=4)]
    strict = SPEC.model_copy(update={"confirmation": Confirmation(policy="always")})
    state = state_of().model_copy(update={"spec": strict})
    assert items(state) == [WaitStart(action=4)]


def test_a_tool_of_that_name_without_the_trait_is_run_as_any_other() -> None:
    log = (opened_event(), spec_event(SPEC), prompt(), user(), action("wait"))
    [step] = decide(fold(State(), summaries_of(*log)), ())
    assert isinstance(step, Act)


def test_a_message_after_the_call_makes_the_wait_pointless() -> None:
    [end] = items(state_of(user("Wait.")))
    assert end == WaitEnd(action=4, ended_by="message", has_begun=False)


@pytest.mark.parametrize(("event", "status"), [(WAIT, "waiting"), (QUESTION, "waiting_for_answer")])
def test_a_wait_that_has_begun_leaves_nothing_to_do(event: AnyEvent, status: str) -> None:
    state = state_of(event)
    assert (state.status, state.at_rest) == (status, True)
    assert items(state) == []


def test_a_wait_ends_at_its_time_and_not_before() -> None:
    assert items(state_of(WAIT), at="2026-03-01T09:59:59.999999") == []
    assert items(state_of(WAIT), at=UNTIL) == [WaitEnd(action=4, ended_by="time")]
    assert items(state_of(QUESTION), at="2999-01-01T00:00:00.000000") == []


def test_a_wait_ends_by_its_signal_the_oldest_first_also_one_of_before() -> None:
    paid = SignalEvent(timestamp=LATER, name="paid", signal_id="1")
    other = SignalEvent(timestamp=LATER, name="sent", signal_id="2")
    for log, seq in (((WAIT, other, paid, paid), 7), ((paid, WAIT, paid), 5)):
        state = state_of(*log)
        assert items(state) == [WaitEnd(action=4, ended_by="signal", signal_seq=seq)]
        woken = fold(state, summaries_of(ended_by("signal"), start=state.next_seq))
        assert (woken.status, woken.wait, woken.pending) == ("running", None, ())
        kept = [signal.seq for signal in state.signals if signal.seq != seq]
        assert [signal.seq for signal in woken.signals] == kept


def test_a_wait_that_ends_otherwise_takes_no_signal() -> None:
    state = state_of(SignalEvent(timestamp=LATER, name="paid"), WAIT, ended_by("message"))
    assert [signal.name for signal in state.signals] == ["paid"]


MESSAGE = UserMessage(text="Blue.")
END = WaitEnd(action=4, ended_by="message")
FIRST, SECOND = Answer(action=4, text="red"), Answer(action=4, text="blue")
LATE = RefusedInput(detail=LATE_ANSWER)
QUIET = UserMessage(text="By the way.", run=False)


@pytest.mark.parametrize(
    ("inbox", "recorded"),
    [
        ([MESSAGE], [END, MESSAGE]),
        ([MESSAGE, MESSAGE], [END, MESSAGE, MESSAGE]),
        ([QUIET], [QUIET]),
        ([QUIET, MESSAGE], [QUIET, END, MESSAGE]),
        ([FIRST, SECOND], [FIRST, LATE]),
        ([MESSAGE, FIRST], [MESSAGE, FIRST]),
        ([FIRST, MESSAGE], [FIRST, MESSAGE]),
        ([Answer(action=9, text="red")], [LATE]),
        ([MESSAGE, InterruptRequest()], [MESSAGE, InterruptRequest()]),
        ([CloseRequest(), MESSAGE], [CloseRequest(), MESSAGE]),
    ],
)
def test_what_comes_ends_a_question_once(inbox: list[InboxItem], recorded: list[InboxItem]) -> None:
    assert items(state_of(QUESTION), *inbox) == recorded


def test_an_interrupt_refuses_the_wait_unless_an_answer_is_there() -> None:
    [step] = decide(state_of(QUESTION), [InterruptRequest()])
    assert isinstance(step, Record)
    assert step.refusal is not None
    assert step.refusal.action_seqs == (4,)
    [step] = decide(state_of(QUESTION), [FIRST, InterruptRequest()])
    assert isinstance(step, Record)
    assert step.refusal is None


def test_a_resumption_goes_on_with_the_wait() -> None:
    paused = state_of(WAIT, status_event("resumed"))
    assert (paused.status, paused.wait is not None) == ("waiting", True)
    state = state_of(WAIT).model_copy(update={"status": "paused"})
    assert items(state, at=UNTIL) == []
    resumed = fold(state, summaries_of(status_event("resumed"), start=state.next_seq))
    assert resumed.status == "waiting"


def test_a_deadline_ends_the_turn_of_an_agent_that_waits() -> None:
    [step] = decide(state_of(WAIT), (), seconds_left=-1.0)
    assert isinstance(step, Record)
    assert [item.kind for item in step.items] == ["failure"]


@given(st.lists(st.sampled_from(["paid", "sent", "x"]), max_size=120))
def test_no_more_signals_are_kept_than_fit(names: list[str]) -> None:
    state = state_of(*(SignalEvent(timestamp=LATER, name=name) for name in names))
    assert len(state.signals) <= 51
    assert [signal.name for signal in state.signals] == names[-51:]


COMING: dict[str, InboxItem] = {
    "message": MESSAGE,
    "quiet": QUIET,
    "answer": FIRST,
    "interrupt": InterruptRequest(),
    "pause": PauseRequest(),
    "resume": ResumeRequest(),
    "signal": Signal(name="paid", signal_id="1"),
    "other": Signal(name="sent", signal_id="2"),
}

AT = "2026-03-01T{:02}:00:00.000000"


class Log:
    """A log whose agent waits, written by what is decided, without a worker or a server."""

    def __init__(self, start: AnyEvent) -> None:
        self.state = state_of(start)
        self.results: list[str] = []
        """What has ended the wait."""

    def take(self, inbox: list[InboxItem], hour: int) -> None:
        """Record what is decided until the agent is to think, or nothing is to be done."""
        for _ in range(4):
            steps = decide(self.state, inbox, at=AT.format(hour))
            step = steps[0] if steps else None
            if not isinstance(step, Record):
                return
            for seq in step.refusal.action_seqs if step.refusal else ():
                self._write(rejection(id_of(seq), "wait"))
            for item in step.items:
                self._record(item)
            inbox = inbox[step.from_inbox :]
        raise AssertionError("it does not come to rest")

    def _record(self, item: InboxItem) -> None:
        match item:
            case WaitEnd():
                self._write(ended_by(item.ended_by))
            case Answer():
                self._write(ended_by("answer"))
            case _:
                self._write(to_event(item, TIMESTAMP, SPEC))

    def _write(self, event: AnyEvent) -> None:
        if isinstance(event, ObservationEvent | UserRejectObservation):
            self.results.append(getattr(event, "ended_by", None) or "rejection")
        self.state = fold(self.state, summaries_of(event, start=self.state.next_seq))


@given(
    st.sampled_from([WAIT, QUESTION]),
    st.lists(st.lists(st.sampled_from(sorted(COMING)), max_size=4), max_size=6),
)
def test_whatever_comes_in_whatever_order_a_wait_ends_once_or_goes_on(
    start: AnyEvent, rounds: list[list[str]]
) -> None:
    log = Log(start)
    for nth, names in enumerate(rounds):
        log.take([COMING[name] for name in names], hour=9 if nth < len(rounds) - 1 else 11)
    state, ends = (
        log.state,
        [*("message", "interrupt"), "answer" if start is QUESTION else "signal"],
    )
    assert len(log.results) <= 1
    assert (state.wait is None) == bool(log.results)
    if state.wait is not None:
        assert state.status in ("waiting", "waiting_for_answer", "paused")
        assert state.pending
    else:
        assert state.status not in ("waiting", "waiting_for_answer")
        assert not state.pending
    came = {name for names in rounds for name in names}
    if start is QUESTION and not came.intersection(ends):
        assert log.results == []
    sent = sum(names.count("signal") for names in rounds)
    taken = log.results == ["signal"]
    assert [it.name for it in state.signals].count("paid") == sent - taken

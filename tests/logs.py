"""Random logs: plausible events in random order."""

from collections.abc import Callable, Iterable

from hypothesis import strategies as st

from perdure.agent.policies import RISK_LEVELS, Confirmation
from perdure.agent.spec import (
    AmortizedCondenser,
    CondenserSpec,
    PipelineCondenser,
    RecentCondenser,
    SummaryCondenser,
    WindowCondenser,
)
from perdure.agent.view.condense.condensation import CondensationInput
from perdure.agent.view.condense.plan import plan_condensation
from perdure.agent.view.condense.thresholds import CondenseReason
from perdure.agent.view.seq_ranges import SeqRanges, merge_ranges
from perdure.agent.view.view import View, make_summary
from perdure.events.condensation import Condensation, CondensationRequest
from perdure.events.content import Message, ThinkingBlock
from perdure.events.control import InterruptEvent, PauseEvent, StuckEvent
from perdure.events.entry import Entry, make_entry
from perdure.events.event import AnyEvent, dump_event, parse_event
from perdure.events.messages import MessageEvent, RecallEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage
from tests.builders import (
    ORIGIN,
    SPEC,
    TIMESTAMP,
    action,
    agent,
    entries,
    error,
    error_event,
    observation,
    opened_event,
    partial_message,
    prompt,
    rejection,
    risk_analysis,
    spec_event,
    state_update,
    status_event,
    text,
    unknown_event,
    user,
    with_ids,
)

ANSWERS = (ObservationEvent, AgentErrorEvent, UserRejectObservation)
NAMES = ("look", "write", "finish", "fly")
"""Tool names; there is no tool `fly`."""


def recall_event(content: str = "Be brief.", *skills: str) -> RecallEvent:
    return RecallEvent(
        timestamp=TIMESTAMP, recall_type="KNOWLEDGE", query="q", skills=skills, content=content
    )


def system_message(words: str = "Two answers are left.", by: str = "limits") -> MessageEvent:
    """Build a message from the system to the agent."""
    message = Message(role="user", content=text(words))
    return MessageEvent(timestamp=TIMESTAMP, source="environment", llm_message=message, sender=by)


RISKY_CONFIRMATION = SPEC.model_copy(update={"confirmation": Confirmation(policy="risky")})

FIRST_ENTRIES = entries([opened_event(), spec_event(), prompt()])


class LogWriter:
    """Writes one log; `number`, 0 to 99, chooses the variant of each event."""

    def __init__(self) -> None:
        self.entries: list[Entry] = list(FIRST_ENTRIES)
        self.actions: list[ActionEvent] = []
        self.forgotten: SeqRanges = ()

    def write(self, event: AnyEvent, usage: Usage | None = None) -> AnyEvent:
        seq = len(self.entries)
        [event] = with_ids([event], seq)
        self.entries.append(make_entry(seq, event, ORIGIN, usage))
        return event

    def user(self, number: int) -> None:
        message_id = f"m-{len(self.entries)}" if number % 2 else None
        self.write(user(f"message {len(self.entries)}", message_id))

    def write_words(self, number: int) -> None:
        seq = len(self.entries)
        self.write(
            agent(f"answer {seq}", f"response-{seq}"), Usage(prompt_tokens=number, cost=0.25)
        )

    def write_calls(self, number: int) -> None:
        """Write up to three calls, perhaps with repeated ids, and then their errors."""
        quotient, remainder = divmod(number, 10)
        response, unread = f"response-{len(self.entries)}", []
        for nth in range(1 + quotient % 3):
            name, call_id = NAMES[(remainder + nth) % 4], f"call_{quotient * nth % 3}"
            made = action(name, call_id, response, valid=name != "fly")
            event = self.write(
                made, Usage(completion_tokens=remainder, cost=0.5) if not nth else None
            )
            assert isinstance(event, ActionEvent)
            self.actions.append(event)
            unread += [call_id] if event.action is None else []
        for call_id in unread:
            self.write(error(None, "fly", call_id))

    def write_answer(self, number: int) -> None:
        """Answer one of the newest actions, whether it has an answer already or not."""
        quotient, remainder = divmod(number, 10)
        recent = [event for event in self.actions[-5:] if event.action]
        if not recent:
            return
        call = recent[quotient % len(recent)]
        self.write(self._answer(call.id, call.tool_name, call.tool_call_id, remainder))

    def _answer(self, action_id: str, name: str, call_id: str, which: int) -> AnyEvent:
        seen = observation(action_id, name, f"seen {len(self.entries)}", call_id)
        match which % 8:
            case 6:
                return error(action_id, name, call_id)
            case 7:
                return rejection(action_id, name, call_id)
            case _:
                return seen

    def write_thinking(self, number: int) -> None:
        """Write a call with thinking blocks, answered or not."""
        seq = len(self.entries)
        thought = (ThinkingBlock(thinking="Hm.", signature="s"),)
        made = action("look", f"call_{number % 3}", f"response-{seq}")
        event = self.write(made.model_copy(update={"thinking_blocks": thought}), Usage(cost=0.5))
        assert isinstance(event, ActionEvent)
        self.actions.append(event)
        if number % 4:
            self.write(observation(event.id, "look", f"seen {seq}", event.tool_call_id))

    def recall(self, number: int) -> None:
        content = "" if number % 9 == 0 else f"recalled {len(self.entries)}"
        self.write(recall_event(content, f"skill-{number % 3}"))

    def nudge(self, number: int) -> None:
        self.write(
            system_message(f"nudge {len(self.entries)}", "limits" if number % 2 else "stuck")
        )

    def write_stray_error(self, number: int) -> None:
        """Write an error without a call, or an answer to what is no action."""
        self.write(error(None, "fly", f"call_{number % 3}"))
        if number % 5 == 0:
            self.write(observation(self.entries[number % len(self.entries)].event.id))

    def write_interleaved_calls(self, number: int) -> None:
        """Write calls of one response with another event between them."""
        response = f"response-{len(self.entries)}"
        for nth in range(2):
            event = self.write(action("look", f"call_{nth}", response), None if nth else Usage())
            assert isinstance(event, ActionEvent)
            self.actions.append(event)
            if nth == 0:
                [LogWriter.user, LogWriter.control, LogWriter.write_answer][number % 3](
                    self, number
                )

    def write_random_condensation(self, number: int) -> None:
        """Write any condensation, as another writer may: of any events, with any summary."""
        ids = [entry.event.id for entry in self.entries]
        ids += [make_summary(condensation).id for condensation in self.condensations()]
        chosen = [
            item for nth, item in enumerate(ids) if (nth * 7 + number) % (2 + number % 5) == 0
        ]
        self.write(
            Condensation(
                timestamp=TIMESTAMP,
                forgotten_event_ids=(*chosen, "nobody"),
                summary=[None, "", f"summary {len(self.entries)}"][number % 3],
                summary_offset=None if number % 7 == 0 else number // 3,
            )
        )

    def write_condensation(self, number: int) -> None:
        """Write a condensation as the product makes it."""
        condenser, tries = CONDENSERS[number % len(CONDENSERS)], number % 4
        material = CondensationInput(self.read_entries())
        reasons: list[CondenseReason] = ["size", "user", "overflow", "overflow"]
        plan = plan_condensation(material.view, condenser, material.tokens, reasons[tries], tries)
        if plan is None:
            return
        draft = f"summary {len(self.entries)}"
        summary = draft if isinstance(plan.condenser, SummaryCondenser) else None
        made = self.write(material.make_condensation(plan, TIMESTAMP, summary))
        assert isinstance(made, Condensation)
        self.forgotten = merge_ranges(self.forgotten, made.forgotten_seqs or ())

    def condensations(self) -> list[Condensation]:
        return [entry.event for entry in self.entries if isinstance(entry.event, Condensation)]

    def read_entries(self) -> list[Entry]:
        """Return the entries that a step would read."""
        return [entry for entry in self.entries if not in_ranges(entry.seq, self.forgotten)]

    def write_newer_event(self, number: int) -> None:
        """Write an event of a newer version: an answer, an action, or an unknown kind."""
        events: list[AnyEvent] = [unknown_event(), unknown_event("PauseEvent", until=None)]
        events.append(parse_event({**dump_event(action("write")), "new": 1}))
        if self.actions:
            late = observation(self.actions[-1].id)
            events.append(parse_event({**dump_event(late), "new": 1}))
        self.write(events[number % len(events)])

    def control(self, number: int) -> None:
        stuck = StuckEvent(timestamp=TIMESTAMP, pattern="p", first_seq=0, last_seq=1, count=2)
        events: list[AnyEvent] = [
            PauseEvent(timestamp=TIMESTAMP),
            status_event("resumed"),
            status_event("resumed"),
            error_event(),
            stuck,
            CondensationRequest(timestamp=TIMESTAMP),
            opened_event(f"run-{number}"),
            spec_event(),
            spec_event(RISKY_CONFIRMATION),
            status_event("closed"),
            InterruptEvent(timestamp=TIMESTAMP),
            status_event("waiting_for_confirmation"),
            status_event("waiting_for_confirmation"),
            state_update(
                "confirmed", [seq for seq in range(len(self.entries)) if (seq + number) % 3]
            ),
            state_update("title", f"title {number}"),
            CondensationRequest(timestamp=TIMESTAMP, source="user"),
            partial_message(),
            risk_analysis(
                {item.id: RISK_LEVELS[(number + nth) % 4] for nth, item in enumerate(self.actions)}
            ),
        ]
        self.write(events[number % len(events)])


def in_ranges(seq: int, ranges: SeqRanges) -> bool:
    return any(first <= seq <= last for first, last in ranges)


CONDENSERS: list[CondenserSpec] = [
    SummaryCondenser(max_size=8, keep_first=2),
    SummaryCondenser(max_size=6, keep_first=0, max_tokens=900),
    AmortizedCondenser(max_size=8, keep_first=1),
    RecentCondenser(max_events=5),
    SummaryCondenser(max_size=12, keep_first=4),
    PipelineCondenser(condensers=(WindowCondenser(keep_first=2), SummaryCondenser(max_size=9))),
]
"""Condensers with limits that a short log exceeds."""

WriteEvent = Callable[[LogWriter, int], None]

COMMON_EVENTS: list[WriteEvent] = [
    LogWriter.user,
    LogWriter.write_words,
    LogWriter.write_calls,
    LogWriter.write_calls,
    LogWriter.write_answer,
    LogWriter.write_answer,
    LogWriter.write_answer,
    LogWriter.control,
    LogWriter.write_stray_error,
    LogWriter.write_newer_event,
]

RARE_EVENTS: list[WriteEvent] = [
    LogWriter.write_thinking,
    LogWriter.write_thinking,
    LogWriter.recall,
    LogWriter.nudge,
    LogWriter.write_interleaved_calls,
]
CONDENSATIONS: list[WriteEvent] = [
    LogWriter.write_random_condensation,
    LogWriter.write_condensation,
    LogWriter.write_condensation,
]


def _write_log(happenings: list[tuple[WriteEvent, int]]) -> LogWriter:
    scribe = LogWriter()
    for happening, number in happenings:
        happening(scribe, number)
    return scribe


def _writers(happenings: list[WriteEvent], least: int, most: int) -> st.SearchStrategy[LogWriter]:
    happened = st.tuples(st.sampled_from(happenings), st.integers(0, 99))
    return st.lists(happened, min_size=least, max_size=most).map(_write_log)


def _entries(scribe: LogWriter) -> list[Entry]:
    return scribe.entries


logs: st.SearchStrategy[list[Entry]] = _writers([*COMMON_EVENTS, *RARE_EVENTS], 0, 30).map(_entries)
"""Logs without condensations."""

condensed_logs: st.SearchStrategy[list[Entry]] = _writers(
    [*COMMON_EVENTS, *RARE_EVENTS, *CONDENSATIONS], 8, 40
).map(_entries)

condensing_writers: st.SearchStrategy[LogWriter] = _writers(
    [*COMMON_EVENTS, *RARE_EVENTS, LogWriter.write_condensation, LogWriter.write_condensation],
    15,
    50,
)
"""Logs in which only the product condenses, and the entries still read."""


def add_events(view: View, events: Iterable[AnyEvent]) -> View:
    for event in events:
        view.add(event)
    return view


def build_view(events: Iterable[AnyEvent]) -> View:
    return add_events(View(), events)

"""Logs as chance would write them: plausible, and in no good order."""

from collections.abc import Callable

from hypothesis import strategies as st

from agent.condense.material import Material
from agent.condense.plan import Asked, plan_of
from agent.ranges import Ranges, merged
from agent.spec import (
    RISKS,
    AmortizedCondenser,
    CondenserSpec,
    Confirmation,
    RecentCondenser,
    SummaryCondenser,
)
from agent.view import summary_of
from events.condensation import Condensation, CondensationRequest
from events.content import Message, ThinkingBlock
from events.control import InterruptEvent, PauseEvent, StuckEvent
from events.entry import Entry, entry
from events.event import AnyEvent, event_from, fields_of
from events.messages import MessageEvent, RecallEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation
from events.usage import Usage
from tests.builders import (
    ORIGIN,
    SPEC,
    WHEN,
    action,
    agent,
    assessed,
    configured,
    entries,
    error,
    failed,
    observation,
    opened,
    partial,
    placed,
    prompt,
    rejection,
    status,
    text,
    unknown,
    updated,
    user,
)

ANSWERS = (ObservationEvent, AgentErrorEvent, UserRejectObservation)
NAMES = ("look", "write", "finish", "fly")
"""There is no tool `fly`."""


def recall(content: str = "Be brief.", *skills: str) -> RecallEvent:
    return RecallEvent(
        timestamp=WHEN, recall_type="KNOWLEDGE", query="q", skills=skills, content=content
    )


def told(words: str = "Two answers are left.", by: str = "limits") -> MessageEvent:
    """What the system itself tells the agent."""
    said = Message(role="user", content=text(words))
    return MessageEvent(timestamp=WHEN, source="environment", llm_message=said, sender=by)


CAREFUL = SPEC.model_copy(update={"confirmation": Confirmation(policy="risky")})

BEGINNING = entries([opened(), configured(), prompt()])


class Scribe:
    """Writes one log; the number that comes with each happening, 0 to 99, chooses what exactly."""

    def __init__(self) -> None:
        self.entries: list[Entry] = list(BEGINNING)
        self.actions: list[ActionEvent] = []
        self.forgotten: Ranges = ()

    def write(self, event: AnyEvent, usage: Usage | None = None) -> AnyEvent:
        seq = len(self.entries)
        [event] = placed([event], seq)
        self.entries.append(entry(seq, event, ORIGIN, usage))
        return event

    def user(self, number: int) -> None:
        message_id = f"m-{len(self.entries)}" if number % 2 else None
        self.write(user(f"message {len(self.entries)}", message_id))

    def words(self, number: int) -> None:
        seq = len(self.entries)
        self.write(
            agent(f"answer {seq}", f"response-{seq}"), Usage(prompt_tokens=number, cost=0.25)
        )

    def batch(self, number: int) -> None:
        """Up to three calls, whose ids may have been there before; errors stand behind them."""
        one, other = divmod(number, 10)
        response, unread = f"response-{len(self.entries)}", []
        for nth in range(1 + one % 3):
            name, call_id = NAMES[(other + nth) % 4], f"call_{one * nth % 3}"
            made = action(name, call_id, response, valid=name != "fly")
            event = self.write(made, Usage(completion_tokens=other, cost=0.5) if not nth else None)
            assert isinstance(event, ActionEvent)
            self.actions.append(event)
            unread += [call_id] if event.action is None else []
        for call_id in unread:
            self.write(error(None, "fly", call_id))

    def answer(self, number: int) -> None:
        """An answer to one of the newest actions, whether it has one already or not."""
        one, other = divmod(number, 10)
        recent = [event for event in self.actions[-5:] if event.action]
        if not recent:
            return
        asked = recent[one % len(recent)]
        self.write(self._answer(asked.id, asked.tool_name, asked.tool_call_id, other))

    def _answer(self, action_id: str, name: str, call_id: str, which: int) -> AnyEvent:
        seen = observation(action_id, name, f"seen {len(self.entries)}", call_id)
        match which % 8:
            case 6:
                return error(action_id, name, call_id)
            case 7:
                return rejection(action_id, name, call_id)
            case _:
                return seen

    def thinking(self, number: int) -> None:
        """A call with thinking blocks, answered or not."""
        seq = len(self.entries)
        thought = (ThinkingBlock(thinking="Hm.", signature="s"),)
        made = action("look", f"call_{number % 3}", f"response-{seq}")
        event = self.write(made.model_copy(update={"thinking_blocks": thought}), Usage(cost=0.5))
        assert isinstance(event, ActionEvent)
        self.actions.append(event)
        if number % 4:
            self.write(observation(event.id, "look", f"seen {seq}", event.tool_call_id))

    def recall(self, number: int) -> None:
        said = "" if number % 9 == 0 else f"recalled {len(self.entries)}"
        self.write(recall(said, f"skill-{number % 3}"))

    def nudge(self, number: int) -> None:
        self.write(told(f"nudge {len(self.entries)}", "limits" if number % 2 else "stuck"))

    def stray(self, number: int) -> None:
        """An error that no call has asked for any more, or an answer to what is no action."""
        self.write(error(None, "fly", f"call_{number % 3}"))
        if number % 5 == 0:
            self.write(observation(self.entries[number % len(self.entries)].event.id))

    def apart(self, number: int) -> None:
        """Calls of one answer with something between them."""
        response = f"response-{len(self.entries)}"
        for nth in range(2):
            event = self.write(action("look", f"call_{nth}", response), None if nth else Usage())
            assert isinstance(event, ActionEvent)
            self.actions.append(event)
            if nth == 0:
                [Scribe.user, Scribe.control, Scribe.answer][number % 3](self, number)

    def forget(self, number: int) -> None:
        """A condensation as another writer may make it: of anything, with a summary anywhere."""
        ids = [entry.event.id for entry in self.entries]
        ids += [summary_of(one).id for one in self.condensations()]
        chosen = [one for nth, one in enumerate(ids) if (nth * 7 + number) % (2 + number % 5) == 0]
        self.write(
            Condensation(
                timestamp=WHEN,
                forgotten_event_ids=(*chosen, "nobody"),
                summary=[None, "", f"summary {len(self.entries)}"][number % 3],
                summary_offset=None if number % 7 == 0 else number // 3,
            )
        )

    def condense(self, number: int) -> None:
        """A condensation as we make them, from what is still read."""
        condenser, tries = CONDENSERS[number % len(CONDENSERS)], number % 4
        material = Material(self.live())
        asked: list[Asked] = ["size", "user", "overflow", "overflow"]
        plan = plan_of(material.view, condenser, material.sizes, asked[tries], tries)
        if plan is None:
            return
        summary = f"summary {len(self.entries)}"
        said = summary if isinstance(plan.condenser, SummaryCondenser) else None
        made = self.write(material.condensation(plan, WHEN, said))
        assert isinstance(made, Condensation)
        self.forgotten = merged(self.forgotten, made.forgotten_seqs or ())

    def condensations(self) -> list[Condensation]:
        return [one.event for one in self.entries if isinstance(one.event, Condensation)]

    def live(self) -> list[Entry]:
        """What a step would read."""
        return [entry for entry in self.entries if not within(entry.seq, self.forgotten)]

    def newer(self, number: int) -> None:
        """What another version wrote: an answer, an action, or nothing known."""
        events: list[AnyEvent] = [unknown(), unknown("PauseEvent", until=None)]
        events.append(event_from({**fields_of(action("write")), "new": 1}))
        if self.actions:
            late = observation(self.actions[-1].id)
            events.append(event_from({**fields_of(late), "new": 1}))
        self.write(events[number % len(events)])

    def control(self, number: int) -> None:
        stuck = StuckEvent(timestamp=WHEN, pattern="p", first_seq=0, last_seq=1, count=2)
        events: list[AnyEvent] = [
            PauseEvent(timestamp=WHEN),
            status("resumed"),
            status("resumed"),
            failed(),
            stuck,
            CondensationRequest(timestamp=WHEN),
            opened(f"run-{number}"),
            configured(),
            configured(CAREFUL),
            status("closed"),
            InterruptEvent(timestamp=WHEN),
            status("waiting_for_confirmation"),
            status("waiting_for_confirmation"),
            updated("confirmed", [seq for seq in range(len(self.entries)) if (seq + number) % 3]),
            updated("title", f"title {number}"),
            CondensationRequest(timestamp=WHEN, source="user"),
            partial(),
            assessed({one.id: RISKS[(number + nth) % 4] for nth, one in enumerate(self.actions)}),
        ]
        self.write(events[number % len(events)])


def within(seq: int, ranges: Ranges) -> bool:
    return any(first <= seq <= last for first, last in ranges)


CONDENSERS: list[CondenserSpec] = [
    SummaryCondenser(max_size=8, keep_first=2),
    SummaryCondenser(max_size=6, keep_first=0, max_tokens=900),
    AmortizedCondenser(max_size=8, keep_first=1),
    RecentCondenser(max_events=5),
    SummaryCondenser(max_size=12, keep_first=4),
]
"""Small, so that a short log is too long for them."""

Happening = Callable[[Scribe, int], None]

HAPPENINGS: list[Happening] = [
    Scribe.user,
    Scribe.words,
    Scribe.batch,
    Scribe.batch,
    Scribe.answer,
    Scribe.answer,
    Scribe.answer,
    Scribe.control,
    Scribe.stray,
    Scribe.newer,
]

RARE: list[Happening] = [
    Scribe.thinking,
    Scribe.thinking,
    Scribe.recall,
    Scribe.nudge,
    Scribe.apart,
]
FORGETTING: list[Happening] = [Scribe.forget, Scribe.condense, Scribe.condense]


def _written(happenings: list[tuple[Happening, int]]) -> Scribe:
    scribe = Scribe()
    for happening, number in happenings:
        happening(scribe, number)
    return scribe


def _scribes(happenings: list[Happening], least: int, most: int) -> st.SearchStrategy[Scribe]:
    happened = st.tuples(st.sampled_from(happenings), st.integers(0, 99))
    return st.lists(happened, min_size=least, max_size=most).map(_written)


def _entries(scribe: Scribe) -> list[Entry]:
    return scribe.entries


logs: st.SearchStrategy[list[Entry]] = _scribes([*HAPPENINGS, *RARE], 0, 30).map(_entries)
"""Nothing is forgotten in these."""

condensed_logs: st.SearchStrategy[list[Entry]] = _scribes(
    [*HAPPENINGS, *RARE, *FORGETTING], 8, 40
).map(_entries)

condensing: st.SearchStrategy[Scribe] = _scribes(
    [*HAPPENINGS, *RARE, Scribe.condense, Scribe.condense], 15, 50
)
"""Logs in which only we condense, and what of them is still read."""

"""Logs as chance would write them: plausible, and in no good order."""

from collections.abc import Callable

from hypothesis import strategies as st

from events.condensation import CondensationRequest
from events.control import PauseEvent, StuckEvent
from events.entry import Entry, entry
from events.event import AnyEvent, event_from, fields_of
from events.tools import ActionEvent
from events.usage import Usage
from tests.builders import (
    ORIGIN,
    WHEN,
    action,
    agent,
    configured,
    entries,
    error,
    failed,
    observation,
    opened,
    placed,
    prompt,
    rejection,
    status,
    unknown,
    user,
)

NAMES = ("look", "write", "finish", "fly")
"""There is no tool `fly`."""


BEGINNING = entries([opened(), configured(), prompt()])


class Scribe:
    """Writes one log; the number that comes with each happening, 0 to 99, chooses what exactly."""

    def __init__(self) -> None:
        self.entries: list[Entry] = list(BEGINNING)
        self.actions: list[ActionEvent] = []

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

    def stray(self, number: int) -> None:
        """An error that no call has asked for any more."""
        self.write(error(None, "fly", f"call_{number % 3}"))

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
            status("closed"),
        ]
        self.write(events[number % len(events)])


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


def _written(happenings: list[tuple[Happening, int]]) -> list[Entry]:
    scribe = Scribe()
    for happening, number in happenings:
        happening(scribe, number)
    return scribe.entries


logs: st.SearchStrategy[list[Entry]] = st.lists(
    st.tuples(st.sampled_from(HAPPENINGS), st.integers(0, 99)), max_size=30
).map(_written)

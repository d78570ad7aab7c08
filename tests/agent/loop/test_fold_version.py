"""What events fold to has a version, by which saved states of another fold are told apart."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from perdure.agent.loop.evolve import evolve, fold
from perdure.agent.loop.state import FOLD_VERSION, State
from perdure.events.entry import parse_entry
from perdure.events.projection import summarize
from perdure.events.summary import NO_RUN, EventSummary
from perdure.events.usage import Usage
from tests.agent.loop.test_fold import KINDS, PINNED, make_summary
from tests.builders import opened_event, prompt, spec_event, state_fields, summaries_of

RELEASED = Path(__file__).parents[2] / "released"

STATES = {
    1: "abbbf9f8aa4f3a9804d7134a87dec388",
    2: "b05407c2c9972f977b5df9eb38d36499",
    3: "efc572876617d73276df0e9cf89b37b0",
    4: "755a359e7d9841921f7f50008ede2b5f",
}
"""By FOLD_VERSION, a hash over the states of the logs below after each of their events."""


def released_logs() -> Iterator[list[EventSummary]]:
    """Yield all logs but those of forks, which begin with another one's events."""
    for path in sorted(RELEASED.glob("*/*.json")):
        events = defaultdict[str, list[EventSummary]](list)
        for key, body in sorted(json.loads(path.read_text())["objects"].items()):
            conversation, is_event, name = key.partition("/events/")
            if is_event:
                seq = int(name.partition("_")[0])
                events[conversation].append(summarize(parse_entry(seq, body.encode())))
        yield from (log for log in events.values() if log[0].seq == 0)


def made_log() -> list[EventSummary]:
    """A log that has every kind of event, from each source, three times over."""
    log = summaries_of(opened_event(), spec_event(PINNED), prompt())
    for nth, kind in enumerate(KINDS * 3):
        fields = {
            "source": ("user", "agent", "environment")[nth // len(KINDS)],
            "tokens": nth,
            "sha": f"{nth}",
            "tool_name": ("look", "finish")[nth % 2],
            "action_id": "ABC"[nth % 3],
            "llm_response_id": "r",
            "message_id": f"m{nth}",
            "key": ("limits", None, NO_RUN, None)[nth % 4],
            "resources": None,
            "risk": "LOW" if nth % 5 else None,
            "is_error": None,
            "usage": None if nth % 4 else Usage(prompt_tokens=3, cost=0.5, model="m"),
            "newer": nth % 7 == 0,
        }
        log.append(make_summary(len(log), kind, fields))
    return log


def test_what_events_fold_to_is_that_of_the_version() -> None:
    states = hashlib.sha256()
    for log in (*released_logs(), made_log()):
        state = State()
        for event in log:
            state = evolve(state, event)
            fields = state_fields(state)
            del fields["fold_version"]
            text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
            states.update(text.encode())
    assert STATES.get(FOLD_VERSION) == states.hexdigest()[:32], (
        "Events fold to other states than before: raise FOLD_VERSION, and put this hash beside it."
    )


def test_a_state_that_another_version_began_is_of_no_version() -> None:
    log = made_log()
    state = fold(State(), log[:10])
    assert state.fold_version == FOLD_VERSION
    assert fold(state, log).fold_version == FOLD_VERSION
    for other in (0, FOLD_VERSION + 1):
        begun = state.model_copy(update={"fold_version": other})
        assert fold(begun, log).fold_version == 0

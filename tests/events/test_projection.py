"""What is decided by of each kind of event is in its digest, and nothing anybody said."""

from typing import Any

import pytest
from pydantic_core import to_json

from agent.spec import Confirmation, Limits
from events.actions import FileEditorAction, TerminalAction
from events.content import ImageContent, ToolAnnotations
from events.control import InterruptEvent, PauseEvent, StuckEvent
from events.digest import Digest
from events.event import AnyEvent, event_from, fields_of
from events.projection import HEADLINE, IMAGE, MOST_TOUCHED, NAME, TITLE, fingerprint
from events.risk import Risk
from tests.builders import (
    SPEC,
    WHEN,
    action,
    agent,
    assessed,
    condensation,
    configured,
    digests,
    id_of,
    overflow,
    partial,
    prompt,
    status,
    tool,
    updated,
    user,
)
from tests.logs import recall, told

STUCK = StuckEvent(timestamp=WHEN, pattern="monologue", first_seq=3, last_seq=9, count=3)


def of(event: AnyEvent) -> Digest:
    [one] = digests(event)
    return one


def size(fact: Digest) -> int:
    """Bytes, as Temporal carries it."""
    return len(to_json(fact, exclude_none=True))


def newer(event: AnyEvent) -> Digest:
    """The digest of an event that has a field this version does not know."""
    return of(event_from({**fields_of(event), "new": 1}))


def test_who_of_the_system_speaks_is_told() -> None:
    assert of(told(by="stuck")).key == "stuck"
    assert of(partial()).key == "interrupted"
    assert of(agent()).key is None


def test_the_sender_of_a_persons_message_steers_nothing() -> None:
    assert of(user().model_copy(update={"sender": "interrupted"})).key is None


def test_what_an_action_touches_is_told() -> None:
    told = of(action(touches=("file:a", "file:b"))).touches
    assert told is not None
    assert told == of(action(touches=("file:a", "file:b"))).touches
    assert set(told).isdisjoint(of(action(touches=("file:c",))).touches or ())
    assert len(set(told)) == 2
    assert of(action(touches=())).touches == ()
    assert of(action()).touches is None


def test_of_an_action_that_touches_too_much_nothing_is_known() -> None:
    names = tuple(f"file:{nth}" for nth in range(MOST_TOUCHED + 1))
    assert of(action(touches=names)).touches is None
    assert len(of(action(touches=names[1:])).touches or ()) == len(names[1:])


def test_long_names_of_what_is_touched_stay_different() -> None:
    long = "file:" + "x" * 500
    one, same, other = (of(action(touches=(name,))).touches for name in (long, long, long + "y"))
    assert one == same != other
    assert one is not None
    assert len(one[0]) <= NAME


def test_what_an_action_touches_is_no_part_of_what_it_says() -> None:
    assert fingerprint(action(touches=("file:a",))) == fingerprint(action())


@pytest.mark.parametrize("risk", ["LOW", "MEDIUM", "HIGH"])
def test_the_risk_that_the_model_told_is_told(risk: Risk) -> None:
    assert of(action(risk=risk)).risk == risk


def test_the_risks_that_were_found_are_told_by_action() -> None:
    found: dict[str, Risk] = {id_of(4): "HIGH", id_of(5): "UNKNOWN"}
    assert of(assessed(found)).value == found
    many: dict[str, Risk] = {id_of(nth): "MEDIUM" for nth in range(64)}
    assert size(of(assessed(many))) < 4_000


def test_a_prompt_tells_what_its_tools_are_like() -> None:
    hints = ToolAnnotations(readOnlyHint=False, idempotentHint=True)
    put = tool("put", repeatable=False).model_copy(update={"annotations": hints})
    sleep = tool("sleep", repeatable=True).model_copy(update={"waits": True})
    fact = of(prompt().model_copy(update={"tools": (put, sleep, tool("write", repeatable=False))}))
    assert (fact.repeatable, fact.read_only, fact.waits) == (
        ("put", "sleep"),
        ("sleep",),
        ("sleep",),
    )


def test_a_prompt_without_tools_tells_of_none() -> None:
    fact = of(prompt().model_copy(update={"tools": ()}))
    assert (fact.repeatable, fact.read_only, fact.waits) == ((), None, None)


def test_what_was_recalled_is_told_by_its_skills() -> None:
    assert of(recall("Be brief.", "brevity", "s" * 500)).value[0] == "brevity"
    assert len(of(recall("Be brief.", "s" * 500)).value[0]) <= NAME
    assert of(recall("Be brief.")).value == []


def test_being_stuck_is_told_by_its_pattern_and_where_it_shows() -> None:
    fact = of(STUCK)
    assert (fact.key, fact.value) == ("monologue", "events 3 to 9")


def test_a_condensation_tells_how_much_is_left_and_what_need_not_be_read() -> None:
    fact = of(condensation(3, 7, size=99))
    assert fact.value == {"count": 5, "forgotten": [[3, 7]], "size": 99, "summary": 0}


def test_a_summary_takes_room_even_if_nobody_said_how_much() -> None:
    assert of(condensation(3, 7, "In short.")).value["summary"] == 1
    told = condensation(3, 7, "In short.").model_copy(update={"summary_size": 40})
    assert of(told).value["summary"] == 40


def test_another_writers_condensation_tells_what_it_can() -> None:
    fields: dict[str, Any] = {"forgotten_seqs": None, "forgotten_size": None}
    fact = of(condensation(3, 7).model_copy(update=fields))
    assert fact.value == {"count": 5, "forgotten": [], "size": 0, "summary": 0}


def test_a_condensation_is_small_whatever_it_forgets() -> None:
    assert size(of(condensation(0, 5_000, "x" * 50_000))) < 400


def test_who_asks_for_a_condensation_is_told() -> None:
    assert of(overflow()).source == "environment"
    assert of(overflow().model_copy(update={"source": "user"})).source == "user"


def test_a_title_is_told_as_far_as_it_is_kept() -> None:
    assert of(updated("title", "Doors")).value == "Doors"
    assert of(updated("title", "d" * 500)).value == "d" * TITLE


@pytest.mark.parametrize(
    ("key", "value"),
    [("status", "waiting_for_confirmation"), ("confirmed", [4, 7]), ("opened", {"run_id": "r"})],
)
def test_updates_that_decide_something_are_told_whole(key: str, value: Any) -> None:
    assert (of(updated(key, value)).key, of(updated(key, value)).value) == (key, value)


@pytest.mark.parametrize("key", ["tags", "state", "refused", "anything"])
def test_updates_that_decide_nothing_are_told_by_their_key(key: str) -> None:
    assert (of(updated(key, "x" * 9)).key, of(updated(key, "x" * 9)).value) == (key, None)


def test_of_a_spec_all_that_can_be_changed_is_told() -> None:
    spec = SPEC.model_copy(
        update={
            "limits": Limits(max_budget=1.5, deadline=WHEN),
            "confirmation": Confirmation(policy="risky", confirm_unknown=False),
        }
    )
    told = of(configured(spec)).value
    assert told["limits"]["max_budget"] == 1.5
    assert told["confirmation"] == {
        "policy": "risky",
        "threshold": "HIGH",
        "confirm_unknown": False,
    }


@pytest.mark.parametrize("times", [1, 10_000])
def test_an_image_takes_the_tokens_of_an_image_whatever_its_bytes(times: int) -> None:
    pictures = (ImageContent(image_urls=("data:image/png;base64," + "A" * times,) * 2),)
    plain = user()
    said = plain.llm_message.model_copy(update={"content": (*plain.llm_message.content, *pictures)})
    more = of(plain.model_copy(update={"llm_message": said})).size - of(plain).size
    assert 2 * IMAGE < more < 2 * IMAGE + 50


@pytest.mark.parametrize("kind", [PauseEvent, InterruptEvent])
def test_of_a_stop_its_kind_says_it_all(kind: type[PauseEvent] | type[InterruptEvent]) -> None:
    fact = of(kind(timestamp=WHEN))
    assert (fact.kind, fact.key, fact.value) == (kind.__name__, None, None)


@pytest.mark.parametrize(
    "event",
    [assessed({id_of(4): "HIGH"}), recall("x", "s"), STUCK, condensation(3, 4), status("closed")],
    ids=lambda event: event.kind,
)
def test_of_a_newer_writers_event_only_its_kind_is_known(event: AnyEvent) -> None:
    fact = newer(event)
    assert (fact.kind, fact.key, fact.value) == (event.kind, None, None)


def test_events_of_all_kinds_have_a_fingerprint_of_their_own() -> None:
    events: list[AnyEvent] = [
        STUCK,
        condensation(3, 4),
        overflow(),
        recall("x"),
        recall("y"),
        assessed({}),
        told("a"),
        told("b"),
        partial(),
        InterruptEvent(timestamp=WHEN),
        PauseEvent(timestamp=WHEN),
        updated("title", "a"),
        updated("title", "b"),
    ]
    assert len({fingerprint(event) for event in events}) == len(events)


def test_the_first_words_of_a_command_are_told_and_no_more() -> None:
    ls = action("terminal").model_copy(update={"action": TerminalAction(command=" ls -la\nrm x")})
    assert of(ls).headline == "ls -la"
    long = ls.model_copy(update={"action": TerminalAction(command="x" * 1000)})
    assert of(long).headline == f"{'x' * (HEADLINE - 1)}…"
    edit = FileEditorAction(command="view", path="src/main.py")
    assert of(ls.model_copy(update={"action": edit})).headline == "view src/main.py"
    assert of(action()).headline is None

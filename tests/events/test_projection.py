"""The summary of each kind of event has what decisions need, and no conversation content."""

from typing import Any

import pytest
from pydantic_core import to_json

from perdure.agent.policies import Confirmation, Limits
from perdure.events.actions import FileEditorAction, TerminalAction
from perdure.events.base import MAX_NAME_BYTES
from perdure.events.content import ImageContent, ToolAnnotations
from perdure.events.control import MAX_KEPT_TITLE_CHARS, InterruptEvent, PauseEvent, StuckEvent
from perdure.events.event import AnyEvent, dump_event, parse_event
from perdure.events.projection import (
    compute_fingerprint,
)
from perdure.events.risk import Risk
from perdure.events.summary import EventSummary
from perdure.events.tools import MAX_PREVIEW_CHARS, MAX_RESOURCES
from tests.builders import (
    SPEC,
    TIMESTAMP,
    action,
    agent,
    condensation,
    id_of,
    overflow,
    partial_message,
    prompt,
    risk_analysis,
    spec_event,
    state_update,
    status_event,
    summaries_of,
    tool,
    user,
)
from tests.logs import recall_event, system_message

STUCK = StuckEvent(timestamp=TIMESTAMP, pattern="monologue", first_seq=3, last_seq=9, count=3)


def of(event: AnyEvent) -> EventSummary:
    [summary] = summaries_of(event)
    return summary


def size(fact: EventSummary) -> int:
    """Bytes, as Temporal carries it."""
    return len(to_json(fact, exclude_none=True))


def newer(event: AnyEvent) -> EventSummary:
    """The digest of an event that has a field this version does not know."""
    return of(parse_event({**dump_event(event), "new": 1}))


def test_the_summary_of_a_warning_has_its_topic() -> None:
    assert of(system_message(by="stuck")).key == "stuck"
    assert of(partial_message()).key == "interrupted"
    assert of(agent()).key is None


def test_the_sender_of_a_persons_message_steers_nothing() -> None:
    assert of(user().model_copy(update={"sender": "interrupted"})).key is None


def test_the_summary_of_an_action_has_its_resources() -> None:
    resources = of(action(touches=("file:a", "file:b"))).resources
    assert resources is not None
    assert resources == of(action(touches=("file:a", "file:b"))).resources
    assert set(resources).isdisjoint(of(action(touches=("file:c",))).resources or ())
    assert len(set(resources)) == 2
    assert of(action(touches=())).resources == ()
    assert of(action()).resources is None


def test_too_many_resources_count_as_unknown() -> None:
    names = tuple(f"file:{nth}" for nth in range(MAX_RESOURCES + 1))
    assert of(action(touches=names)).resources is None
    assert len(of(action(touches=names[1:])).resources or ()) == len(names[1:])


def test_long_resource_names_stay_different() -> None:
    long = "file:" + "x" * 500
    resources, same, other = (
        of(action(touches=(name,))).resources for name in (long, long, long + "y")
    )
    assert resources == same != other
    assert resources is not None
    assert len(resources[0]) <= MAX_NAME_BYTES


def test_resources_are_no_part_of_the_fingerprint() -> None:
    assert compute_fingerprint(action(touches=("file:a",))) == compute_fingerprint(action())


@pytest.mark.parametrize("risk", ["LOW", "MEDIUM", "HIGH"])
def test_the_summary_of_an_action_has_the_models_risk(risk: Risk) -> None:
    assert of(action(risk=risk)).risk == risk


def test_the_summary_of_an_analysis_has_its_risks_by_action() -> None:
    risks: dict[str, Risk] = {id_of(4): "HIGH", id_of(5): "UNKNOWN"}
    assert of(risk_analysis(risks)).value == risks
    many: dict[str, Risk] = {id_of(nth): "MEDIUM" for nth in range(64)}
    assert size(of(risk_analysis(many))) < 4_000


def test_the_summary_of_a_prompt_has_its_tool_traits() -> None:
    hints = ToolAnnotations(readOnlyHint=False, idempotentHint=True)
    put = tool("put", repeatable=False).model_copy(update={"annotations": hints, "brief": True})
    sleep = tool("sleep", repeatable=True).model_copy(update={"waits": True})
    fact = of(prompt().model_copy(update={"tools": (put, sleep, tool("write", repeatable=False))}))
    assert (fact.repeatable, fact.read_only, fact.polling, fact.brief) == (
        ("put", "sleep"),
        ("sleep",),
        ("sleep",),
        ("put",),
    )


def test_the_summary_of_a_prompt_without_tools_has_no_traits() -> None:
    fact = of(prompt().model_copy(update={"tools": ()}))
    assert (fact.repeatable, fact.read_only, fact.polling, fact.brief) == ((), None, None, None)


def test_the_summary_of_a_recall_has_its_skills() -> None:
    assert of(recall_event("Be brief.", "brevity", "s" * 500)).value[0] == "brevity"
    assert len(of(recall_event("Be brief.", "s" * 500)).value[0]) <= MAX_NAME_BYTES
    assert of(recall_event("Be brief.")).value == []


def test_the_summary_of_being_stuck_has_its_pattern_and_range() -> None:
    fact = of(STUCK)
    assert (fact.key, fact.value) == ("monologue", "events 3 to 9")


def test_the_summary_of_a_condensation_has_its_sizes_and_ranges() -> None:
    fact = of(condensation(3, 7, size=99))
    assert fact.value == {"count": 5, "forgotten": [[3, 7]], "size": 99, "summary": 0}


def test_a_summary_of_unknown_size_counts_as_one_token() -> None:
    assert of(condensation(3, 7, "In short.")).value["summary"] == 1
    event = condensation(3, 7, "In short.").model_copy(update={"summary_size": 40})
    assert of(event).value["summary"] == 40


def test_a_condensation_without_sizes_has_a_summary() -> None:
    fields: dict[str, Any] = {"forgotten_seqs": None, "forgotten_size": None}
    fact = of(condensation(3, 7).model_copy(update=fields))
    assert fact.value == {"count": 5, "forgotten": [], "size": 0, "summary": 0}


def test_the_summary_of_any_condensation_is_small() -> None:
    assert size(of(condensation(0, 5_000, "x" * 50_000))) < 400


def test_the_summary_of_a_condensation_request_has_its_source() -> None:
    assert of(overflow()).source == "environment"
    assert of(overflow().model_copy(update={"source": "user"})).source == "user"


def test_the_summary_of_a_title_is_cut() -> None:
    assert of(state_update("title", "Doors")).value == "Doors"
    assert of(state_update("title", "d" * 500)).value == "d" * MAX_KEPT_TITLE_CHARS


@pytest.mark.parametrize(
    ("key", "value"),
    [("status", "waiting_for_confirmation"), ("confirmed", [4, 7]), ("opened", {"run_id": "r"})],
)
def test_decisive_updates_keep_their_values(key: str, value: Any) -> None:
    assert (of(state_update(key, value)).key, of(state_update(key, value)).value) == (key, value)


@pytest.mark.parametrize("key", ["tags", "state", "refused", "anything"])
def test_other_updates_keep_only_their_keys(key: str) -> None:
    assert (of(state_update(key, "x" * 9)).key, of(state_update(key, "x" * 9)).value) == (key, None)


def test_the_summary_of_a_spec_has_all_changeable_fields() -> None:
    spec = SPEC.model_copy(
        update={
            "limits": Limits(max_budget=1.5, deadline=TIMESTAMP),
            "confirmation": Confirmation(policy="risky", confirm_unknown=False),
        }
    )
    fields = of(spec_event(spec)).value
    assert fields["limits"]["max_budget"] == 1.5
    assert fields["confirmation"] == {
        "policy": "risky",
        "threshold": "HIGH",
        "confirm_unknown": False,
    }


@pytest.mark.parametrize("times", [1, 10_000])
def test_an_image_takes_the_tokens_of_an_image_whatever_its_bytes(times: int) -> None:
    pictures = (ImageContent(image_urls=("data:image/png;base64," + "A" * times,) * 2),)
    plain = user()
    message = plain.llm_message.model_copy(
        update={"content": (*plain.llm_message.content, *pictures)}
    )
    more = of(plain.model_copy(update={"llm_message": message})).tokens - of(plain).tokens
    assert 2000 < more < 2050


@pytest.mark.parametrize("kind", [PauseEvent, InterruptEvent])
def test_the_summary_of_a_stop_has_its_kind_only(
    kind: type[PauseEvent] | type[InterruptEvent],
) -> None:
    fact = of(kind(timestamp=TIMESTAMP))
    assert (fact.kind, fact.key, fact.value) == (kind.__name__, None, None)


@pytest.mark.parametrize(
    "event",
    [
        risk_analysis({id_of(4): "HIGH"}),
        recall_event("x", "s"),
        STUCK,
        condensation(3, 4),
        status_event("closed"),
    ],
    ids=lambda event: event.kind,
)
def test_the_summary_of_a_newer_writers_event_has_its_kind_only(event: AnyEvent) -> None:
    fact = newer(event)
    assert (fact.kind, fact.key, fact.value) == (event.kind, None, None)


def test_events_of_all_kinds_have_a_fingerprint_of_their_own() -> None:
    events: list[AnyEvent] = [
        STUCK,
        condensation(3, 4),
        overflow(),
        recall_event("x"),
        recall_event("y"),
        risk_analysis({}),
        system_message("a"),
        system_message("b"),
        partial_message(),
        InterruptEvent(timestamp=TIMESTAMP),
        PauseEvent(timestamp=TIMESTAMP),
        state_update("title", "a"),
        state_update("title", "b"),
    ]
    assert len({compute_fingerprint(event) for event in events}) == len(events)


def test_the_preview_of_a_command_is_its_first_words() -> None:
    ls = action("terminal").model_copy(update={"action": TerminalAction(command=" ls -la\nrm x")})
    assert of(ls).preview == "ls -la"
    long = ls.model_copy(update={"action": TerminalAction(command="x" * 1000)})
    assert of(long).preview == f"{'x' * (MAX_PREVIEW_CHARS - 1)}…"
    edit = FileEditorAction(command="view", path="src/main.py")
    assert of(ls.model_copy(update={"action": edit})).preview == "view src/main.py"
    assert of(action()).preview is None

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from perdure.events.actions import Action, TerminalAction
from perdure.events.base import EventBase
from perdure.events.content import ImageContent, TextContent
from perdure.events.control import MAX_DETAIL_CHARS
from perdure.events.entry import make_entry, parse_entry
from perdure.events.event import AnyEvent, dump_event, parse_event
from perdure.events.observations import CmdOutputMetadata, TerminalObservation
from perdure.events.projection import compute_fingerprint, summarize
from perdure.events.summary import EventSummary
from perdure.events.tools import ObservationEvent, UserRejectObservation
from perdure.events.usage import Usage
from tests.builders import (
    EVENT_OF_EACH_KIND,
    ORIGIN,
    SPEC,
    action,
    agent,
    error,
    error_event,
    id_of,
    observation,
    opened_event,
    prompt,
    rejection,
    spec_event,
    status_event,
    summaries_of,
    text,
    unknown_event,
    user,
    with_ids,
)

LATER = "2031-12-31T23:59:59.999999"


def of(event: AnyEvent, usage: Usage | None = None) -> EventSummary:
    [summary] = summaries_of(event, usage=usage)
    return summary


def changed(event: EventBase, **fields: Any) -> AnyEvent:
    return parse_event({**dump_event(event), **fields})  # type: ignore[arg-type]


def json_of(fact: EventSummary) -> bytes:
    """Return the summary as Temporal carries it."""
    return to_json(fact, exclude_none=True)


@pytest.mark.parametrize("event", EVENT_OF_EACH_KIND, ids=lambda event: event.kind)
def test_a_summary_depends_on_the_stored_bytes_alone(event: AnyEvent) -> None:
    made = make_entry(3, with_ids([event], 3)[0], ORIGIN, Usage(cost=0.5))
    assert summarize(made) == summarize(parse_entry(3, made.body))


@pytest.mark.parametrize("event", EVENT_OF_EACH_KIND, ids=lambda event: event.kind)
def test_a_summary_survives_serialization(event: AnyEvent) -> None:
    fact = of(event, Usage(prompt_tokens=3, cost=0.1))
    assert json_of(EventSummary.model_validate_json(json_of(fact))) == json_of(fact)


@pytest.mark.parametrize("event", EVENT_OF_EACH_KIND, ids=lambda event: event.kind)
def test_ids_and_times_do_not_change_a_fingerprint(event: AnyEvent) -> None:
    fields = {**dump_event(event), "id": id_of(77), "timestamp": LATER}
    for name in ("tool_call_id", "action_id", "llm_response_id", "message_id"):
        if name in fields:
            fields[name] = "another"
    assert compute_fingerprint(parse_event(fields)) == compute_fingerprint(event)


def test_different_messages_have_different_fingerprints() -> None:
    fingerprints = [compute_fingerprint(event) for event in EVENT_OF_EACH_KIND]
    assert len(set(fingerprints)) == len(fingerprints)


@pytest.mark.parametrize(
    "other",
    [
        {"source": "environment"},
        {"thought": [{"text": "hm"}]},
        {"action": {"kind": "MCPToolAction", "data": {"path": "b"}}},
        {"tool_name": "look"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_the_fingerprint_of_an_action_is_of_source_thought_action_and_tool(
    other: dict[str, Any],
) -> None:
    event = action("write", arguments='{"path": "a"}')
    assert compute_fingerprint(changed(event, **other)) != compute_fingerprint(event)


def test_the_fingerprint_of_an_action_is_of_nothing_else() -> None:
    event = action("write", arguments='{"path": "a"}')
    same = changed(event, reasoning_content="hm", security_risk="HIGH", summary="s")
    assert compute_fingerprint(same) == compute_fingerprint(event)


def test_the_fingerprint_of_an_invalid_call_is_of_its_text() -> None:
    event, same, other = (action(arguments=raw, valid=False) for raw in ("{", "{", "["))
    assert compute_fingerprint(event) == compute_fingerprint(same) != compute_fingerprint(other)


def test_the_fingerprint_of_an_observation_is_of_content_and_tool() -> None:
    event = observation(id_of(3), "write")
    assert compute_fingerprint(observation(id_of(3), "write", "no")) != compute_fingerprint(event)
    assert compute_fingerprint(changed(event, tool_name="look")) != compute_fingerprint(event)
    assert compute_fingerprint(changed(event, source="user")) != compute_fingerprint(event)


def test_a_process_number_is_not_in_the_fingerprint() -> None:
    def ran(pid: int, code: int) -> ObservationEvent:
        seen = TerminalObservation(metadata=CmdOutputMetadata(pid=pid, exit_code=code))
        return observation(id_of(3)).model_copy(update={"observation": seen})

    assert compute_fingerprint(ran(pid=1, code=0)) == compute_fingerprint(ran(pid=2, code=0))
    assert compute_fingerprint(ran(pid=1, code=0)) != compute_fingerprint(ran(pid=1, code=2))


def test_the_fingerprint_of_an_error_is_of_its_text() -> None:
    event, same = error(id_of(3), "write"), error(None, "look", "call_9")
    assert compute_fingerprint(event) == compute_fingerprint(same)
    assert compute_fingerprint(event) != compute_fingerprint(error(id_of(3), "write", words="else"))


def test_the_fingerprint_of_a_message_is_of_its_content() -> None:
    assert (
        compute_fingerprint(user("a"))
        == compute_fingerprint(user("a", "m-9"))
        != compute_fingerprint(user("b"))
    )
    assert compute_fingerprint(user("a")) != compute_fingerprint(agent("a"))
    pictures = [
        user().llm_message.model_copy(update={"content": (ImageContent(image_urls=(url,)),)})
        for url in ("data:a", "data:b")
    ]
    event, other = (user().model_copy(update={"llm_message": message}) for message in pictures)
    assert compute_fingerprint(event) != compute_fingerprint(other)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def backwards(value: Any) -> Any:
    """The same JSON with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(item) for item in value] if isinstance(value, list) else value


@pytest.mark.long
@given(st.dictionaries(st.text(max_size=5), plain))
def test_the_order_of_keys_does_not_change_a_fingerprint(data: dict[str, Any]) -> None:
    def calling(data: dict[str, Any]) -> AnyEvent:
        return changed(action("write"), action={"kind": "MCPToolAction", "data": data})

    assert compute_fingerprint(calling(data)) == compute_fingerprint(calling(backwards(data)))
    assert compute_fingerprint(unknown_event(data=data)) == compute_fingerprint(
        unknown_event(data=backwards(data))
    )
    stored = make_entry(3, calling(data), ORIGIN)
    assert compute_fingerprint(parse_entry(3, stored.body).event) == compute_fingerprint(
        calling(data)
    )


@given(
    words=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    times=st.sampled_from([1, 10, 1_000, 30_000]),
    which=st.sampled_from(range(9)),
)
def test_the_summary_of_any_event_is_small(words: str, times: int, which: int) -> None:
    long = words * times
    events: list[AnyEvent] = [
        user(long, message_id=long),
        agent(long, response=long),
        action(name=long, call_id=long, response=long, arguments=json.dumps({"a": long})),
        observation(id_of(3), name=long, words=long, call_id=long),
        error(long, name=long, call_id=long, words=long),
        error_event(code=long, detail=long),
        status_event("closed").model_copy(update={"key": f"refused {long}", "value": [long]}),
        unknown_event(long, tool_name=long, action_id=long, other=[long]),
        unknown_event("ActionEvent", tool_name=long, llm_response_id=long),
    ]
    fact = of(events[which], Usage(prompt_tokens=10**9, cost=1234.56789012, latency=1234.5678))
    plain = long.isascii() and long.isprintable() and set(long).isdisjoint('"\\')
    assert len(json_of(fact)) < (1_000 if plain else 4_000)


def test_a_megabyte_of_output_is_a_few_hundred_bytes() -> None:
    fact = of(observation(id_of(3), words="x" * 1_000_000))
    assert len(json_of(fact)) < 400
    assert 250_000 < fact.tokens < 251_000


def test_long_names_stay_different() -> None:
    summary, other = (of(action(response="r" * 500 + end)) for end in "ab")
    assert summary.llm_response_id != other.llm_response_id
    assert summary.llm_response_id == of(action(response="r" * 500 + "a")).llm_response_id


def test_a_message_id_of_the_longest_kind_is_kept_whole() -> None:
    assert of(user(message_id="m" * 128)).message_id == "m" * 128


def test_an_action_and_its_answers_name_the_same_action() -> None:
    summary = of(action("write", "call_7", "response-3"))
    assert (summary.tool_name, summary.tool_call_id) == ("write", "call_7")
    assert summary.action_id == id_of(0)
    assert summary.llm_response_id == of(action("look", "call_8", "response-3")).llm_response_id
    assert summary.llm_response_id != of(action("write", "call_7", "response-4")).llm_response_id
    answers = (observation, error, rejection)
    named = [of(answer(id_of(0), "write", call_id="call_7")) for answer in answers]
    assert {fact.action_id for fact in named} == {id_of(0)}


def test_a_summary_says_if_an_action_failed() -> None:
    assert of(action()).is_error is None
    assert of(action(valid=False)).is_error
    assert of(observation(id_of(0))).is_error is None
    seen = observation(id_of(0)).observation.model_copy(update={"is_error": True})
    assert of(observation(id_of(0)).model_copy(update={"observation": seen})).is_error
    assert of(error(id_of(0))).is_error
    assert of(rejection(id_of(0))).is_error is None
    assert of(error_event()).is_error


def test_a_risk_that_is_unknown_is_none() -> None:
    assert of(action()).risk is None
    assert of(changed(action(), security_risk="HIGH")).risk == "HIGH"


def test_the_summary_of_a_prompt_has_its_repeatable_tools() -> None:
    assert of(prompt()).repeatable == ("look", "finish")


def test_the_summary_of_a_spec_omits_its_prompt() -> None:
    long = SPEC.model_copy(update={"system_prompt": "x" * 100_000})
    fact = of(spec_event(long))
    assert fact.value == of(spec_event()).value
    assert len(json_of(fact)) < 1_200


def test_only_decisive_updates_have_values() -> None:
    assert of(opened_event("r")).value == {"run_id": "r"}
    assert of(status_event("closed")).value == "closed"
    assert of(status_event("x").model_copy(update={"key": "refused"})).value is None


def test_a_long_error_is_cut() -> None:
    fact = of(error_event("auth", "d" * 5_000))
    assert (fact.key, fact.value) == ("auth", "d" * (MAX_DETAIL_CHARS - 1) + "…")


@pytest.mark.parametrize("event", [observation(id_of(3)), error(id_of(3)), rejection(id_of(3))])
def test_an_answer_of_a_newer_writer_still_answers(event: UserRejectObservation) -> None:
    newer = parse_event({**dump_event(event), "new": 1})
    assert newer.kind == event.kind
    assert of(newer).action_id == id_of(3)


def test_an_action_of_a_newer_writer_cannot_be_run() -> None:
    fact = of(parse_event({**dump_event(action()), "new": 1}))
    assert fact.is_error
    assert (fact.action_id, fact.llm_response_id) == (id_of(0), "response-1")


def test_a_summary_is_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        of(user()).seq = 7  # type: ignore[misc]


def test_thoughts_and_actions_are_hashed_as_values() -> None:
    ran: Action = TerminalAction(command="ls")
    first = action().model_copy(update={"action": ran, "thought": (TextContent(text="hm"),)})
    second = action().model_copy(update={"action": ran, "thought": text("hm")})
    assert compute_fingerprint(first) == compute_fingerprint(second)

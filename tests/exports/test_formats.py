"""What every format keeps to: a new one is proved by these once it is in the list."""

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings

from events.content import text_of
from events.entry import Entry, entry
from events.messages import MessageEvent
from exports.format import About, Format
from exports.formats import FORMATS
from tests.builders import CONVERSATION, ORIGIN, agent, entries, id_of, user
from tests.exports.checks import exported, words
from tests.exports.story import ABOUT, PIXEL, SECRET, story
from tests.logs import condensed_logs

each = pytest.mark.parametrize("made", FORMATS, ids=lambda made: made.name)


def test_no_two_formats_have_one_name() -> None:
    assert len({made.name for made in FORMATS}) == len(FORMATS) > 0


@each
def test_the_same_log_makes_the_same_bytes(made: Format) -> None:
    assert exported(made, ABOUT, story()) == exported(made, ABOUT, story())


@each
def test_a_log_without_events_is_no_mistake(made: Format) -> None:
    words(exported(made, About(CONVERSATION), []))


@each
def test_what_was_said_and_what_came_of_it_is_there_though_it_was_forgotten(made: Format) -> None:
    told = words(exported(made, ABOUT, story()))
    for said in (
        "Look at this.",
        "Use hatch.",
        f"seen {SECRET}",
        "not on a Friday",
        "All <done> ❤",
    ):
        assert said in told, said


@each
def test_an_image_is_there_or_named(made: Format) -> None:
    told = words(exported(made, ABOUT, story()))
    assert PIXEL in told or "[image: image/png]" in told


@each
def test_what_is_missing_from_a_log_keeps_nothing_else_from_being_exported(made: Format) -> None:
    whole = story()
    for gone in range(len(whole)):
        told = words(exported(made, ABOUT, [one for one in whole if one.seq != gone]))
        assert gone == 28 or "All <done> ❤" in told


@each
@settings(max_examples=8, suppress_health_check=list(HealthCheck), deadline=None)
@given(log=condensed_logs)
def test_whatever_happened_every_message_of_a_person_and_the_agent_is_there(
    made: Format, log: list[Entry]
) -> None:
    spoken = [one.event for one in log if isinstance(one.event, MessageEvent)]
    if made.name == "openai":  # nothing is learned from what nobody answered
        while spoken and spoken[-1].source != "agent":
            spoken.pop()
    told = words(exported(made, ABOUT, log))
    for one in spoken:
        assert text_of(one.llm_message.content) in told


@each
def test_a_long_log_is_not_held(made: Format) -> None:
    """What is said goes out before what comes after it has been read."""
    read = 0

    def without_end() -> Iterator[Entry]:
        nonlocal read
        yield from entries([user("Count."), agent("One.", "r-0")])
        while True:
            read += 1
            event = agent(f"{read}", f"r-{read}").model_copy(update={"id": id_of(read + 1)})
            yield entry(read + 1, event, ORIGIN)

    assert len(list(islice(made.parts(ABOUT, without_end()), 50))) == 50
    assert read <= 50

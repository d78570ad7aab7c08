"""What an agent may wait for: durations, instants, signals, questions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.events.actions import MCPToolAction
from perdure.tools.waiting.times import parse_duration, parse_instant
from perdure.tools.waiting.tools import ASK_USER, WAIT

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1.5h", 5_400),
        ("15m", 900),
        ("2h 30m", 9_000),
        ("2h30m", 9_000),
        ("1 day, 2 hours and 3 minutes", 93_780),
        (" 3D ", 259_200),
        ("1w", 604_800),
        ("2 weeks", 1_209_600),
        ("10 sec", 10),
        ("366d", 366 * 86_400),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "soon",
        "5",
        "-1h",
        "1h-",
        "h",
        "1 fortnight",
        "1month",
        "1h x",
        "1,5h",
        "٣s x",
        "P1D",
    ],
)
def test_a_duration_of_nonsense_is_told_how_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no duration; write it as 90s, 15m, 2h 30m, 3d or 1w"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0s", "0.5s", "367d", "1000000000w", "99999999999999999999999h"])
def test_a_duration_is_from_a_second_to_a_year(text: str) -> None:
    with pytest.raises(ValueError, match="from one second to 366 days"):
        parse_duration(text)


@given(st.text(max_size=40))
def test_any_text_is_a_duration_or_a_sentence(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        sentence = str(error)
    else:
        assert 1 <= seconds <= 366 * 86_400
        return
    assert sentence.startswith("`for`: ")


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2026-03-01T10:00:00Z", None, "2026-03-01T10:00:00.000000"),
        ("2026-03-01T10:00", None, "2026-03-01T10:00:00.000000"),
        ("2026-03-01T10:30+01:00", None, "2026-03-01T09:30:00.000000"),
        ("2026-03-01T12:00", "Europe/Oslo", "2026-03-01T11:00:00.000000"),
        ("2026-07-01T12:00", "Europe/Oslo", "2026-07-01T10:00:00.000000"),
        ("2026-03-02", "America/New_York", "2026-03-02T05:00:00.000000"),
    ],
)
def test_an_instant_is_read_in_its_time_zone(text: str, zone: str | None, instant: str) -> None:
    assert parse_instant(text, zone, NOW) == instant


@pytest.mark.parametrize(
    ("text", "zone", "sentence"),
    [
        ("tomorrow", None, "'tomorrow' is no instant in ISO 8601; write it as 2026-03-01T08:00"),
        ("2026-13-01T10:00", None, "is no instant in ISO 8601"),
        ("2026-03-01T08:59:59Z", None, "2026-03-01 08:59:59 UTC is in the past; it is 2026-03-01 "),
        ("2026-03-01T09:00:00Z", None, "is in the past"),
        ("2026-03-01T09:30", "Europe/Oslo", "2026-03-01 08:30:00 UTC is in the past"),
        ("2026-03-01T10:00", "Europe/Olso", "there is no time zone 'Europe/Olso'; give an IANA"),
        ("2026-03-01T10:00", "../../etc/passwd", "there is no time zone"),
        ("2026-03-01T10:00", "a\0b", "there is no time zone"),
        ("2026-03-01T10:00Z", "Europe/Oslo", "has an offset from UTC already"),
        ("2028-03-01T10:00", None, "a wait takes 366 days at most"),
        ("0001-01-01T00:00+14:00", None, "is no instant"),
        ("9999-12-31T23:59-14:00", None, "is no instant"),
    ],
)
def test_a_bad_instant_is_refused_with_a_sentence(
    text: str, zone: str | None, sentence: str
) -> None:
    with pytest.raises(ValueError, match=r"^`(until|time_zone)`") as raised:
        parse_instant(text, zone, NOW)
    assert sentence in str(raised.value)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))  # noqa: DTZ001
def test_an_instant_that_is_taken_is_ahead(at: datetime) -> None:
    try:
        instant = parse_instant(at.isoformat(), None, NOW)
    except ValueError:
        assert not NOW < at.replace(tzinfo=UTC) <= NOW + timedelta(days=366)
    else:
        assert datetime.fromisoformat(instant) == at


def data(tool: Any, **arguments: Any) -> dict[str, Any]:
    action = tool.parse(arguments)
    assert isinstance(action, MCPToolAction)
    return action.data


def test_a_wait_is_for_a_time_or_a_signal_or_either() -> None:
    assert data(WAIT, **{"for": "1d"}) == {"seconds": 86_400}
    assert data(WAIT, signal="paid") == {"signal": "paid"}
    assert data(WAIT, signal="paid", **{"for": "1h"}) == {"signal": "paid", "seconds": 3_600}
    ahead = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S")
    assert data(WAIT, until=ahead) == {"until": f"{ahead}.000000"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "say what to wait for: `until` an instant, `for` a duration, or `signal`"),
        ({"for": "1h", "until": "2999-01-01"}, "give `until` or `for`, and not both"),
        ({"for": "1h", "time_zone": "UTC"}, "`time_zone` is that of `until`, which is missing"),
        ({"signal": "two words"}, "`signal`: 'two words' is no name of one: letters, digits"),
        ({"signal": "x" * 65}, "is no name of one"),
        ({"seconds": 5}, "`seconds` is unknown here, use only `until`, `for`, `time_zone`"),
        ({"until": "2020-01-01T00:00:00Z"}, "is in the past; it is 20"),
    ],
)
def test_a_wait_for_nonsense_is_refused_with_a_sentence(
    arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        WAIT.parse(arguments)
    assert sentence in str(raised.value)


def test_a_question_has_choices_and_a_deadline_if_they_are_given() -> None:
    assert data(ASK_USER, question=" Which? ") == {"question": "Which?"}
    assert data(ASK_USER, question="Which?", choices=["red", " blue "], **{"for": "1h"}) == {
        "question": "Which?",
        "choices": ["red", "blue"],
        "seconds": 3_600,
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"question": " "}, "`question` is empty"),
        ({"question": "x" * 1_001}, "`question`: string should have at most 1000 characters"),
        ({"question": "Which?", "choices": ["a", "a "]}, "`choices`: each one needs words of"),
        ({"question": "Which?", "choices": [" "]}, "`choices`: each one needs words of"),
        ({"question": "Which?", "choices": list("abcdefghijk")}, "`choices`: list should have at"),
        ({"choices": ["a"]}, "`question` is missing"),
    ],
)
def test_a_bad_question_is_refused_with_a_sentence(
    arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        ASK_USER.parse(arguments)
    assert sentence in str(raised.value)


def test_the_tools_are_waits_that_may_be_repeated() -> None:
    for tool in (WAIT, ASK_USER):
        assert tool.definition.suspends
        assert tool.definition.waits
        assert tool.definition.annotations.repeatable
    assert "for" in WAIT.definition.parameters["properties"]

"""What the answers of models in a discussion are taken for."""

import pytest

from perdure.agent.discussion.answers import (
    BallotAnswer,
    GrantAnswer,
    IntentAnswer,
    parse_ballot,
    parse_grants,
    parse_intent,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            '{"speak": true, "urgency": 7, "line": "it  costs\\nless"}',
            IntentAnswer(speaks=True, urgency=7, line="it costs less"),
        ),
        (
            'Sure:\n```json\n{"speak": true, "urgency": 99}\n```',
            IntentAnswer(speaks=True, urgency=10),
        ),
        ('{"line": "a word"}', IntentAnswer(speaks=True, urgency=5, line="a word")),
        ('{"speak": false, "line": "no"}', IntentAnswer(speaks=False)),
        ('{"speak": true, "urgency": "high"}', IntentAnswer(speaks=True, urgency=5)),
        ("Pass.", IntentAnswer(speaks=False)),
        (
            "I want to speak of {costs}.",
            IntentAnswer(speaks=True, urgency=5, line="I want to speak of {costs}."),
        ),
        ("  ", None),
    ],
)
def test_an_intent_is_read(text: str, wanted: IntentAnswer | None) -> None:
    assert parse_intent(text) == wanted


def test_a_long_line_is_cut() -> None:
    intent = parse_intent('{"speak": true, "line": "%s"}' % ("x" * 900))
    assert intent is not None
    assert len(intent.line) == 500


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"grant": ["bob", "eve", "bob", "ada"]}', GrantAnswer(speakers=("bob", "ada"))),
        ('{"grant": [], "consensus": true}', GrantAnswer(speakers=(), consensus=True)),
        ('{"grant": ["cyd", "ada", "bob"]}', GrantAnswer(speakers=("cyd", "ada"))),
        ('{"grant": "bob"}', None),
        ("bob, then ada", None),
    ],
)
def test_grants_are_read_among_those_who_want_to_speak(
    text: str, wanted: GrantAnswer | None
) -> None:
    assert parse_grants(text, ("ada", "bob", "cyd"), 2) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"ballot": "YES", "reason": "why not"}', BallotAnswer(ballot="yes", reason="why not")),
        ("No.", BallotAnswer(ballot="no")),
        ('I say {"ballot": "no"}', BallotAnswer(ballot="no")),
        ('{"ballot": "maybe"}', None),
        ("Yes and no.", None),
        ("", None),
    ],
)
def test_a_ballot_is_one_of_the_options(text: str, wanted: BallotAnswer | None) -> None:
    assert parse_ballot(text, ("yes", "no")) == wanted

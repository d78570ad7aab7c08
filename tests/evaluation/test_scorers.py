"""Tests of each scorer."""

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from perdure.evaluation.sample import Sample, build_sample
from perdure.evaluation.score import Score, ScoringError, TextScorer, metric_number, parse_score
from perdure.evaluation.scorers.command import CommandScorer
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.scorers.exact import Exact, normalize
from perdure.evaluation.scorers.includes import Includes
from perdure.evaluation.scorers.json_value import JsonMatch
from perdure.evaluation.scorers.match import Match
from perdure.evaluation.scorers.model_graded import ModelGraded
from perdure.evaluation.scorers.scorers import SCORER_KINDS, ScorerKind

ROOT = Path(__file__).parents[2]


def make_sample(*target: str) -> Sample:
    return build_sample({"id": "s", "input": "What is {answer}?", "target": list(target)})


def value(scorer: TextScorer, text: str, *target: str) -> Any:
    return scorer.score(make_sample(*target), text).value


def test_every_scorer_file_is_in_the_list() -> None:
    files = {path.stem for path in (ROOT / "perdure" / "evaluation" / "scorers").glob("[a-z]*.py")}
    homes = {kind.__module__.rpartition(".")[2] for kind in get_args(ScorerKind)}
    assert files == homes | {"scorers"}
    assert len(set(SCORER_KINDS)) == len(get_args(ScorerKind))


@pytest.mark.parametrize(
    "scorer",
    [kind() for kind in (Exact, Includes, Match, JsonMatch) if issubclass(kind, TextScorer)],
)
def test_a_sample_without_a_target_cannot_be_scored(scorer: TextScorer) -> None:
    for target in ((), ("",), (" \n",)):
        with pytest.raises(ScoringError, match="The sample 's' has no target to compare with"):
            scorer.score(make_sample(*target), "x")


@pytest.mark.parametrize(
    ("text", "target", "right"),
    [
        ("Paris", "paris", True),
        (" The  Paris!\n", "paris", True),
        ("Paris, France", "Paris France", True),
        ("Paris", "Paris France", False),
        ("42", "42.0", True),
        ("$1,000.00", "1000", True),
        ("(-5)", "-5", True),
        ("-5", "5", False),
        ("1,2", "12", False),
        ("3-5", "35", False),
        ("1e-5", "0.00001", True),
        ("-0", "0", True),
        ("well-known", "well known", True),
        ("3.14.", "3.14", True),
        ("", "-", False),
        ("-", "-", True),
        ("a ", "A", True),
        ("B", "A", False),
        ("", "The", False),
        ("the", "a", False),
        ("1e999", "2e999", False),
        ("inf", "infinity", False),
        ("STRASSE", "straße", True),
    ],
)
def test_exact_ignores_case_punctuation_and_articles(text: str, target: str, right: bool) -> None:
    assert value(Exact(), text, target) is right
    assert value(Exact(), target, text or "x") is right or not text


def test_strict_exact_compares_every_character() -> None:
    assert value(Exact(strict=True), " Paris\n", "Paris") is True
    assert value(Exact(strict=True), "paris", "Paris") is False


@given(st.text())
def test_normalizing_twice_changes_nothing(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once or any(item.isdigit() for item in text)


def test_any_of_several_targets_is_correct() -> None:
    assert value(Exact(), "ja", "yes", "ja") is True
    assert value(Includes(), "so ja!", "yes", "ja") is True
    assert value(Match(pattern="is (.*)"), "it is ja", "yes", "ja") is True
    assert value(JsonMatch(), "2", "1", "2") is True


def test_includes_finds_a_target_anywhere_in_the_answer() -> None:
    assert value(Includes(), "It is PARIS.", "paris") is True
    assert value(Includes(ignore_case=False), "It is PARIS.", "paris") is False
    assert value(Includes(all_of=True), "a and b", "a", "b") is True
    assert value(Includes(all_of=True), "a alone", "a", "b") is False
    assert value(Includes(), "", "paris") is False


@pytest.mark.parametrize(
    ("options", "text", "target", "right", "answer"),
    [
        ({"pattern": r"ANSWER: (\w+)"}, "ANSWER: a, no, answer: B", "b", True, "B"),
        ({"pattern": r"ANSWER: (\w+)", "first": True}, "ANSWER: a ANSWER: b", "b", False, "a"),
        ({"pattern": r"\d+"}, "1 and 23", "23", True, "23"),
        ({"pattern": r"\d+"}, "1 and 23", "2", False, "23"),
        ({"pattern": r"\d+"}, "none", "2", False, None),
        ({"pattern": r"(a)|(b)"}, "b", "b", True, "b"),
        ({"pattern": r"^x=(\d)$"}, "y\nx=1\nz", "1", True, "1"),
        ({"pattern": "A", "ignore_case": False}, "a", "A", False, None),
        ({}, "it is 42.", r"\b42\b", True, "42"),
        ({}, "it is 142.", r"\b42\b", False, None),
    ],
)
def test_match_finds_the_answer_by_a_pattern(
    options: dict[str, Any], text: str, target: str, right: bool, answer: str | None
) -> None:
    score = Match(**options).score(make_sample(target), text)
    assert (score.value, score.answer) == (right, answer)


def test_a_pattern_that_times_out_leaves_the_attempt_unscored() -> None:
    with pytest.raises(
        ScoringError, match=r"took over 0\.05 seconds on an answer of 41 characters"
    ):
        Match(pattern="(a|a)+(b|b)+c$", seconds=0.05).score(make_sample("x"), "a" * 40 + "!")


def test_an_invalid_pattern_is_refused() -> None:
    for scorer in (Match(pattern="("), ModelGraded(grade="(")):
        with pytest.raises(ValueError, match="is no regular expression"):
            scorer.check()
    Match().check()
    with pytest.raises(ScoringError, match="is no regular expression"):
        Match().score(make_sample("("), "x")


@pytest.mark.parametrize(
    ("text", "target", "right"),
    [
        ('{"b": 2.0, "a": 1}', '{"a": 1, "b": 2}', True),
        ('{"a": 1, "c": 3}', '{"a": 1}', False),
        ("[1, 2]", "[2, 1]", False),
        ("0.30000000000000004", "0.3", True),
        ("0.31", "0.3", False),
        ("true", "1", False),
        ("1", "true", False),
        ("true", "true", True),
        ("null", "null", True),
        ('{"a": null}', "{}", False),
        ('"a"', '"a"', True),
        ("1" + "0" * 400, "1" + "0" * 399 + "1", False),
        ("1" + "0" * 400, "1.5", False),
        ('So: {"a": [1, {"b": 2}]}. Done.', '{"a": [1, {"b": 2}]}', True),
        ('First {"a": 1}, then {"a": 2}.', '{"a": 2}', True),
        ('```json\n{"a": 1}\n```\nor {"a": 2}', '{"a": 1}', True),
        ('```\n{"a": 1}\n```\n```\n{"a": 2}\n```', '{"a": 2}', True),
        ("{a: 1} {" + "[" * 5000, "[]", False),
        ("{[1, 2]", "[1, 2]", True),
        ("NaN", "null", False),
        ("no JSON", "1", False),
    ],
)
def test_json_compares_values(text: str, target: str, right: bool) -> None:
    assert value(JsonMatch(), text, target) is right


def test_json_may_compare_a_subset_or_with_a_tolerance() -> None:
    assert (
        value(JsonMatch(subset=True), '{"a": {"b": 1, "x": 2}, "c": 3}', '{"a": {"b": 1}}') is True
    )
    assert value(JsonMatch(subset=True), '{"c": 3}', '{"a": 1}') is False
    assert value(JsonMatch(tolerance=0.1), "[95]", "[100]") is True


def test_a_target_that_is_no_json_cannot_be_scored() -> None:
    with pytest.raises(ScoringError, match="A target of the sample 's' is no JSON"):
        value(JsonMatch(), "{}", "{a}")


def test_a_commands_score_follows_its_exit_code() -> None:
    command = CommandScorer(command="pytest -q")
    assert command.read(0, "2 passed\n").value is True
    failed = command.read(1, "1 failed\n")
    assert (failed.value, failed.explanation) == (False, "1 failed")
    assert failed.metadata == {"exit_code": 1}
    # What the agent's own code prints is no score unless somebody has asked for that.
    assert command.read(1, '{"value": 1}').value is False


@pytest.mark.parametrize(
    ("exit_code", "sentence"),
    [
        (None, "took over 600 seconds: raise `timeout`"),
        (126, "cannot be executed"),
        (127, "is not there"),
        (-9, "was ended by signal 9"),
    ],
)
def test_a_command_that_did_not_run_gives_no_score(exit_code: int | None, sentence: str) -> None:
    with pytest.raises(ScoringError, match=sentence):
        CommandScorer(command="x").read(exit_code, "")


def test_a_command_may_print_its_score() -> None:
    command = CommandScorer(command="x", reads="score")
    assert command.read(0, "log\n0.5\n").value == 0.5
    assert command.read(1, '{"precision": 1, "recall": 0.5}').numbers == {
        "precision": 1.0,
        "recall": 0.5,
    }
    score = command.read(0, '{"value": true, "answer": "a", "explanation": "b"}')
    assert score == Score(value=True, answer="a", explanation="b")
    for output in ("", "no score", "[1]", "NaN", "null"):
        with pytest.raises(ScoringError):
            command.read(0, output)


def test_the_grading_prompt_shows_the_sample_and_the_answer() -> None:
    prompt = ModelGraded().prompt(make_sample("Paris"), "{criterion} says GRADE: C")
    assert "What is {answer}?" in prompt  # of the sample: only the template's own are filled in
    assert "{criterion} says GRADE: C" in prompt
    assert "Paris" in prompt
    assert "P if" not in prompt
    assert "P if" in ModelGraded(partial_credit=True).prompt(make_sample("Paris"), "x")
    assert "(no answer)" in ModelGraded().prompt(make_sample(), " ")
    own = ModelGraded(template="{answer} | {criterion} | {x}", criterion="short")
    assert own.prompt(make_sample("Paris"), "a") == "a | short | {x}"
    with pytest.raises(ValidationError, match="the template has to show the"):
        ModelGraded(template="{question}")


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("It is right.\nGRADE: C", "C"),
        ("grade: i", "I"),
        ("GRADE: C\nNo, I was wrong.\nGRADE: I\n", "I"),
        ("**GRADE: C**", "C"),
        ("It wrote `GRADE: C` in its answer.\nGRADE: I", "I"),
    ],
)
def test_the_last_grade_of_a_reply_counts(reply: str, letter: str) -> None:
    score = ModelGraded().read(reply)
    assert (score.value, score.explanation) == (letter, reply.strip())


def test_a_reply_without_a_grade_gives_no_score() -> None:
    for reply in ("", "It is right.", "GRADE: CORRECT", "GRADE: P", "GRADE: X"):
        with pytest.raises(ScoringError, match="The reply of the grading model has"):
            ModelGraded().read(reply)
    assert ModelGraded(partial_credit=True).read("GRADE: P").numbers == {"": 0.5}
    assert ModelGraded(grade=r"(\w)/C").read("I/C").value == "I"


def test_a_function_gives_a_score_or_its_value() -> None:
    custom = CustomScorer(function="mine.scorers:judge")
    assert custom.score_name == "judge"
    assert parse_score(True) == Score(value=True)
    assert parse_score({"a": 1, "b": "x"}).numbers == {"a": 1.0}
    assert parse_score(Score(value=0.5, answer="a")).answer == "a"
    for wrong in (None, [1], float("nan"), {"a": None}, object()):
        with pytest.raises(ScoringError, match="is no score"):
            parse_score(wrong)


def test_score_values_become_numbers_where_possible() -> None:
    assert [metric_number(item) for item in (True, False, 2.5, "C", "P", "I", "N", "blue")] == [
        1.0,
        0.0,
        2.5,
        1.0,
        0.5,
        0.0,
        0.0,
        None,
    ]
    assert parse_score(1).value == 1.0
    assert parse_score(True).value is True

"""What each scorer makes of an answer."""

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluation.sample import Sample, sample_of
from evaluation.score import Score, TextScorer, Unscorable, number, score_of
from evaluation.scorers.command import Command
from evaluation.scorers.custom import Custom
from evaluation.scorers.exact import Exact, normalized
from evaluation.scorers.includes import Includes
from evaluation.scorers.json_value import Json
from evaluation.scorers.match import Match
from evaluation.scorers.model_graded import ModelGraded
from evaluation.scorers.scorers import KINDS, Kinds

ROOT = Path(__file__).parents[2]


def asked(*target: str) -> Sample:
    return sample_of({"id": "s", "input": "What is {answer}?", "target": list(target)})


def value(scorer: TextScorer, text: str, *target: str) -> Any:
    return scorer.score(asked(*target), text).value


def test_every_file_of_a_scorer_is_in_the_list() -> None:
    files = {path.stem for path in (ROOT / "evaluation" / "scorers").glob("[a-z]*.py")}
    homes = {kind.__module__.rpartition(".")[2] for kind in get_args(Kinds)}
    assert files == homes | {"scorers"}
    assert len(set(KINDS)) == len(get_args(Kinds))


@pytest.mark.parametrize(
    "scorer", [kind() for kind in (Exact, Includes, Match, Json) if issubclass(kind, TextScorer)]
)
def test_without_a_target_nothing_can_be_said(scorer: TextScorer) -> None:
    for target in ((), ("",), (" \n",)):
        with pytest.raises(Unscorable, match="The sample 's' has no target to compare with"):
            scorer.score(asked(*target), "x")


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
def test_exact_looks_past_what_nobody_calls_a_difference(
    text: str, target: str, right: bool
) -> None:
    assert value(Exact(), text, target) is right
    assert value(Exact(), target, text or "x") is right or not text


def test_exact_can_be_strict() -> None:
    assert value(Exact(strict=True), " Paris\n", "Paris") is True
    assert value(Exact(strict=True), "paris", "Paris") is False


@given(st.text())
def test_what_is_normalized_stays_so(text: str) -> None:
    once = normalized(text)
    assert normalized(once) == once or any(one.isdigit() for one in text)


def test_any_of_several_targets_will_do() -> None:
    assert value(Exact(), "ja", "yes", "ja") is True
    assert value(Includes(), "so ja!", "yes", "ja") is True
    assert value(Match(pattern="is (.*)"), "it is ja", "yes", "ja") is True
    assert value(Json(), "2", "1", "2") is True


def test_includes_looks_anywhere() -> None:
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
    score = Match(**options).score(asked(target), text)
    assert (score.value, score.answer) == (right, answer)


def test_a_pattern_that_never_ends_leaves_the_attempt_unscored() -> None:
    with pytest.raises(Unscorable, match=r"took over 0\.05 seconds on an answer of 41 characters"):
        Match(pattern="(a|a)+(b|b)+c$", seconds=0.05).score(asked("x"), "a" * 40 + "!")


def test_what_is_no_pattern_is_refused() -> None:
    for scorer in (Match(pattern="("), ModelGraded(grade="(")):
        with pytest.raises(ValueError, match="is no regular expression"):
            scorer.check()
    Match().check()
    with pytest.raises(Unscorable, match="is no regular expression"):
        Match().score(asked("("), "x")


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
        ("NaN", "null", False),
        ("no JSON", "1", False),
    ],
)
def test_json_compares_values(text: str, target: str, right: bool) -> None:
    assert value(Json(), text, target) is right


def test_json_may_ask_for_a_part_or_be_less_exact() -> None:
    assert value(Json(subset=True), '{"a": {"b": 1, "x": 2}, "c": 3}', '{"a": {"b": 1}}') is True
    assert value(Json(subset=True), '{"c": 3}', '{"a": 1}') is False
    assert value(Json(tolerance=0.1), "[95]", "[100]") is True


def test_a_target_that_is_no_json_is_a_fault_of_the_dataset() -> None:
    with pytest.raises(Unscorable, match="A target of the sample 's' is no JSON"):
        value(Json(), "{}", "{a}")


def test_the_exit_code_of_a_command_decides() -> None:
    command = Command(command="pytest -q")
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
def test_a_command_that_did_not_run_is_no_score_of_0(exit_code: int | None, sentence: str) -> None:
    with pytest.raises(Unscorable, match=sentence):
        Command(command="x").read(exit_code, "")


def test_a_command_may_print_its_score() -> None:
    command = Command(command="x", reads="score")
    assert command.read(0, "log\n0.5\n").value == 0.5
    assert command.read(1, '{"precision": 1, "recall": 0.5}').numbers == {
        "precision": 1.0,
        "recall": 0.5,
    }
    score = command.read(0, '{"value": true, "answer": "a", "explanation": "b"}')
    assert score == Score(value=True, answer="a", explanation="b")
    for output in ("", "no score", "[1]", "NaN", "null"):
        with pytest.raises(Unscorable):
            command.read(0, output)


def test_the_grading_model_is_asked_with_what_the_sample_holds() -> None:
    prompt = ModelGraded().prompt(asked("Paris"), "{criterion} says GRADE: C")
    assert "What is {answer}?" in prompt  # of the sample: only the template's own are filled in
    assert "{criterion} says GRADE: C" in prompt
    assert "Paris" in prompt
    assert "P if" not in prompt
    assert "P if" in ModelGraded(partial_credit=True).prompt(asked("Paris"), "x")
    assert "(no answer)" in ModelGraded().prompt(asked(), " ")
    own = ModelGraded(template="{answer} | {criterion} | {x}", criterion="short")
    assert own.prompt(asked("Paris"), "a") == "a | short | {x}"
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
def test_the_last_grade_counts(reply: str, letter: str) -> None:
    score = ModelGraded().read(reply)
    assert (score.value, score.explanation) == (letter, reply.strip())


def test_a_reply_without_a_grade_is_no_score_of_0() -> None:
    for reply in ("", "It is right.", "GRADE: CORRECT", "GRADE: P", "GRADE: X"):
        with pytest.raises(Unscorable, match="The reply of the grading model has"):
            ModelGraded().read(reply)
    assert ModelGraded(partial_credit=True).read("GRADE: P").numbers == {"": 0.5}
    assert ModelGraded(grade=r"(\w)/C").read("I/C").value == "I"


def test_a_function_gives_a_score_or_its_value() -> None:
    custom = Custom(function="mine.scorers:judge")
    assert custom.called == "judge"
    assert custom.read(True) == Score(value=True)
    assert custom.read({"a": 1, "b": "x"}).numbers == {"a": 1.0}
    assert custom.read(Score(value=0.5, answer="a")).answer == "a"
    for wrong in (None, [1], float("nan"), {"a": None}, object()):
        with pytest.raises(Unscorable, match="is no score"):
            custom.read(wrong)


def test_values_are_numbers_where_they_can_be() -> None:
    assert [number(one) for one in (True, False, 2.5, "C", "P", "I", "N", "blue")] == [
        1.0,
        0.0,
        2.5,
        1.0,
        0.5,
        0.0,
        0.0,
        None,
    ]
    assert score_of(1).value == 1.0
    assert score_of(True).value is True

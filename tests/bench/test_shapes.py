"""The shapes of the benches, the checkouts, and the options that choose them."""

import argparse
import os
from pathlib import Path

import pytest

from bench.client import to_seconds
from bench.command import add_against, add_shapes, at_least, make_parser, shapes_of
from bench.processes import ROOT, cpu_seconds, measured_environment
from bench.shapes import BRIEF_SHAPES, BRIEF_TOOL, PLAIN_TOOL, SHAPES, Shape
from bench.sides import Tree, choose_trees
from perdure.agent.spec import Agent
from perdure.tools.catalog import load_tools


def parse(*args: str) -> argparse.Namespace:
    parser = make_parser("bench.step", "", rounds=5)
    add_shapes(parser)
    add_against(parser)
    return parser.parse_args(args)


def test_there_are_four_shapes_and_as_many_with_a_brief_tool() -> None:
    assert [shape.name for shape in SHAPES] == ["files", "s3", "files+http", "s3+http"]
    assert [shape.name for shape in BRIEF_SHAPES] == [
        "files+brief",
        "s3+brief",
        "files+http+brief",
        "s3+http+brief",
    ]


@pytest.mark.parametrize("shape", [*SHAPES, *BRIEF_SHAPES, Shape(condenses=True)])
def test_every_shape_is_an_agent_that_can_start(shape: Shape) -> None:
    agent = Agent.model_validate(shape.agent("steps-5", "/f.json", "http://127.0.0.1:1/v1"))
    assert agent.model.name == ("openai/steps-5" if shape.over_http else "scripted:/f.json#steps-5")
    assert list(load_tools(agent.tools)) == ["add"], "the scripts call this tool"
    assert agent.tools == (BRIEF_TOOL if shape.brief else PLAIN_TOOL,)


def test_only_the_shapes_that_are_named_run() -> None:
    chosen = shapes_of(parse("--only", "s3+http", "files+brief"), SHAPES)
    assert chosen == [Shape(on_s3=True, over_http=True), Shape(brief=True)]
    assert shapes_of(parse(), SHAPES) == list(SHAPES)


def test_five_rounds_are_the_default() -> None:
    assert parse().rounds == 5


def test_a_shape_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--only", "tape")
    assert "files+http+brief" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_rounds_are_a_number_from_one_on(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--rounds", text)
    assert f"{text} is no number from 1 on." in capsys.readouterr().err


def test_a_number_may_be_the_least_one() -> None:
    assert at_least(11)("11") == 11


def test_a_folder_that_is_no_checkout_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse("--against", str(tmp_path))
    assert f"{tmp_path} is no checkout: it has no perdure/worker.py." in capsys.readouterr().err


def test_another_checkout_comes_before_this_one_and_brings_its_own_modules() -> None:
    before, now = choose_trees(ROOT)
    assert (before.name, now) == ("before", Tree())
    assert before.environment() == {"PYTHONPATH": str(ROOT)}


def test_byte_code_is_kept_whatever_the_shell_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    environment = measured_environment({"OWN": "x"})
    assert (environment["PYTHONDONTWRITEBYTECODE"], environment["OWN"]) == ("", "x")


def test_the_cpu_of_a_process_is_counted_finely() -> None:
    before = cpu_seconds(os.getpid())
    assert sum(range(20_000)) == 199_990_000
    assert before < cpu_seconds(os.getpid()) < before + 5


def test_the_timestamps_of_a_log_are_utc() -> None:
    assert to_seconds("1970-01-02T00:00:00.500000") == 86400.5

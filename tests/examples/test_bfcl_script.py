"""The ground truth of the benchmark as the lines of a scripted model."""

from typing import Any

import pytest

pytest.importorskip(
    "bfcl_eval", reason="bfcl-eval is missing: pip install --no-deps bfcl-eval mpmath"
)

from examples.bfcl import upstream
from examples.bfcl.dataset import Sample, definitions, samples
from examples.bfcl.script import call, python, script
from perdure.testing.script import ScriptedToolCall

JSON_TYPES = {"object", "array", "string", "number", "integer", "boolean"}


def _turns(sample: Sample) -> list[list[list[ScriptedToolCall]]]:
    """The calls of a script by turn and answer; an answer without calls ends a turn."""
    turns: list[list[list[ScriptedToolCall]]] = [[]]
    for answer in script(sample).answers:
        if answer.tool_calls:
            turns[-1].append(list(answer.tool_calls))
        else:
            assert answer.content
            turns.append([])
    assert turns.pop() == []
    return turns


def test_there_are_the_two_hundred_samples_of_the_category() -> None:
    assert list(samples()) == [f"multi_turn_base_{number}" for number in range(200)]


@pytest.mark.parametrize("sample", samples().values(), ids=lambda sample: str(sample.number))
def test_a_script_makes_the_calls_of_the_ground_truth_turn_by_turn(sample: Sample) -> None:
    turns = _turns(sample)
    assert len(turns) == len(sample.turns) == len(sample.truth)
    made = [[_python(each) for step in turn for each in step] for turn in turns]
    truth = [text for turn in sample.truth for text in turn]
    due = upstream.execute(sample.entry, truth)
    assert upstream.execute(sample.entry, [text for turn in made for text in turn]) == due
    assert upstream.check(sample.entry, [[turn] for turn in made], sample.truth) is None


def _python(made: ScriptedToolCall) -> str:
    assert isinstance(made.arguments, dict)
    return python(made.name, made.arguments)


def test_calls_are_made_at_once_in_some_turns_and_one_by_one_in_others() -> None:
    steps = [turn for sample in samples().values() for turn in _turns(sample)]
    assert any(len(turn) == 1 and len(turn[0]) > 1 for turn in steps)
    assert any(len(turn) > 1 for turn in steps)
    assert all(len(turn) <= 1 or all(len(step) == 1 for step in turn) for turn in steps)


def test_positional_arguments_get_the_names_of_the_signature() -> None:
    assert call("sort('report.pdf')").arguments == {"file_name": "report.pdf"}
    # The documents have another order here, and it is the signature that a Python call goes by.
    booked = call("purchase_insurance('token', 'travel', 'B1', 10.5, 'C1')").arguments
    assert isinstance(booked, dict)
    assert booked["booking_id"] == "B1"
    assert booked["insurance_cost"] == 10.5


@pytest.mark.parametrize(
    "text",
    [
        "sort(name)",
        "sort(cat('a'))",
        "sort('a', 'b')",
        "sort('a', file_name='b')",
        "sort(*['a'])",
        "sort(**{'file_name': 'a'})",
        "fs.sort('a')",
        "'sort'",
        "launch('a')",
    ],
)
def test_anything_but_one_call_with_literals_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        call(text)
    assert str(refused.value)


def test_arguments_are_never_run_as_code() -> None:
    hostile = python("sort", {"file_name=__import__('os').abort(), x": 1})
    made = upstream.execute(samples()["multi_turn_base_0"].entry, [hostile])
    assert made[0].startswith("Error during execution:")


def test_every_type_of_a_parameter_is_one_of_json_schema() -> None:
    classes = {name for sample in samples().values() for name in sample.classes}
    tools = [tool for name in classes for tool in definitions(name)]
    assert len({tool.name for tool in tools}) == len(tools) == 128
    assert all(_types(tool.parameters) <= JSON_TYPES for tool in tools)


def _types(schema: dict[str, Any]) -> set[str]:
    nested = [*schema.get("properties", {}).values()]
    nested += [schema["items"]] if "items" in schema else []
    return {schema["type"]}.union(*map(_types, nested))

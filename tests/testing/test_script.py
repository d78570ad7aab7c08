"""Script files, and the selection of the answer for a request."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.testing.errors import ScriptError
from perdure.testing.script import (
    Script,
    ScriptedAnswer,
    ScriptedToolCall,
    answer_number,
    read_scripts,
)
from tests.models.requests import calm

TEXT = ScriptedAnswer(content="hm")
CALL = ScriptedAnswer(tool_calls=(ScriptedToolCall(name="think"), ScriptedToolCall(name="look")))


def conversation(script: Script, answers: int) -> list[dict[str, Any]]:
    """Build a request that shows this many answers of the script."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(answers):
        calls = [
            {"id": script.call_id(number, position)}
            for position in range(len(script.answers[number].tool_calls))
        ]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"]} for call in calls]
    return messages


scripts = st.builds(
    lambda answers, name: Script(name=name, answers=tuple(answers)),
    st.lists(st.sampled_from([TEXT, CALL]), min_size=1, max_size=12),
    st.sampled_from(["default", "a", "a_1", "v1.2-b"]),
)


@calm
@given(scripts, st.data())
def test_a_request_gets_the_answer_after_those_it_shows(
    script: Script, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, len(script.answers)))
    assert answer_number(script, conversation(script, count)) == count


@calm
@given(scripts, st.data())
def test_a_condensed_request_with_a_call_gets_the_same_answer(
    script: Script, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, len(script.answers)))
    messages = conversation(script, count)
    cut = data.draw(st.integers(0, len(messages)))
    tail = messages[cut:]
    if any(message.get("tool_calls") for message in tail):
        assert answer_number(script, tail) == count


@calm
@given(scripts)
def test_the_ids_of_a_script_are_unique(script: Script) -> None:
    ids = [
        script.call_id(number, position)
        for number, answer in enumerate(script.answers)
        for position in range(len(answer.tool_calls))
    ]
    assert len(ids) == len(set(ids))


def test_the_calls_of_another_script_count_as_answers() -> None:
    other = Script(name="other", answers=(CALL,) * 3)
    assert answer_number(Script(answers=(TEXT,) * 9), conversation(other, 3)) == 3


def test_a_json_file_holds_one_script_or_several(tmp_path: Path) -> None:
    single, several = tmp_path / "one.json", tmp_path / "several.json"
    single.write_text(json.dumps({"answers": [{"content": "hi"}]}))
    several.write_text(json.dumps({"a": {"answers": [{}]}, "b": {"answers": [{}, {}]}}))
    assert read_scripts(single) == {"default": Script(answers=(ScriptedAnswer(content="hi"),))}
    assert [len(script.answers) for script in read_scripts(several).values()] == [1, 2]


def test_a_toml_file_gives_the_same_scripts(tmp_path: Path) -> None:
    path = tmp_path / "story.toml"
    path.write_text(
        """
        [[story.answers]]
        content = "I look."
        delay = 0.5
        tool_calls = [{ name = "terminal", arguments = { command = "ls" } }]
        failures = [{ status = 429, retry_after = 2 }, { hang = true }]

        [[story.answers]]
        tool_calls = [{ name = "finish", arguments = "{bad", id = "mine" }]
        """
    )
    story = read_scripts(path)["story"]
    assert story.name == "story"
    assert story.answers[0].tool_calls[0].arguments_text == '{"command": "ls"}'
    assert [failure.hang for failure in story.answers[0].failures] == [False, True]
    assert story.answers[1].tool_calls[0].arguments_text == "{bad"
    assert story.answers[1].tool_calls[0].id == "mine"


def test_an_answer_may_be_written_as_its_text(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(json.dumps({"answers": ["hi", {"content": "ho"}], "summaries": ["so far"]}))
    script = read_scripts(path)["default"]
    assert script.answers == (ScriptedAnswer(content="hi"), ScriptedAnswer(content="ho"))
    assert script.answers_for("condense") == (ScriptedAnswer(content="so far"),)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("s.json", '{"answers": [\n{]}', "s.json is not valid JSON: .*line 2"),
        ("s.toml", "answers = 1 2", "s.toml is not valid TOML: .*line 1"),
        ("s.yaml", "answers: []", "s.yaml is neither JSON nor TOML: name it .json or .toml"),
        ("s.json", "[]", "s.json holds no script: write"),
        ("s.json", "{}", "s.json holds no script: write"),
        ("s.json", '{"answers": []}', "s.json at default.answers: .*at least 1 item"),
        ("s.json", '{"a b": {"answers": [{}]}}', "s.json at a b.name: .*match pattern"),
        ("s.json", '{"a": 3}', "s.json at a: .*dictionary"),
        ("s.json", '{"answers": [{}, {"delay": -1}]}', r"default.answers\[1\].delay: .*greater"),
        ("s.json", '{"answers": [{"contents": 1}]}', r"answers\[0\].contents: Extra inputs"),
        (
            "s.json",
            '{"answers": [{"tool_calls": [{"arguments": {}}]}]}',
            r"answers\[0\].tool_calls\[0\].name: Field required",
        ),
        ("s.json", '{"answers": [{"failures": [{"status": 200}]}]}', r"failures\[0\].status"),
    ],
)
def test_an_invalid_file_is_refused_with_the_position(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ScriptError, match=says) as raised:
        read_scripts(path)
    assert str(path) in str(raised.value)
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"none.json cannot be read \(No such file"):
        read_scripts(tmp_path / "none.json")

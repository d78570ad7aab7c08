"""The counts of calls beside Inspect, by files written by hand, and the model of our side."""

from pathlib import Path

import pytest

from bench.inspect_calls import CallFiles, Workload
from bench.inspect_worker import ANSWER, Counted
from perdure.agent.spec import ModelSpec
from perdure.events.content import TextContent
from perdure.models.model import Request

WORK = Workload(samples=2, tool_calls=1)
"""Four calls of the model: s0/0, s0/1, s1/0 and s1/1; two of the tool: s0/0 and s1/0."""


def write_calls(folder: Path, model: str, tool: str) -> CallFiles:
    files = CallFiles(folder)
    files.model.write_text(model.replace(" ", "\n"))
    files.tool.write_text(tool.replace(" ", "\n"))
    return files


def test_a_run_in_which_every_call_was_made_once_passes(tmp_path: Path) -> None:
    files = write_calls(tmp_path, "s0/0 s1/0 s0/1 s1/1", "s0/0 s1/0")
    files.check(WORK)
    assert files.compare(WORK) == {
        "calls_again": 0,
        "samples_again": 0,
        "tool_calls_again": 0,
        "tool_calls_missing": 0,
    }


def test_calls_and_their_samples_are_counted_that_were_made_again(tmp_path: Path) -> None:
    files = write_calls(tmp_path, "s0/0 s0/1 s0/0 s0/1 s0/0 s1/0 s1/1", "s0/0 s0/0 s1/0")
    assert files.compare(WORK) == {
        "calls_again": 3,
        "samples_again": 1,
        "tool_calls_again": 1,
        "tool_calls_missing": 0,
    }


def test_a_tool_call_that_was_never_made_is_missing(tmp_path: Path) -> None:
    files = write_calls(tmp_path, "s0/0 s0/1 s1/0 s1/1", "s1/0")
    assert files.compare(WORK)["tool_calls_missing"] == 1


@pytest.mark.parametrize(
    ("model", "tool"),
    [
        ("s0/0 s0/1 s1/0", "s0/0 s1/0"),
        ("s0/0 s0/1 s1/0 s1/1 s1/1", "s0/0 s1/0"),
        ("s0/0 s0/1 s1/0 s1/1", "s0/0"),
        ("s0/0 s0/1 s1/0 s1/1", "s0/0 s1/0 s1/0"),
    ],
)
def test_an_undisturbed_run_with_other_calls_fails(model: str, tool: str, tmp_path: Path) -> None:
    files = write_calls(tmp_path, model, tool)
    with pytest.raises(AssertionError):
        files.check(WORK)


def test_only_the_calls_of_the_batch_are_counted(tmp_path: Path) -> None:
    files = write_calls(tmp_path, "a-s0/0 a-s0/1 b-s0/0 b-s0/1 b-s0/1", "a-s0/0 b-s0/0")
    one_sample = Workload(samples=1, tool_calls=1)
    files.check(one_sample, "a-")
    assert files.compare(one_sample, "b-")["calls_again"] == 1


async def ask(model: Counted, *roles: str) -> tuple[str, str]:
    """Return the answer's text, and the arguments of its tool call."""
    question = {"role": "user", "content": "a-s0: What is 3 + 4?"}
    others = ({"role": role, "content": "…"} for role in roles)
    request = Request(ModelSpec(name="ollama/counted-2"), [question, *others])
    message = (await model.complete(request, lambda _: None)).message
    texts = [part.text for part in message.content if isinstance(part, TextContent)]
    return "".join(texts), "".join(call.arguments for call in message.tool_calls or ())


async def test_the_model_calls_its_tool_as_often_as_its_name_says(tmp_path: Path) -> None:
    model = Counted(str(tmp_path / "calls"))
    assert await ask(model) == ("", '{"line": "a-s0/0"}')
    assert await ask(model, "assistant", "tool") == ("", '{"line": "a-s0/1"}')
    assert await ask(model, *("assistant", "tool") * 2) == (ANSWER, "")
    assert (tmp_path / "calls").read_text().split() == ["a-s0/0", "a-s0/1", "a-s0/2"]

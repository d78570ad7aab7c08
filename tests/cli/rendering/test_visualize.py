"""An event is rendered whole, in the styles of the command line."""

import io

import pytest
from rich.console import Console

from perdure import visualize
from perdure.cli.rendering.events import TRUNCATED
from perdure.events.entry import Entry
from tests.builders import EVENT_OF_EACH_KIND, agent, entries, error, id_of, observation, user


def test_a_message_has_its_time_its_actor_and_its_words() -> None:
    shown = visualize(user("帮我创建一个 Python 文件"))
    assert shown.plain == "09:00:00  user\n帮我创建一个 Python 文件"
    assert "bold green" in [span.style for span in shown.spans]


def test_a_long_result_is_whole() -> None:
    lines = "\n".join(f"line {number}" for number in range(100))
    assert visualize(observation(id_of(0), words=lines)).plain.endswith(lines)


def test_a_failure_is_red() -> None:
    assert "red" in [span.style for span in visualize(error(id_of(0))).spans]


def test_an_answer_that_was_cut_off_says_so() -> None:
    cut = agent("Half an").model_copy(update={"truncated": True})
    assert visualize(cut).plain.endswith(f"Half an\n{TRUNCATED}")


def test_control_characters_are_escaped() -> None:
    assert visualize(user("\x1b[2J")).plain.endswith("\\x1b[2J")


@pytest.mark.parametrize("entry", entries(EVENT_OF_EACH_KIND), ids=lambda entry: entry.event.kind)
def test_every_kind_is_printed_by_rich(entry: Entry) -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(visualize(entry.event))
    assert isinstance(console.file, io.StringIO)
    head, _, text = console.file.getvalue().partition("\n")
    assert head.startswith(entry.event.timestamp[11:19])
    assert text.strip()

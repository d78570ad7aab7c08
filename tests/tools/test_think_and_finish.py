"""Thoughts and reports are recorded and change nothing."""

import pytest

from perdure.events.actions import FinishAction, ThinkAction
from perdure.events.content import join_text
from perdure.tools.speech import FINISH, THINK
from perdure.tools.tool import Tool
from tests.tools.conftest import ToolBench


async def test_a_thought_is_logged(place: ToolBench) -> None:
    action = THINK.parse({"thought": "hm"})
    assert action == ThinkAction(thought="hm")
    observation = await THINK.run(action, place.context)
    assert join_text(observation.content) == "Your thought has been logged."


async def test_a_report_is_what_was_reported(place: ToolBench) -> None:
    action = FINISH.parse({"message": "done"})
    assert action == FinishAction(message="done")
    observation = await FINISH.run(action, place.context)
    assert join_text(observation.content) == "done"


@pytest.mark.parametrize("tool", [THINK, FINISH], ids=["think", "finish"])
def test_think_and_finish_are_repeatable(tool: Tool) -> None:
    annotations = tool.definition.annotations
    assert annotations.readOnlyHint
    assert annotations.idempotentHint
    assert not annotations.destructiveHint
    assert not annotations.openWorldHint


@pytest.mark.parametrize(("tool", "name"), [(THINK, "thought"), (FINISH, "message")])
def test_a_call_without_words_is_refused(tool: Tool, name: str) -> None:
    with pytest.raises(ValueError, match=f"^`{name}` is missing.$"):
        tool.parse({})
    with pytest.raises(ValueError, match=f"^`x` is unknown here, use only `{name}`.$"):
        tool.parse({name: "", "x": 1})

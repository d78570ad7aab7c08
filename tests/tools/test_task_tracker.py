"""The list of tasks is read from the log."""

import dataclasses
from typing import Any

import pytest

from perdure.events.actions import TaskItem, TaskTrackerAction
from perdure.events.content import join_text
from perdure.events.observations import TaskTrackerObservation, ThinkObservation
from perdure.tools.history import ENTRIES_PER_READ
from perdure.tools.task_tracker import TASK_TRACKER
from tests.tools.conftest import ToolBench
from tests.tools.recording import log_as_another_worker_reads_it, record

PLAN = [
    {"title": "Look", "status": "done"},
    {"title": "Mend", "notes": "with a test", "status": "in_progress"},
    {"title": "Tell"},
]
ITEMS = (
    TaskItem(title="Look", status="done"),
    TaskItem(title="Mend", notes="with a test", status="in_progress"),
    TaskItem(title="Tell"),
)
NONE = 'No task list found. Use the "plan" command to create one.'


async def do(place: ToolBench, **arguments: Any) -> TaskTrackerObservation:
    observation = await TASK_TRACKER.run(TASK_TRACKER.parse(arguments), place.context)
    assert isinstance(observation, TaskTrackerObservation)
    await record(place, observation)
    return observation


async def viewed(place: ToolBench) -> str:
    return join_text((await do(place)).content)


async def test_a_plan_is_viewed_as_it_was_made(place: ToolBench) -> None:
    planned = await do(place, command="plan", task_list=PLAN)
    assert join_text(planned.content) == "Task list has been updated with 3 item(s)."
    assert planned.task_list == ITEMS
    seen = await do(place, command="view")
    assert seen.task_list == ITEMS
    assert join_text(seen.content) == (
        "# Task List\n\n1. ✅ Look\n\n2. 🔄 Mend\n   with a test\n\n3. ⏳ Tell"
    )


async def test_without_a_plan_there_is_nothing_to_view(place: ToolBench) -> None:
    assert await viewed(place) == NONE


async def test_the_newest_plan_counts(place: ToolBench) -> None:
    await do(place, command="plan", task_list=PLAN)
    await do(place, command="plan", task_list=PLAN[:1])
    assert await viewed(place) == "# Task List\n\n1. ✅ Look"
    await do(place, command="plan", task_list=[])
    assert await viewed(place) == NONE


async def test_another_worker_finds_the_list_however_long_ago_it_was_made(place: ToolBench) -> None:
    await do(place, command="plan", task_list=PLAN)
    await record(place, *[ThinkObservation() for _ in range(ENTRIES_PER_READ + 1)])
    context = dataclasses.replace(place.context, log=log_as_another_worker_reads_it(place))
    assert (await do(ToolBench(context))).task_list == ITEMS


async def test_a_list_made_in_the_same_answer_is_seen(place: ToolBench) -> None:
    """The observation of the list stands behind the action of the call that looks."""
    await record(place, *[ThinkObservation() for _ in range(place.context.seq + 2)])
    await do(place, command="plan", task_list=PLAN)
    assert (await do(place)).task_list == ITEMS


async def test_the_workspace_knows_nothing_of_it(place: ToolBench) -> None:
    await do(place, command="plan", task_list=PLAN)
    assert list(place.workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"command": "plan"}, "`task_list` is missing: `plan` needs it."),
        ({"command": "plan", "task_list": [{}]}, "`task_list.0.title` is missing."),
        (
            {"command": "plan", "task_list": [{"title": "x", "status": "doing"}]},
            "`task_list.0.status`: input should be 'todo', 'in_progress' or 'done', got 'doing'.",
        ),
    ],
)
def test_invalid_arguments_are_reported(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        TASK_TRACKER.parse(arguments)
    assert str(raised.value) == sentence


def test_unknown_fields_of_a_task_are_ignored() -> None:
    tasks = [{"id": "7", "title": "x", "priority": "high"}]
    expected = TaskTrackerAction(command="plan", task_list=(TaskItem(title="x"),))
    assert TASK_TRACKER.parse({"command": "plan", "task_list": tasks}) == expected
    assert TASK_TRACKER.parse({"task_list": tasks}) == TaskTrackerAction()


def test_two_plans_are_never_made_at_the_same_time() -> None:
    assert TASK_TRACKER.resources(TaskTrackerAction()) == ("task_list",)
    annotations = TASK_TRACKER.definition.annotations
    assert (annotations.readOnlyHint, annotations.idempotentHint) == (False, True)
    assert not annotations.destructiveHint

"""Which steps may run as local activities, and under which ids."""

import pytest

from perdure.agent.loop.local_steps import find_brief_name, local_activity_id
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Close, Prepare, Record, SaveState, Step, Think
from tests.builders import action, apply_events, opened_state, user


def looking(brief: tuple[str, ...] = ("look",)) -> State:
    state = apply_events(opened_state(), user(), action("look"))
    traits = state.tool_traits.model_copy(update={"brief": brief})
    return state.model_copy(update={"tool_traits": traits})


def act(repeatable: bool = True) -> Act:
    return Act(action_seq=4, spec_seq=1, repeatable=repeatable)


def test_a_call_is_brief_if_its_tool_says_so_and_may_be_called_again() -> None:
    assert find_brief_name(act(), looking()) == "look"
    assert find_brief_name(act(), looking(brief=())) is None
    assert find_brief_name(act(repeatable=False), looking()) is None


def test_saving_is_brief_unless_a_directory_of_the_user_is_scanned() -> None:
    state = looking()
    assert find_brief_name(SaveState(state=state), state) == "conversation.save"
    assert state.spec is not None
    spec = state.spec.model_copy(update={"workspace": "/home/me/project"})
    elsewhere = state.model_copy(update={"spec": spec})
    assert find_brief_name(SaveState(state=elsewhere), elsewhere) is None
    assert find_brief_name(Close(state=elsewhere), elsewhere) is None


def test_closing_a_long_conversation_is_not_brief() -> None:
    short, long = looking(), looking().model_copy(update={"next_seq": 5000})
    assert find_brief_name(Close(state=short), short) == "conversation.close"
    assert find_brief_name(Close(state=long), long) is None
    assert find_brief_name(SaveState(state=long), long) == "conversation.save"
    assert find_brief_name(SaveState(state=long, ending=True), long) is None


@pytest.mark.parametrize(
    "step", [Think(spec_seq=1), Prepare(spec_seq=1), Record(items=(), from_inbox=1)]
)
def test_what_asks_the_model_or_records_the_inbox_is_never_brief(step: Step) -> None:
    assert find_brief_name(step, looking()) is None


def test_the_id_of_a_local_step_says_what_it_does() -> None:
    """Its number would be another step's if Temporal never learns of this one."""
    ids = [
        local_activity_id(act(), 5),
        local_activity_id(act(), 6),
        local_activity_id(act().model_copy(update={"action_seq": 3}), 5),
        local_activity_id(SaveState(state=State()), 5),
    ]
    assert ids[0] == local_activity_id(act(), 5)
    assert len(set(ids)) == 4
    assert not any(name.isdigit() or " " in name for name in ids)


def test_a_step_that_saves_at_rest_is_written_as_workers_of_before_know_it() -> None:
    assert "ending" not in SaveState(state=State()).model_dump()
    assert SaveState(state=State(), ending=True).model_dump()["ending"] is True

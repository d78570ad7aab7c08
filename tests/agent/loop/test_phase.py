"""The status that clients are told follows from the events."""

import pytest

from perdure.agent.extensions import McpServer
from perdure.agent.loop.phase import describe_fault, describe_phase, find_phase
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.errors import Invalid
from perdure.events.actions import FinishAction
from perdure.events.content import TextContent
from perdure.events.control import InterruptEvent
from perdure.events.event import AnyEvent
from perdure.events.observations import FinishObservation
from perdure.events.status import InternalError, Loading
from perdure.events.tools import ObservationEvent
from tests.builders import (
    SPEC,
    TIMESTAMP,
    action,
    agent,
    apply_events,
    error_event,
    id_of,
    observation,
    opened_event,
    opened_state,
    prompt,
    spec_event,
    status_event,
    user,
)

TALKED = apply_events(opened_state(), user())


def called(tool: str, words: str, state: State = TALKED) -> State:
    """The state once the agent has called a tool that ends its turn."""
    seq = state.next_seq
    call = action(tool, "call_0").model_copy(update={"action": FinishAction(message=words)})
    result = ObservationEvent(
        timestamp=TIMESTAMP,
        action_id=id_of(seq),
        tool_name=tool,
        tool_call_id="call_0",
        observation=FinishObservation(content=(TextContent(text=words),)),
    )
    return apply_events(state, call, result)


def test_words_await_the_user_where_the_agent_could_have_finished() -> None:
    assert find_phase(apply_events(TALKED, agent("Which one?"))) == "awaiting_user"
    speaker = SPEC.model_copy(update={"tools": ("look",)})
    assert find_phase(apply_events(opened_state(speaker), user(), agent("Bye."))) == "finished"


def test_finish_and_a_refusal_are_told_apart() -> None:
    assert find_phase(called("finish", "Done.")) == "finished"
    refused = called("reject_task", "It would do harm.")
    assert (find_phase(refused), refused.status, refused.reason) == (
        "rejected",
        "finished",
        "It would do harm.",
    )


def test_a_refusal_keeps_its_reason_while_another_call_ends() -> None:
    beside = apply_events(TALKED, action("look", "call_1"))
    refused = called("reject_task", "It would do harm.", beside)
    assert refused.status == "running"
    over = apply_events(refused, observation(id_of(beside.next_seq - 1)))
    assert (find_phase(over), over.reason) == ("rejected", "It would do harm.")
    assert over.rejection_reason is None


def test_the_ending_of_a_turn_is_not_that_of_the_next() -> None:
    for first in (called("finish", "Done."), called("reject_task", "No.")):
        again = apply_events(first, user("And now?"))
        assert (find_phase(again), again.reason) == ("running", None)
        assert find_phase(apply_events(again, agent("Which one?"))) == "awaiting_user"


def test_a_tool_of_somebody_else_with_the_name_refuses_nothing() -> None:
    state = apply_events(TALKED, action("reject_task", "call_0"))
    later = apply_events(state, observation(id_of(state.next_seq - 1), "reject_task"))
    assert (later.status, later.ending) == ("running", None)


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ((), "running"),
        ((error_event("auth", "Set a key."),), "error"),
        ((error_event("max_tokens", "Raise it."),), "limited"),
        ((error_event("deadline", "Set a later one."),), "limited"),
        ((status_event("closed"),), "closed"),
        ((InterruptEvent(timestamp=TIMESTAMP, reason="too_many_conversations"),), "limited"),
        ((InterruptEvent(timestamp=TIMESTAMP),), "idle"),
    ],
)
def test_other_ends_have_their_own(events: tuple[AnyEvent, ...], phase: str) -> None:
    assert find_phase(apply_events(TALKED, *events)) == phase


def test_a_limit_is_named_with_how_to_go_on() -> None:
    detail = describe_phase(apply_events(TALKED, error_event("max_tokens", "Raise it.")))
    assert detail is not None
    assert detail.limit is not None
    assert (detail.limit.name, detail.limit.how_to_go_on) == ("max_tokens", "Raise it.")


def test_a_fault_of_ours_has_its_kind_and_its_id() -> None:
    event = error_event("internal", describe_fault("KeyError", "0199a1b2-7"))
    detail = describe_phase(apply_events(TALKED, event))
    assert detail is not None
    assert detail.fault == InternalError(kind="KeyError", id="0199a1b2-7")
    others = (error_event("internal", "It broke."), error_event("auth", "a · b: c"))
    for other in others:
        told = describe_phase(apply_events(TALKED, other))
        assert told is not None
        assert told.fault is None


def test_an_agent_without_a_prompt_loads_its_servers() -> None:
    spec = Agent(model="m", mcp=(McpServer(name="clock", command="clock"),))
    state = apply_events(State(), opened_event(), spec_event(spec), user())
    detail = describe_phase(state)
    assert find_phase(state) == "loading"
    assert detail is not None
    assert detail.loading == (Loading(what="mcp_server", name="clock"),)
    assert find_phase(apply_events(state, prompt())) == "running"


def test_an_agent_without_its_repository_loads_a_clone() -> None:
    url = "https://example.org/anna/doors.git"
    spec = SPEC.model_copy(update={"repository": url})
    state = apply_events(opened_state(spec), user())
    detail = describe_phase(state)
    assert find_phase(state) == "loading"
    assert detail is not None
    assert detail.loading == (Loading(what="clone", name="doors"),)
    assert find_phase(state.model_copy(update={"repository": url})) == "running"


def test_an_exit_ends_the_turn_at_once_or_after_its_calls() -> None:
    ended = apply_events(opened_state(), user("/exit"))
    assert (find_phase(ended), ended.turn, ended.turn_open) == ("finished", 1, False)
    working = apply_events(TALKED, action("look", "call_0"), user(" /exit\n"))
    assert find_phase(working) == "running"
    done = apply_events(working, observation(id_of(working.next_seq - 2), "look"))
    assert (find_phase(done), done.pending) == ("finished", ())
    assert find_phase(apply_events(opened_state(), user("/exit now"))) == "running"
    closed = apply_events(TALKED, status_event("closed"), user("/exit"))
    assert closed.status == "closed"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"response_schema": {"type": "array"}}, '"type": "object"'),
        ({"response_schema": {"type": "object"}, "tools": ("think",)}, "needs the tool `finish`"),
    ],
)
def test_a_schema_that_no_outputs_can_fit_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        Agent(model="m", **fields)  # type: ignore[arg-type]

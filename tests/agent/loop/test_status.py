from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.loop.status import Status, Trigger, next_status

STATUSES: tuple[Status, ...] = get_args(Status)
HAPPENINGS: tuple[Trigger, ...] = get_args(Trigger)

MOVES = """
              message   answer    pause     resume    rest      failure   stuck     close
    idle      running   finished  paused    running   idle      error     stuck     closed
    running   running   finished  paused    running   finished  error     stuck     closed
    paused    paused    finished  paused    running   idle      error     stuck     closed
    waiting   running   finished  paused    waiting   waiting   error     stuck     closed
    asleep    running   finished  paused    asleep    asleep    error     stuck     closed
    asked     running   finished  paused    asked     asked     error     stuck     closed
    finished  running   finished  paused    running   finished  error     stuck     closed
    error     running   finished  error     running   idle      error     stuck     closed
    stuck     running   finished  stuck     running   idle      error     stuck     closed
    closed    closed    closed    closed    closed    closed    closed    closed    closed
"""
QUESTIONS = """
              interrupt ask       respond   reopen
    idle      idle      idle      idle      idle
    running   idle      waiting   running   running
    paused    paused    paused    paused    paused
    waiting   idle      waiting   running   waiting
    asleep    idle      asleep    asleep    asleep
    asked     idle      asked     asked     asked
    finished  finished  finished  finished  finished
    error     error     error     error     error
    stuck     stuck     stuck     stuck     stuck
    closed    closed    closed    closed    running
"""
RECORDS = """
              record    reject    reopen_at_rest
    idle      idle      idle      idle
    running   running   running   running
    paused    paused    paused    paused
    waiting   idle      idle      waiting
    asleep    asleep    asleep    asleep
    asked     asked     asked     asked
    finished  idle      finished  finished
    error     idle      error     error
    stuck     idle      stuck     stuck
    closed    closed    closed    idle
"""
WAITS = """
              wait      question  wake
    idle      idle      idle      idle
    running   asleep    asked     running
    paused    asleep    asked     paused
    waiting   waiting   waiting   waiting
    asleep    asleep    asleep    running
    asked     asked     asked     running
    finished  finished  finished  finished
    error     asleep    asked     error
    stuck     stuck     stuck     stuck
    closed    closed    closed    closed
"""
"""Written from the design, not from the code."""

SHORT = {"waiting": "waiting_for_confirmation", "asked": "waiting_for_answer", "asleep": "waiting"}


def cells() -> list[tuple[str, str, str]]:
    all_cells = []
    for table in (MOVES, QUESTIONS, RECORDS, WAITS):
        header, *rows = table.split("\n")[1:-1]
        for row in rows:
            status, *thens = (SHORT.get(word, word) for word in row.split())
            all_cells += [(status, *cell) for cell in zip(header.split(), thens, strict=True)]
    return all_cells


def test_the_table_has_every_cell() -> None:
    pairs = {(status, happening) for status, happening, _ in cells()}
    assert pairs == {(status, happening) for status in STATUSES for happening in HAPPENINGS}


@pytest.mark.parametrize(("status", "happening", "then"), cells())
def test_a_happening_moves_a_status(status: Status, happening: Trigger, then: Status) -> None:
    assert next_status(status, happening) == then


statuses = st.sampled_from(STATUSES)


@given(st.lists(st.sampled_from([item for item in HAPPENINGS if "reopen" not in item])))
def test_a_closed_status_stays_closed_until_a_message_opens_it_again(
    happenings: list[Trigger],
) -> None:
    status: Status = "closed"
    for happening in happenings:
        status = next_status(status, happening)
    assert status == "closed"


@pytest.mark.parametrize("status", STATUSES)
def test_anything_can_be_closed(status: Status) -> None:
    assert next_status(status, "close") == "closed"


@pytest.mark.parametrize("status", [item for item in STATUSES if item != "closed"])
def test_every_status_but_closed_can_be_left(status: Status) -> None:
    left = {next_status(status, happening) for happening in HAPPENINGS if happening != "close"}
    assert left - {status, "closed"}


@pytest.mark.parametrize("status", [item for item in STATUSES if item not in ("closed", "paused")])
def test_a_message_sets_the_agent_to_work(status: Status) -> None:
    assert next_status(status, "message") == "running"


def test_a_message_does_not_end_a_pause() -> None:
    assert next_status("paused", "message") == "paused"
    assert next_status("paused", "resume") == "running"


def test_only_a_response_ends_the_wait_for_confirmation() -> None:
    assert next_status("waiting_for_confirmation", "resume") == "waiting_for_confirmation"
    assert next_status("waiting_for_confirmation", "rest") == "waiting_for_confirmation"


ENDS = (
    "answer",
    "pause",
    "rest",
    "failure",
    "stuck",
    "close",
    "interrupt",
    "ask",
    "record",
    "reject",
)


@given(statuses, st.sampled_from(ENDS))
def test_only_a_message_or_a_resumption_starts_work(status: Status, happening: Trigger) -> None:
    at_work = status == "running" and happening in ("record", "reject")
    assert (next_status(status, happening) == "running") == at_work


@pytest.mark.parametrize("status", STATUSES)
def test_a_response_goes_on_with_what_waited_for_it_and_wakes_nobody(status: Status) -> None:
    waited = status in ("running", "waiting_for_confirmation")
    assert next_status(status, "respond") == ("running" if waited else status)


@pytest.mark.parametrize("status", STATUSES)
def test_only_an_agent_at_work_asks(status: Status) -> None:
    assert (next_status(status, "ask") != status) == (status == "running")


@pytest.mark.parametrize("status", STATUSES)
def test_an_interrupt_stops_work_and_changes_nothing_at_rest(status: Status) -> None:
    works = status in ("running", "waiting_for_confirmation", "waiting_for_answer", "waiting")
    assert next_status(status, "interrupt") == ("idle" if works else status)


@given(statuses, st.sampled_from(HAPPENINGS))
def test_a_repeated_trigger_changes_nothing(status: Status, happening: Trigger) -> None:
    once = next_status(status, happening)
    assert next_status(once, happening) == once

"""The log tells of a shell that was on another worker."""

import uuid
from dataclasses import replace

import pytest

from events.entry import Origin
from events.observations import TerminalObservation
from events.tools import AgentErrorEvent, ObservationEvent, ToolErrorKind
from storage.files import FileStore
from storage.log import EventLog
from tests.tools.conftest import Place
from tests.tools.talking import Talk, said, talk
from tools.tool import Context

__all__ = ["talk"]

RESTARTED = "[A new shell was started in the workspace"


async def recorded(place: Place, *events: ObservationEvent | AgentErrorEvent) -> Context:
    """A context further on in a log with these events."""
    log = place.context.log
    for event in events:
        seq = await log.end()
        await log.append([event], base=seq, origin=Origin(run="run", activity=str(seq)))
    return replace(place.context, seq=await log.end())


def observed(tool: str) -> ObservationEvent:
    return ObservationEvent(
        timestamp="2026-03-01T09:00:00.000000",
        action_id=str(uuid.uuid4()),
        tool_name=tool,
        tool_call_id="call",
        observation=TerminalObservation(),
    )


def failed(kind: ToolErrorKind) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp="2026-03-01T09:00:00.000000",
        error="So it is.",
        tool_name="terminal",
        tool_call_id="call",
        classification=kind,
    )


@pytest.mark.parametrize(
    "events",
    [
        [observed("terminal")],
        [observed("terminal"), *[observed("think")] * 40],
        [failed("outcome_unknown")],
        [failed("interrupted")],
    ],
)
async def test_a_shell_that_was_elsewhere_is_told_of_once(
    talk: Talk, events: list[ObservationEvent | AgentErrorEvent]
) -> None:
    context = await recorded(talk.place, *events)
    assert said(await talk.say("true", context=context)).startswith(RESTARTED)
    assert RESTARTED not in said(await talk.say("true", context=context))


@pytest.mark.parametrize(
    "events", [[], [observed("think")], [failed("bad_arguments"), failed("unknown_tool")]]
)
async def test_where_there_was_no_shell_none_is_missed(
    talk: Talk, events: list[ObservationEvent | AgentErrorEvent]
) -> None:
    context = await recorded(talk.place, *events)
    assert RESTARTED not in said(await talk.say("true", context=context))


async def test_a_log_that_cannot_be_read_is_no_reason_not_to_run(talk: Talk) -> None:
    store = talk.place.context.log.store
    assert isinstance(store, FileStore)
    lost = EventLog(store, "someone", str(uuid.uuid4()))
    context = replace(talk.place.context, log=lost, seq=50)
    assert await talk.prints("echo fine", context=context) == "fine\n"

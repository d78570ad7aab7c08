"""The log shows that a shell was lost with another worker."""

import uuid
from dataclasses import replace

import pytest

from perdure.events.entry import Origin
from perdure.events.observations import TerminalObservation
from perdure.events.tools import AgentErrorEvent, ObservationEvent, ToolErrorKind
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from perdure.tools.tool import Context
from tests.tools.conftest import ToolBench
from tests.tools.recording import log_as_another_worker_reads_it
from tests.tools.talking import Terminal, talk, text_of_result

__all__ = ["talk"]

RESTARTED = "[A new shell was started in the workspace"


async def recorded(place: ToolBench, *events: ObservationEvent | AgentErrorEvent) -> Context:
    """A context further on in a log with these events."""
    log = log_as_another_worker_reads_it(place)
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
async def test_a_shell_lost_with_another_worker_is_reported_once(
    talk: Terminal, events: list[ObservationEvent | AgentErrorEvent]
) -> None:
    context = await recorded(talk.place, *events)
    assert text_of_result(await talk.run("true", context=context)).startswith(RESTARTED)
    assert RESTARTED not in text_of_result(await talk.run("true", context=context))


@pytest.mark.parametrize(
    "events", [[], [observed("think")], [failed("bad_arguments"), failed("unknown_tool")]]
)
async def test_without_an_earlier_shell_none_is_reported_lost(
    talk: Terminal, events: list[ObservationEvent | AgentErrorEvent]
) -> None:
    context = await recorded(talk.place, *events)
    assert RESTARTED not in text_of_result(await talk.run("true", context=context))


async def test_a_log_that_cannot_be_read_is_no_reason_not_to_run(talk: Terminal) -> None:
    store = talk.place.context.log.store
    assert isinstance(store, FileStore)
    lost = EventLog(store, "someone", str(uuid.uuid4()))
    context = replace(talk.place.context, log=lost, seq=50)
    assert await talk.run_ok("echo fine", context=context) == "fine\n"

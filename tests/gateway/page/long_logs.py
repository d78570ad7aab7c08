"""Long conversations, written into a store of files, with the copies that a worker makes."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.client.ids import new_conversation_id
from perdure.events.actions import TerminalAction
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.content import MessageToolCall, TextContent
from perdure.events.entry import Entry, Origin, add_checksum, make_entry
from perdure.events.event import AnyEvent
from perdure.events.observations import TerminalObservation
from perdure.events.projection import summarize
from perdure.events.tools import ActionEvent, ObservationEvent
from perdure.events.usage import Usage
from perdure.storage.files import FileStore
from perdure.storage.keys import conversation_prefix, event_id, event_key
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.event_log import EventLog
from tests.builders import TIMESTAMP, agent, opened_event, prompt, spec_event, user

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
ROUND = 10
"""Events from one answer of the agent to the next: calls with their results between them."""

SPENT = Usage(prompt_tokens=900, completion_tokens=60, cost=0.001, latency=0.8)


async def write_long_log(store: FileStore, folder: Path, user_id: str, events: int) -> str:
    """Write a conversation of that many events to the store in the folder; return its id."""
    conversation_id = new_conversation_id()
    target = folder / conversation_prefix(user_id, conversation_id)
    summaries = []
    for entry in _entries(conversation_id, events):
        path = target / event_key(conversation_id, entry.seq)
        if entry.seq == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(entry.body)
        summaries.append(summarize(entry))
    log = EventLog(store, user_id, conversation_id)
    await log.seal(events)
    await log.save_state(encode_cached_state(fold(State(), summaries)))
    return conversation_id


def _entries(conversation_id: str, count: int) -> Iterator[Entry]:
    previous_sha = ""
    for seq, event in enumerate(_events(conversation_id, count)):
        moment = (START + timedelta(seconds=seq)).strftime(TIMESTAMP_FORMAT)
        fields = {"id": event_id(conversation_id, seq), "timestamp": moment}
        placed = event.model_copy(update=fields)
        usage = SPENT if event.source == "agent" else None
        origin = Origin(run="run", activity=str(seq))
        entry = add_checksum(make_entry(seq, placed, origin, usage), previous_sha)
        previous_sha = entry.sha
        yield entry


def _events(conversation_id: str, count: int) -> Iterator[AnyEvent]:
    yield from (opened_event(), spec_event(), prompt(), user("Count the lines of each file."))
    for seq in range(4, count - 1):
        if seq % ROUND == 0:
            yield agent(f"**{seq // 2}** files so far, `none` of them empty.", f"answer-{seq}")
        elif seq % ROUND == 1:
            yield user(f"Go on after event {seq - 1}.")
        elif seq % 2 == 0:
            yield _call(seq)
        else:
            yield _result(conversation_id, seq)
    yield agent("All files are counted.", "answer-last")


def _call(seq: int) -> ActionEvent:
    command = f"wc -l src/module_{seq}.py"
    return ActionEvent(
        timestamp=TIMESTAMP,
        action=TerminalAction(command=command),
        tool_name="terminal",
        tool_call_id=f"call-{seq}",
        tool_call=MessageToolCall(
            id=f"call-{seq}", name="terminal", arguments=f'{{"command": "{command}"}}'
        ),
        llm_response_id=f"response-{seq}",
    )


def _result(conversation_id: str, seq: int) -> ObservationEvent:
    content = (TextContent(text=f"{seq * 7} src/module_{seq - 1}.py"),)
    return ObservationEvent(
        timestamp=TIMESTAMP,
        action_id=event_id(conversation_id, seq - 1),
        tool_name="terminal",
        tool_call_id=f"call-{seq - 1}",
        observation=TerminalObservation(content=content, exit_code=0),
    )

"""The log's account of a response, and of its turn as it is now."""

from datetime import UTC, datetime

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.errors import NotFound
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.gateway.openai.agents import name_agent
from perdure.gateway.openai.metadata import from_tags
from perdure.gateway.openai.projections.ids import ResponseId, format_conversation_id
from perdure.gateway.openai.projections.response import Head
from perdure.gateway.turns.parts import Part
from perdure.gateway.turns.starts import is_start
from perdure.gateway.turns.turn import make_reader
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state_at

PAGE_SIZE = 100


async def read_head(log: ReadableLog, response_id: ResponseId) -> Head:
    """Read what is known of a response before its turn begins. Raises NotFound."""
    entry = await log.find(response_id.seq)
    if entry is None:
        raise no_response(response_id)
    state = await read_state_at(log, response_id.seq)
    if not is_start(state, entry) or state.spec is None:
        raise no_response(response_id)
    return make_head(response_id, state.spec, entry)


def make_head(response_id: ResponseId, agent: Agent, entry: Entry) -> Head:
    return Head(
        id=str(response_id),
        created_at=read_time(entry),
        model=name_agent(agent),
        conversation_id=format_conversation_id(response_id.conversation_id),
        metadata=from_tags(agent.tags),
    )


async def read_parts(log: ReadableLog, seq: int) -> tuple[list[Part], State]:
    """Read the parts that a turn has by now, and the state behind the last of them."""
    reader = await make_reader(log, await read_state_at(log, seq))
    parts: list[Part] = []
    while not reader.is_over:
        entries = await log.read(reader.state.next_seq, PAGE_SIZE)
        parts += [part for entry in entries for part in reader.take_entry(entry)]
        if len(entries) < PAGE_SIZE:
            break
    return parts, reader.state


async def is_newest(log: ReadableLog, state: State) -> bool:
    """Tell whether no turn has begun after this state, which is that of the end of one."""
    end = state
    while entries := await log.read(state.next_seq, PAGE_SIZE):
        for entry in entries:
            state = fold(state, [summarize(entry)])
            if state.status == "running" or state.pending != end.pending:
                return False
    return True


def read_time(entry: Entry) -> float:
    """Return the time of an event in seconds since 1970."""
    return datetime.fromisoformat(entry.event.timestamp).replace(tzinfo=UTC).timestamp()


def no_response(response_id: ResponseId) -> NotFound:
    return NotFound(f"There is no response {response_id}.")

"""The items of a whole conversation, and those that a response begins with."""

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.events.content import join_text
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.projection import summarize
from perdure.events.tools import UserRejectObservation
from perdure.gateway.openai.head import make_head
from perdure.gateway.openai.projections.ids import ResponseId, format_approval_id, format_item_id
from perdure.gateway.openai.projections.items import Item, ToolItems, user_item
from perdure.gateway.openai.projections.response import ResponseProjection
from perdure.gateway.turns.reader import TurnReader
from perdure.gateway.turns.starts import is_start, read_all
from perdure.gateway.turns.turn import make_reader
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state_at


async def read_items(log: ReadableLog, tool_items: ToolItems) -> list[Item]:
    """Read the items of a conversation, the oldest first."""
    items: list[Item] = []
    state = State()
    turn: tuple[TurnReader, ResponseProjection, list[Item]] | None = None
    async for entry in read_all(log):
        if turn is None and state.spec is not None and is_start(state, entry):
            head = make_head(ResponseId(log.conversation_id, entry.seq), state.spec, entry)
            turn = await make_reader(log, state), ResponseProjection(head, tool_items), []
        said = input_items(state, entry)
        state = fold(state, [summarize(entry)])
        if turn is None:
            items += said
            continue
        reader, projection, spoken = turn
        spoken += said
        for part in reader.take_entry(entry):
            projection.take(part)
        if reader.is_over:
            items, turn = [*items, *spoken, *projection.output], None
    return items if turn is None else [*items, *turn[2], *turn[1].output]


async def read_input_items(log: ReadableLog, seq: int) -> list[Item]:
    """Read the items that the response which begins in a slot was asked with."""
    state = await read_state_at(log, seq)
    items: list[Item] = []
    for entry in await log.read(seq, 100):
        found = input_items(state, entry)
        items += found
        if not found or entry.event.kind == "MessageEvent":
            break
    return items


def input_items(state: State, entry: Entry) -> list[Item]:
    """Return what a person says in an entry that comes after a state."""
    name = (entry.origin.run, entry.origin.activity, str(entry.origin.position))
    match entry.event:
        case MessageEvent(source="user", llm_message=message):
            return [user_item(format_item_id("msg", *name), join_text(message.content))]
        case ConversationStateUpdateEvent(key="confirmed", value=seqs):
            calls = [action.tool_call_id for action in state.pending if action.seq in seqs]
            return [_answer_item(name, call_id, True, None) for call_id in calls]
        case UserRejectObservation(tool_call_id=call_id, rejection_reason=reason):
            return [_answer_item(name, call_id, False, reason)]
        case _:
            return []


def _answer_item(name: tuple[str, ...], call_id: str, approve: bool, reason: str | None) -> Item:
    return {
        "id": format_item_id("mcpa", *name, call_id),
        "type": "mcp_approval_response",
        "approval_request_id": format_approval_id(call_id),
        "approve": approve,
        "reason": reason,
    }

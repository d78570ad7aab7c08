"""A run as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing
from functools import partial

from perdure.events.usage import Usage
from perdure.gateway.ag_ui.begin import Run
from perdure.gateway.ag_ui.call import Call
from perdure.gateway.ag_ui.events import Event
from perdure.gateway.ag_ui.run import RunHead, RunProjection
from perdure.gateway.errors import EXPECTED, describe_failure
from perdure.gateway.turn_streams import KEEP_ALIVE, TurnStream, encode_data, keep_alive
from perdure.gateway.turns.parts import Ended
from perdure.gateway.turns.turns import TurnKey
from perdure.storage.log.state import read_state

CONVERSATION_HEADER = "X-Conversation-Id"


async def stream_run(call: Call, run: Run) -> TurnStream:
    """Answer with the events of a run. Raises Refused if the user has too many connections."""
    stack = ExitStack()
    projection = RunProjection(await _make_head(call, run))
    stack.enter_context(call.gateway.connections.hold(call.user_id))
    headers = {CONVERSATION_HEADER: call.conversation.id}
    return TurnStream(_encode(call, run, projection), stack, headers)


async def _make_head(call: Call, run: Run) -> RunHead:
    body = call.body
    state = await read_state(call.conversation.log)
    told = run.history.messages if run.history is not None else []
    replaced = any(message["role"] == "reasoning" for message in told)
    kept = () if replaced else (each.id for each in body.messages if each.role == "reasoning")
    model = state.spec.model.name if state.spec is not None else None
    return RunHead(
        *(body.thread_id, body.run_id, call.conversation.id, call.agent),
        model=model,
        parent_run_id=body.parent_run_id,
        client_state=body.state,
        told=frozenset(kept),
    )


async def _encode(call: Call, run: Run, projection: RunProjection) -> AsyncIterator[bytes]:
    """Yield the events of a run; its last one comes whatever happens."""
    is_valid = partial(call.gateway.identities.is_valid, call.caller.principal)
    events = _list_events(call, run, projection)
    failure = ("unauthorized", "The key of this request is no longer valid.")
    try:
        async with aclosing(keep_alive(events, is_valid)) as ticks:
            async for event in ticks:
                yield KEEP_ALIVE if event is None else encode_data(event)
    except EXPECTED as error:
        _, code, detail, hint, _ = describe_failure(error)
        failure = (code, f"{detail} {hint}".strip())
    if not projection.is_over:
        for event in projection.fail(*failure):
            yield encode_data(event)


async def _list_events(
    call: Call, run: Run, projection: RunProjection
) -> AsyncGenerator[Event, None]:
    messages = run.history.messages if run.history is not None else None
    for event in projection.begin(messages):
        yield event
    if run.seq is None:
        state = await read_state(call.conversation.log)
        for event in projection.take(Ended(state.status, state.reason, Usage(), 0)):
            yield event
        return
    key = TurnKey(call.user_id, call.conversation.id, run.seq)
    async with aclosing(call.gateway.turns.find(key).listen()) as parts:
        async for part in parts:
            for event in projection.take(part):
                yield event

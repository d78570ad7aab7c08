"""The state of a conversation that can go on."""

from collections.abc import Awaitable, Callable

from perdure.agent.loop.state import State
from perdure.errors import Conflict, NotFound
from perdure.storage.errors import Damaged, Missing, explain_read_only
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state


async def require_open(
    log: ReadableLog, is_begun: Callable[[], Awaitable[bool]], reopen: bool = False
) -> State:
    """Return the state of the log; `is_begun` tells whether one without events was started.

    Raises NotFound, and Conflict if the conversation is closed, unless what is sent is to `reopen`
    it, or an event that the state needs is damaged. The worker that opens the conversation again
    checks the rest of the log.
    """
    name = log.conversation_id
    try:
        state = await read_state(log)
    except (Missing, Damaged) as error:
        raise Conflict(explain_read_only(name, error)) from error
    if state.next_seq == 0 and not await is_begun():
        raise NotFound.for_conversation(name)
    if state.status == "closed" and not reopen:
        hint = "A message with `--reopen` opens it again (`reopen=True`), or start another one."
        raise Conflict(f"The conversation {name} is closed.", hint)
    return state

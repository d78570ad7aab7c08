"""Repeated requests about what the log has already, and the workflow not yet."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from perdure.agent.loop.state import State, actions_to_confirm
from perdure.errors import Invalid
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state

T = TypeVar("T")

DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds between two requests: a workflow is that far behind where its worker is busy or lost."""


async def repeat_while_behind(
    request: Callable[[], Awaitable[T]], log: ReadableLog, is_awaited: Callable[[State], bool]
) -> T:
    """Repeat a request while the workflow refuses what is awaited by the state of the log.

    A step writes its events, and ends; only then does the workflow know of them. Raises what the
    request raises.
    """
    for delay in DELAYS:
        try:
            return await request()
        except Invalid:
            if not is_awaited(await read_state(log)):
                raise
        await asyncio.sleep(delay)
    return await request()


def is_response_awaited(state: State, calls: Sequence[str], through: int | None) -> bool:
    """Tell whether each of the calls, or an action up to the slot, waits for a person."""
    waiting = actions_to_confirm(state)
    if calls:
        return {action.tool_call_id for action in waiting}.issuperset(calls)
    return through is not None and any(action.seq <= through for action in waiting)


def is_answer_awaited(state: State, choice: str | None, call: str | None) -> bool:
    """Tell whether a question waits that has the choice, and is that of the call."""
    wait = state.wait
    if wait is None or wait.question is None:
        return False
    return choice in (None, *wait.choices) and call in (None, wait.tool_call_id)

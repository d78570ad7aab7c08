"""Waiting until a log has what a request has asked for."""

import asyncio
from collections.abc import Callable

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.client.workflow import START_WORKER_HINT
from perdure.errors import TimedOut
from perdure.events.projection import summarize
from perdure.gateway.openhands.record import load_record
from perdure.gateway.openhands.view import is_resumption
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state

POLL_SECONDS = 0.05

MAX_WAIT = 25.0
"""Seconds to wait: OpenHands' client waits 30 for an answer."""


async def wait_for_record(log: EventLog) -> None:
    """Wait until a log has the record of its start. Raises TimedOut without a worker."""
    try:
        async with asyncio.timeout(MAX_WAIT):
            while await load_record(log) is None:  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        message = f"No worker has taken the conversation up within {MAX_WAIT:g} s."
        raise TimedOut(message, START_WORKER_HINT) from None


async def wait_for_resumption(log: EventLog, state: State) -> None:
    """Wait until an agent at rest in `state` runs, or was resumed without anything to do.

    Other events, such as a title, may come before. Raises TimedOut.
    """
    seq = state.next_seq
    try:
        async with asyncio.timeout(MAX_WAIT):
            while state.status != "running":
                entries = await log.read(seq, 1)
                if not entries:
                    await asyncio.sleep(POLL_SECONDS)
                    continue
                seq, state = seq + 1, fold(state, [summarize(entry) for entry in entries])
                if is_resumption(entries[0]):
                    return
    except TimeoutError:
        message = f"The agent did not go on within {MAX_WAIT:g} s."
        raise TimedOut(message, START_WORKER_HINT) from None


async def wait_for_state(
    log: EventLog,
    is_reached: Callable[[State], bool],
    what: str,
    max_wait: float = MAX_WAIT,
) -> State:
    """Return the first state of a log from now on that is reached. Raises TimedOut.

    The condition is asked after each event: a state that has passed counts too.
    """
    now = await read_state(log)
    try:
        async with asyncio.timeout(max_wait):
            while not is_reached(now):
                entries = await log.read(now.next_seq, 1)
                if not entries:
                    await asyncio.sleep(POLL_SECONDS)
                    continue
                now = fold(now, [summarize(entry) for entry in entries])
    except TimeoutError:
        raise TimedOut(f"{what} within {max_wait:g} s.", START_WORKER_HINT) from None
    return now

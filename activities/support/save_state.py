"""Saving the state of a conversation beside its log."""

from perdure.agent.loop.state import State
from perdure.storage.log.event_log import EventLog


async def save_state(log: EventLog, state: State, closing: bool = False) -> None:
    """Write `base_state.json`; seal the full segments, or all segments when `closing`."""
    await log.save_state(state.model_dump_json().encode())
    await log.seal(state.next_seq, closing)

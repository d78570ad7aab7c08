"""The cached state of a conversation, `base_state.json`."""

from pydantic import ValidationError

from perdure.agent.loop.state import State
from perdure.storage.keys import LAST_SEQ


def parse_cached_state(body: bytes | None) -> State:
    """Parse the cached state; return an empty one if it is lost or of another version."""
    try:
        state = State.model_validate_json(body or b"")
    except ValidationError:
        return State()
    return state if 0 <= state.next_seq <= LAST_SEQ + 1 else State()

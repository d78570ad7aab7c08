"""The steps that may run inside a workflow task, as local activities."""

from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Close, Open, SaveState, Step

MAX_CLOSED_EVENTS = 500
"""Length of a log up to which a conversation closes briefly: closing reads all of it."""


def find_brief_name(step: Step | Open, state: State) -> str | None:
    """Return the name of a step that is brief and repeatable; None for any other step.

    It is that of the tool, or the step's kind. Steps that record what the inbox holds are not
    among them: an attempt of which Temporal never learns may be followed by one with more items.
    """
    match step:
        case Act(repeatable=True):
            names = (call.tool_name for call in state.pending if call.seq == step.action_seq)
            return next((name for name in names if name in state.tool_traits.brief), None)
        case SaveState(ending=False) if _has_own_folder(step.state):
            return step.kind
        case Close() if _has_own_folder(step.state) and state.next_seq <= MAX_CLOSED_EVENTS:
            return step.kind
        case _:
            return None


def _has_own_folder(state: State) -> bool:
    """Tell whether nothing has to be scanned in a directory of the user's."""
    return state.spec is not None and state.spec.workspace is None


def local_activity_id(step: Step | Open, base: int) -> str:
    """Return the id of a step, by what it does instead of by its number.

    A number is taken again by another step if Temporal does not learn of the first one, and two
    steps with one id would adopt each other's events.
    """
    return f"{step.kind}-{step.action_seq if isinstance(step, Act) else ''}-{base}"

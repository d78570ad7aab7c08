"""The status of a conversation and its transitions, as one table."""

from typing import Literal, TypeAlias

Status: TypeAlias = Literal[
    "idle", "running", "paused", "waiting_for_confirmation", "finished", "error", "stuck", "closed"
]
Trigger: TypeAlias = Literal[
    "message",
    "answer",
    "pause",
    "resume",
    "rest",
    "interrupt",
    "ask",
    "respond",
    "failure",
    "stuck",
    "close",
]
"""The triggers that move a status.

`answer` ends a turn, in words or by `finish`; `resume` gives the turn back to an agent whose turn
is open, `rest` to one whose turn is over. `ask` says that actions need confirmation, `respond` that
none needs it any more.
"""

TRUNCATED_REASON = "the answer was cut off at the model's length limit"
"""The reason of a turn that ended with half an answer."""

ENDS: dict[Trigger, Status] = {
    "answer": "finished",
    "failure": "error",
    "stuck": "stuck",
    "close": "closed",
}
"""The transitions of every status but `closed`, which stays."""

TRANSITIONS: dict[Status, dict[Trigger, Status]] = {
    "idle": {"message": "running", "pause": "paused", "resume": "running"},
    "running": {
        "pause": "paused",
        "rest": "finished",
        "interrupt": "idle",
        "ask": "waiting_for_confirmation",
    },
    "paused": {"resume": "running", "rest": "idle"},
    "waiting_for_confirmation": {
        "message": "running",
        "pause": "paused",
        "interrupt": "idle",
        "respond": "running",
    },
    "finished": {"message": "running", "pause": "paused", "resume": "running"},
    "error": {"message": "running", "resume": "running", "rest": "idle"},
    "stuck": {"message": "running", "resume": "running", "rest": "idle"},
}
"""All other transitions that change the status."""


def next_status(status: Status, trigger: Trigger) -> Status:
    """Return the status that a trigger leads to; one without a transition stays."""
    if status == "closed":
        return status
    return (ENDS | TRANSITIONS[status]).get(trigger, status)

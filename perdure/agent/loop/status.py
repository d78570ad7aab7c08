"""The status of a conversation and its transitions, as one table."""

from typing import Literal, TypeAlias

Status: TypeAlias = Literal[
    "idle",
    "running",
    "paused",
    "waiting_for_confirmation",
    "waiting_for_answer",
    "waiting",
    "finished",
    "error",
    "stuck",
    "closed",
]
Trigger: TypeAlias = Literal[
    "message",
    "record",
    "answer",
    "pause",
    "resume",
    "rest",
    "interrupt",
    "ask",
    "respond",
    "reject",
    "wait",
    "question",
    "wake",
    "failure",
    "stuck",
    "close",
    "reopen",
    "reopen_at_rest",
]
"""The triggers that move a status.

A `message` makes an agent run; one that is only recorded (`record`) leaves it at rest, its turn
open. `answer` ends a turn, in words or by `finish`; `resume` gives the turn back to an agent whose
turn is open, `rest` to one whose turn is over. `ask` says that actions need confirmation, `respond`
that none needs it any more, `reject` that all were rejected and the agent is to rest. `wait` begins
a wait for a time or a signal, `question` one for a person's answer, and `wake` ends either.
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
        "wait": "waiting",
        "question": "waiting_for_answer",
    },
    "paused": {
        "resume": "running",
        "rest": "idle",
        "wait": "waiting",
        "question": "waiting_for_answer",
    },
    "waiting": {"message": "running", "pause": "paused", "interrupt": "idle", "wake": "running"},
    "waiting_for_answer": {
        "message": "running",
        "pause": "paused",
        "interrupt": "idle",
        "wake": "running",
    },
    "waiting_for_confirmation": {
        "message": "running",
        "record": "idle",
        "pause": "paused",
        "interrupt": "idle",
        "respond": "running",
        "reject": "idle",
    },
    "finished": {
        "message": "running",
        "record": "idle",
        "pause": "paused",
        "resume": "running",
    },
    "error": {
        "message": "running",
        "record": "idle",
        "resume": "running",
        "rest": "idle",
        "wait": "waiting",
        "question": "waiting_for_answer",
    },
    "stuck": {"message": "running", "record": "idle", "resume": "running", "rest": "idle"},
}
"""All other transitions that change the status."""

REOPENINGS: dict[Trigger, Status] = {"reopen": "running", "reopen_at_rest": "idle"}
"""The transitions of a closed conversation."""


def next_status(status: Status, trigger: Trigger) -> Status:
    """Return the status that a trigger leads to; one without a transition stays."""
    if status == "closed":
        return REOPENINGS.get(trigger, status)
    return (ENDS | TRANSITIONS[status]).get(trigger, status)

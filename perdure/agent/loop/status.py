"""The status of a conversation and its transitions, as one table."""

from typing import Literal, TypeAlias

Status: TypeAlias = Literal[
    "idle",
    "running",
    "paused",
    "waiting_for_confirmation",
    "finished",
    "error",
    "stuck",
    "closed",
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

TRANSITIONS: dict[Status, dict[Trigger, Status]] = {
    "idle": {
        "message": "running",
        "answer": "finished",
        "pause": "paused",
        "resume": "running",
        "rest": "idle",
        "interrupt": "idle",
        "ask": "idle",
        "respond": "idle",
        "failure": "error",
        "stuck": "stuck",
        "close": "closed",
    },
    "running": {
        "message": "running",
        "answer": "finished",
        "pause": "paused",
        "resume": "running",
        "rest": "finished",
        "interrupt": "idle",
        "ask": "waiting_for_confirmation",
        "respond": "running",
        "failure": "error",
        "stuck": "stuck",
        "close": "closed",
    },
    "paused": {
        "message": "paused",
        "answer": "finished",
        "pause": "paused",
        "resume": "running",
        "rest": "idle",
        "interrupt": "paused",
        "ask": "paused",
        "respond": "paused",
        "failure": "error",
        "stuck": "stuck",
        "close": "closed",
    },
    "waiting_for_confirmation": {
        "message": "running",
        "answer": "finished",
        "pause": "paused",
        "resume": "waiting_for_confirmation",
        "rest": "waiting_for_confirmation",
        "interrupt": "idle",
        "ask": "waiting_for_confirmation",
        "respond": "running",
        "failure": "error",
        "stuck": "stuck",
        "close": "closed",
    },
    "finished": {
        "message": "running",
        "answer": "finished",
        "pause": "paused",
        "resume": "running",
        "rest": "finished",
        "interrupt": "finished",
        "ask": "finished",
        "respond": "finished",
        "failure": "error",
        "stuck": "stuck",
        "close": "closed",
    },
    "error": {
        "message": "running",
        "answer": "finished",
        "pause": "error",
        "resume": "running",
        "rest": "idle",
        "interrupt": "error",
        "ask": "error",
        "respond": "error",
        "failure": "error",
        "stuck": "stuck",
        "close": "closed",
    },
    "stuck": {
        "message": "running",
        "answer": "finished",
        "pause": "stuck",
        "resume": "running",
        "rest": "idle",
        "interrupt": "stuck",
        "ask": "stuck",
        "respond": "stuck",
        "failure": "error",
        "stuck": "stuck",
        "close": "closed",
    },
    "closed": {
        "message": "closed",
        "answer": "closed",
        "pause": "closed",
        "resume": "closed",
        "rest": "closed",
        "interrupt": "closed",
        "ask": "closed",
        "respond": "closed",
        "failure": "closed",
        "stuck": "closed",
        "close": "closed",
    },
}


def next_status(status: Status, trigger: Trigger) -> Status:
    """Return the status that a trigger leads to; the table has every combination."""
    return TRANSITIONS[status][trigger]

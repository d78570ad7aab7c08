"""Where a conversation stands, and what moves it: one table."""

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

Happening: TypeAlias = Literal[
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
"""What moves a status. `answer` is the end of a turn in words or by `finish`; `resume` gives the
turn back to an agent that owes an answer, `rest` to one that does not. `ask` says that actions
wait for a person, `respond` that none does any more."""

TRANSITIONS: dict[Status, dict[Happening, Status]] = {
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


def after(status: Status, happening: Happening) -> Status:
    """The status that `happening` leads to; every cell of the table is there."""
    return TRANSITIONS[status][happening]

"""Commands that steer conversations and change them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perdure.cli import commands
from perdure.cli.options import (
    CallIds,
    ConversationId,
    Format,
    Output,
    ThroughSeq,
    Timeout,
    Workspace,
)
from perdure.cli.runner import new_group, run_command

app = new_group()


def add_signal_command(name: commands.control.Signal, help: str, confirmation: str) -> None:
    """Add a command that sends a signal of its name to a conversation."""

    def command(conversation_id: ConversationId, output: Output = Format.text) -> None:
        work = commands.control.execute(conversation_id, name, confirmation, output)
        run_command(work, output)

    app.command(name, help=help)(command)


add_signal_command(
    "pause",
    "Pause a conversation between two steps.",
    "A pause is asked for; it comes between two steps.",
)


add_signal_command(
    "resume",
    "Go on after a pause, an interrupt, an error or a limit.",
    "It goes on.",
)


add_signal_command(
    "interrupt",
    "Stop the model or the tool that is at work; the conversation waits for its user.\n\n"
    "What it had so far is kept, and actions that were not begun are rejected.",
    "What runs is stopped; a message or `perdure resume` goes on.",
)


@app.command()
def approve(
    conversation_id: ConversationId,
    call: CallIds = None,
    through: ThroughSeq = None,
    output: Output = Format.text,
) -> None:
    """Let actions happen that wait for a person.

    Without --call and --through it shows which there are, and approves none.
    """
    run_command(
        commands.answer.execute(conversation_id, True, call or [], through, "", output), output
    )


@app.command()
def reject(
    conversation_id: ConversationId,
    call: CallIds = None,
    through: ThroughSeq = None,
    reason: Annotated[str, typer.Option(help="Why; the agent is told.")] = "",
    output: Output = Format.text,
) -> None:
    """Do not let actions happen that wait for a person; the agent goes on without them.

    Without --call and --through it shows which there are, and rejects none.
    """
    run_command(
        commands.answer.execute(conversation_id, False, call or [], through, reason, output), output
    )


@app.command()
def configure(
    conversation_id: ConversationId,
    changes: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="VALUE in JSON, or a bare text.")
    ],
    output: Output = Format.text,
) -> None:
    """Change the model, the limits or the confirmation policy of a conversation.

    For example: model=openai/gpt-4o limits.max_iterations=50 confirmation.policy=always
    'tags=["urgent"]'. A conversation that stopped at a limit goes on by `perdure resume`.
    """
    run_command(commands.configure.execute(conversation_id, changes, output), output)


add_signal_command(
    "condense",
    "Make what the model is shown smaller, by the conversation's condenser.",
    "It is condensed before the model is asked again; the log keeps everything.",
)


@app.command()
def note(
    conversation_id: ConversationId,
    title: Annotated[str | None, typer.Option(help="What it is about, in a few words.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="In place of those before; repeatable.")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    output: Output = Format.text,
) -> None:
    """Note a title, tags or state for a conversation; the agent is not told."""
    run_command(commands.note.execute(conversation_id, title, tag, state, output), output)


@app.command()
def ask(
    conversation_id: ConversationId,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What to ask; - reads it from stdin.")
    ],
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait; then the question is given up.", min=0)
    ] = None,
    output: Output = Format.text,
) -> None:
    """Ask an agent something beside its task; nothing of it is kept.

    It answers from what it knows by now, with no tool, also while it works, waits or is closed.
    """
    run_command(commands.ask.execute(conversation_id, question, timeout, output), output)


@app.command()
def fork(
    conversation_id: ConversationId,
    at: Annotated[
        int | None, typer.Option(metavar="SEQ", help="The last event of it to begin with.", min=0)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model that the fork asks from then on.")
    ] = None,
    output: Output = Format.text,
) -> None:
    """Go on from an earlier point of a conversation, in a new one.

    The events up to SEQ, all of them if none is named, are referred to and not copied. The
    conversation goes on by itself, and the fork begins with a message, or with `perdure resume`.
    """
    run_command(commands.fork.execute(conversation_id, at, model, output), output)


@app.command()
def reopen(
    conversation_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The conversations' ids.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Look at every conversation of the user.")
    ] = False,
    user: Annotated[
        str | None, typer.Option(metavar="USER", help="Whose conversations, if not yours.")
    ] = None,
    output: Output = Format.text,
) -> None:
    """Go on with conversations from their logs, after Temporal's database was lost.

    Those in the middle of a turn get a workflow again, unless one runs. Those at rest need none:
    the next message opens them. It exits with 1 where a log is damaged.
    """
    run_command(commands.reopen.execute(conversation_ids or [], every, user, output), output)


@app.command()
def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A log, a trajectory, or a folder of events.")
    ],
    model: Annotated[
        str | None, typer.Option(help="Who goes on live; else the recorded model.")
    ] = None,
    workspace: Workspace = None,
    timeout: Timeout = None,
    output: Output = Format.text,
) -> None:
    """Do again what was recorded in a conversation, then go on live.

    FILE is what `perdure show ID -o jsonl` printed, a trajectory of OpenHands, or a folder of
    events. The recorded messages are sent and the recorded actions are done, for real: their
    results are new, and those that differ are named. The conversation stays open.
    """
    run_command(commands.replay.execute(file, model, workspace, timeout, output), output)


add_signal_command(
    "close",
    "End a conversation for good; its log stays.",
    "It ends between two steps; its log stays.",
)

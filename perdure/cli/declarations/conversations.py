"""Commands that run conversations and show them."""

from pathlib import Path
from typing import Annotated

import typer

from perdure.cli import commands
from perdure.cli.options import (
    AgentOptions,
    ConversationId,
    Format,
    Output,
    Timeout,
    with_agent_options,
)
from perdure.cli.runner import new_group, run_command

app = new_group()


@app.command()
def dev(
    data: Annotated[
        Path | None, typer.Option(help="Where everything is kept; else PERDURE_DATA.")
    ] = None,
    output: Output = Format.text,
) -> None:
    """Start a Temporal dev server, an S3 store and a worker; ^C ends them.

    All ports are free ones. What is kept is found again at the next start.
    """
    run_command(commands.dev.execute(data, output), output)


@app.command()
@with_agent_options
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do; - reads it from stdin.")],
    agent: AgentOptions,
    images: Annotated[
        list[str] | None,
        typer.Option("--image", metavar="FILE", help="An image or its address; may be repeated."),
    ] = None,
    id: Annotated[str | None, typer.Option(help="A UUID for the new conversation.")] = None,
    timeout: Timeout = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start it, and do not wait.")] = False,
    output: Output = Format.text,
) -> None:
    """Run one conversation to the end of its first turn, and show it as it happens.

    It runs where PERDURE_STORE and TEMPORAL_ADDRESS say, else on the stack of `perdure dev`, else
    on one that this command starts for itself. ^C leaves the conversation, which goes on. Where
    the turn waits for you (to approve an action, or to resume) the exit code is 4.
    """
    options = commands.run.RunOptions(task, agent, images or [], id, timeout, output)
    run_command(commands.run.execute(options, detach), output)


@app.command()
@with_agent_options
def chat(
    resume: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with this conversation.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Go on with the newest one.")] = False,
    *,
    agent: AgentOptions,
) -> None:
    """Talk to an agent at the terminal.

    Each line is a message, and /help lists what else can be asked for. ^C interrupts the turn;
    twice, or at the prompt, it leaves the conversation, which goes on. Where stdin is no terminal,
    its lines are the messages, and the exit code is that of the last turn.
    """
    options = commands.chat.ChatOptions(agent, resume or ("" if last else None))
    run_command(commands.chat.execute(options), Format.text)


@app.command()
def send(
    conversation_id: ConversationId,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to say; - reads it from stdin.")
    ],
    message_id: Annotated[
        str | None, typer.Option(help="A name for the message: a repeat of it does nothing.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show the events until the turn is over.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to --wait; the work goes on after that.", min=0)
    ] = None,
    output: Output = Format.text,
) -> None:
    """Send a message to a conversation.

    Temporal has it when this returns, whether a worker runs or not. A conversation at rest begins
    a new turn; one whose workflow has ended is opened again.
    """
    work = commands.send.execute(conversation_id, text, message_id, wait, timeout, output)
    run_command(work, output)


@app.command()
def watch(
    conversation_id: ConversationId,
    after: Annotated[int, typer.Option(help="Show what comes after this seq.", min=-1)] = -1,
    until_rest: Annotated[
        bool, typer.Option("--until-rest", help="End with the agent's turn.")
    ] = False,
    output: Output = Format.text,
) -> None:
    """Show the events of a conversation as they are written, until ^C.

    Only the store is needed; no worker has to run. On a terminal, and where Temporal answers, the
    words of the model and of tools are shown while they grow.
    """
    run_command(commands.watch.execute(conversation_id, after, until_rest, output), output)


@app.command()
def show(
    conversation_id: ConversationId,
    after: Annotated[int, typer.Option(help="Show what comes after this seq.", min=-1)] = -1,
    limit: Annotated[int | None, typer.Option(help="Show so many at most.", min=1)] = None,
    kind: Annotated[str | None, typer.Option(help="Show this kind of event alone.")] = None,
    output: Output = Format.text,
) -> None:
    """Print the log of a conversation.

    Only the store is needed. What is damaged is named, and the rest is shown: then the exit code
    is 1.
    """
    run_command(commands.show.execute(conversation_id, after, limit, kind, output), output)


@app.command()
def ls(
    limit: Annotated[int, typer.Option(help="List so many at most.", min=1)] = 20,
    output: Output = Format.text,
) -> None:
    """List conversations, the newest first.

    The store alone is asked; `temporal workflow list` finds them by status, tag and so on.
    """
    run_command(commands.ls.execute(limit, output), output)


@app.command()
def status(conversation_id: ConversationId, output: Output = Format.text) -> None:
    """Say where a conversation stands.

    Its workflow is asked where it runs; else the log tells.
    """
    run_command(commands.status.execute(conversation_id, output), output)

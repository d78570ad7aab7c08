"""Commands that run conversations and show them."""

from pathlib import Path

from perdure.cli.options import (
    After,
    AgentOptions,
    ConversationOptions,
    Detach,
    Options,
    OutputOptions,
    Timeout,
    argument,
    flag,
    option,
)
from perdure.cli.runner import command, new_group

app = new_group()


@command(app, "commands.operations:dev")
class Dev(OutputOptions):
    """Start a Temporal dev server, an S3 store and a worker; ^C ends them.

    All ports are free ones. What is kept is found again at the next start.
    """

    data: Path | None = option(help="Where everything is kept; else PERDURE_DATA.")


@command(app, "commands.run:run")
class Run(AgentOptions, OutputOptions):
    """Run one conversation to the end of its first turn, and show it as it happens.

    It runs where PERDURE_STORE and TEMPORAL_ADDRESS say, else on the stack of `perdure dev`, else
    on one that this command starts for itself. ^C leaves the conversation, which goes on. Where
    the turn waits for you (to approve an action, or to resume) the exit code is 4.
    """

    task: str = argument(metavar="TASK", help="What to do; - reads it from stdin.")
    images: list[str] | None = option(
        "--image", metavar="FILE", help="An image or its address; may be repeated."
    )
    id: str | None = option(help="A UUID for the new conversation.")
    timeout: Timeout = None
    detach: Detach = False


class ResumeOptions(Options):
    """The options that resume a conversation."""

    resume: str | None = option(metavar="ID", help="Go on with this conversation.")
    last: bool = flag("--last", help="Go on with the newest one.")


@command(app, "commands.chat:chat")
class Chat(AgentOptions, ResumeOptions):
    """Talk to an agent at the terminal.

    Each line is a message, and /help lists what else can be asked for. ^C interrupts the turn;
    twice, or at the prompt, it leaves the conversation, which goes on. Where stdin is no terminal,
    its lines are the messages, and the exit code is that of the last turn.
    """


@command(app, "commands.turns:send")
class Send(ConversationOptions):
    """Send a message to a conversation.

    Temporal has it when this returns, whether a worker runs or not. A conversation at rest begins
    a new turn; one whose workflow has ended is opened again.
    """

    text: str = argument(metavar="TEXT", help="What to say; - reads it from stdin.")
    message_id: str | None = option(help="A name for the message: a repeat of it does nothing.")
    wait: bool = flag("--wait", help="Show the events until the turn is over.")
    timeout: float | None = option(help="Seconds to --wait; the work goes on after that.", min=0)


@command(app, "commands.turns:watch")
class Watch(ConversationOptions):
    """Show the events of a conversation as they are written, until ^C.

    Only the store is needed; no worker has to run. On a terminal, and where Temporal answers, the
    words of the model and of tools are shown while they grow.
    """

    after: After = -1
    until_rest: bool = flag("--until-rest", help="End with the agent's turn.")


@command(app, "commands.logs:show_log")
class Show(ConversationOptions):
    """Print the log of a conversation.

    Only the store is needed. What is damaged is named, and the rest is shown: then the exit code
    is 1.
    """

    after: After = -1
    limit: int | None = option(help="Show so many at most.", min=1)
    kind: str | None = option(help="Show this kind of event alone.")


@command(app, "commands.logs:ls")
class Ls(OutputOptions):
    """List conversations, the newest first.

    The store alone is asked; `temporal workflow list` finds them by status, tag and so on.
    """

    limit: int = option(default=20, help="List so many at most.", min=1)


@command(app, "commands.turns:status")
class Status(ConversationOptions):
    """Say where a conversation stands.

    Its workflow is asked where it runs; else the log tells.
    """

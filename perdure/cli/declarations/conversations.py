"""Commands that run, show and repeat conversations."""

from pathlib import Path
from typing import Literal

from perdure.cli.declarations.agent_fields import AgentOptions
from perdure.cli.options import (
    After,
    ConversationOptions,
    Detach,
    FullOptions,
    Images,
    Options,
    OutputOptions,
    Replayed,
    Timeout,
    TurnOptions,
    argument,
    as_ids,
    complete_ids,
    completer,
    flag,
    id_argument,
    option,
)
from perdure.cli.runner import command, new_group

app = new_group()


@command(app, "commands.operations:dev")
class Dev(OutputOptions):
    """Start a Temporal dev server, an S3 store, a worker and a gateway; ^C ends them.

    What dies is started again. Ports and data stay from start to start. The gateway serves the page
    and the API to this machine; the address that is printed logs a browser in, once.
    """

    through_gateway = "unrelated"

    data: Path | None = option("The folder for all data; PERDURE_DATA by default.")
    port: int | None = option("The port of Temporal, also at later starts.", min=1, max=65535)
    ui_port: int | None = option(
        "The port of Temporal's UI, also at later starts.", min=1, max=65535
    )
    store_port: int | None = option(
        "The port of the S3 store, also at later starts.", min=1, max=65535
    )
    gateway_port: int | None = option(
        "The port of the gateway, also at later starts.", min=1, max=65535
    )
    gateway: bool = option("Start a gateway.", "--gateway/--no-gateway", default=True)
    processes: int = option(
        "The number of the worker's processes; 0 is one for each core.",
        default=1,
        metavar="N",
        min=0,
    )


@command(app, "commands.run:run")
class Run(AgentOptions, TurnOptions, OutputOptions):
    """Run one conversation to the end of its first turn, and show it as it happens.

    On a pipe it prints only the agent's answer.

    It uses the servers of PERDURE_STORE and TEMPORAL_ADDRESS, else the stack of `perdure dev`, else
    a stack that it starts itself. ^C leaves the conversation, which continues. If the turn waits
    for you (to approve an action, or to resume), the exit code is 4.
    """

    through_gateway = "works"

    task: str = argument("TASK", "The task of the agent; - reads it from stdin.")
    images: Images = None
    replay: Replayed = None
    id: str | None = option("The UUID of the new conversation.")
    timeout: Timeout = None
    detach: Detach = False


class ResumeOptions(Options):
    """The options that resume a conversation."""

    resume: str | None = as_ids(
        option("Continue this conversation.", metavar="ID", autocompletion=complete_ids),
        "conversation",
    )
    last: bool = flag("Continue the newest conversation.", "--last")


@command(app, "commands.chat:chat")
class Chat(AgentOptions, ResumeOptions):
    """Talk to an agent at the terminal.

    /help lists commands and keys. Enter sends the message; Alt-Enter, or Enter after a backslash,
    begins a new line. The agent sees a message at its next step. @path names a file. ^C interrupts
    the turn, and pressed twice it also leaves; ^D leaves, and a running turn continues. If stdin is
    no terminal, each line is a message, and the exit code is that of the last turn.
    """

    through_gateway = "works"

    images: list[str] | None = option(
        "A file or the address of an image for your first message; may be repeated.",
        "--image",
        metavar="FILE",
    )
    replay: Replayed = None


@command(app, "commands.turns:send")
class Send(ConversationOptions, TurnOptions):
    """Send a message to a conversation.

    Temporal has the message when this command returns, even if no worker runs. An idle conversation
    begins a new turn; a conversation whose workflow has ended is opened again.
    """

    text: str = argument("TEXT", "The message; - reads it from stdin.")
    images: Images = None
    message_id: str | None = option(
        "A name for the message; a second message of that name is ignored."
    )
    reopen: bool = flag("Open the conversation again if it is closed.", "--reopen")
    no_run: bool = flag(
        "Only record the message; `perdure resume` makes the agent run.", "--no-run"
    )
    wait: bool = flag("Show the events until the turn ends.", "--wait")
    timeout: float | None = option("The seconds to --wait; the work continues after that.", min=0)


@command(app, "commands.turns:watch")
class Watch(ConversationOptions, FullOptions):
    """Show the events of a conversation as they are written, until ^C.

    It needs only the store; no worker has to run. On a terminal, if Temporal answers, it also shows
    the text of the model and of tools while they produce it.
    """

    after: After = -1
    until_rest: bool = flag("Stop at the end of the agent's turn.", "--until-rest")


@command(app, "commands.logs:show_log")
class Show(ConversationOptions, FullOptions):
    """Print the log of a conversation, or its current agent.

    It needs only the store. If events are damaged, it names them, shows the others, and exits
    with 1.
    """

    agent: bool = flag(
        "Print the agent as a TOML file for --agent-file, with the source of each field.", "--agent"
    )
    after: After = -1
    limit: int | None = option("The maximum of events to show.", min=1)
    kind: str | None = option("Show only events of this kind.")
    seq: int | None = option("Show only this event, in full.", min=0)


@command(app, "commands.files:diff")
class Diff(ConversationOptions):
    """Show what a conversation changed in its workspace, as a unified diff.

    It needs only the store. In a directory of yours (--workspace), changes are recorded at the end
    of a turn; folders such as .git and node_modules are left out.
    """

    after: After = -1
    stat: bool = flag("List the files, with their numbers of changed lines.", "--stat")


@command(app, "commands.files:files")
class Files(ConversationOptions):
    """List the files in a conversation's own folder, as they are in the store.

    It needs only the store: the machine that had the folder may be gone.
    """

    copy: Path | None = option("Copy the files to this new folder.", "--copy", metavar="DIR")


@command(app, "commands.listing:ls")
class Ls(OutputOptions):
    """List conversations, the newest first.

    It needs only the store. On a pipe, each line has all fields, separated by tabs: id, status,
    events, cost, last event, model, title, tags.
    """

    runs_user_code = False
    through_gateway = "works"

    limit: int = option("The maximum of conversations to list.", "--limit", "-n", default=20, min=1)
    shared: bool = flag(
        "List the conversations that others share with you, with USER/ID as the id.", "--shared"
    )
    status: str | None = option("List only conversations of this status.")
    tags: list[str] | None = option(
        "List only conversations with this tag; may be repeated.", "--tag", metavar="TAG"
    )
    model: str | None = option(
        "List only conversations whose model's name contains NAME.",
        metavar="NAME",
        autocompletion=completer("complete_models"),
    )
    since: str | None = option(
        "List only conversations that began since: 2h, 1d, or an ISO date.", metavar="TIME"
    )
    text: str | None = option(
        "List only those with these words in the title or first message.", metavar="WORDS"
    )
    agent: str | None = option("List only conversations of the agent of this name.")
    app: str | None = option("List only conversations of this application.")
    active: bool = flag("Leave out those that are closed.", "--active")
    hidden: bool = flag(
        "List also those that were started with --hidden; deleted ones stay hidden.", "--hidden"
    )
    sort: Literal["newest", "oldest", "activity", "cost", "events", "status"] = option(
        "The order: newest, oldest, activity, cost, events or status.",
        default="newest",
        metavar="ORDER",
    )


@command(app, "commands.turns:status")
class Status(ConversationOptions):
    """Print the status of a conversation: its state, what it waits for, its cost.

    The workflow reports it if it runs, else the log. With --follow, print the status as an event,
    now and whenever it changes: what is loaded, the model that is asked again, the limit reached.
    """

    follow: bool = flag("Print each status as it comes, until ^C or the end.", "--follow", "-f")


@command(app, "commands.turns:ask")
class Ask(ConversationOptions):
    """Ask an agent a question outside of its conversation, whose log does not change.

    The agent answers from its current view, without tools, even while it runs, waits or is closed.
    """

    question: str = argument("QUESTION", "The question; - reads it from stdin.")
    timeout: float | None = option("The seconds to wait for the answer.", min=0)


@command(app, "commands.operations:reopen")
class Reopen(OutputOptions):
    """Reopen conversations from their logs, after the loss of Temporal's database.

    A conversation in the middle of a turn gets a new workflow, unless one runs. An idle one needs
    none: the next message opens it. The exit code is 1 if a log is damaged.
    """

    conversation_ids: list[str] | None = id_argument("[ID]...", own=True)
    every: bool = flag("Reopen every conversation of the user.", "--all")
    user: str | None = option("The user whose conversations are reopened.", metavar="USER")


@command(app, "commands.replay:replay")
class Replay(FullOptions, OutputOptions):
    """Repeat a recorded conversation, and continue it live.

    FILE is the output of `perdure show ID -o jsonl`, a trajectory of OpenHands, or a folder of
    events. The recorded messages are sent again and the recorded actions run again, for real.
    Results that differ are listed. The conversation stays open.
    """

    file: Path = argument("FILE", "A log, a trajectory, or a folder of events.")
    model: str | None = option("The model that continues live; by default, the recorded one.")
    workspace: Path | None = option(
        "The folder in which the agent works; by default, a new one of its own.",
        "-w",
        "--workspace",
        metavar="DIR",
    )
    timeout: Timeout = None

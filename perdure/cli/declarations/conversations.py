"""Commands that run, show, steer and change conversations."""

from pathlib import Path
from typing import ClassVar, Literal

from perdure.cli.options import (
    After,
    AgentOptions,
    ConversationOptions,
    Detach,
    FullOptions,
    Images,
    Options,
    OutputOptions,
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
    """Start a Temporal dev server, an S3 store and a worker; ^C ends them.

    What dies is started again. The ports, and what is kept, are the same at the next start.
    """

    data: Path | None = option("Where everything is kept; else PERDURE_DATA.")
    port: int | None = option("The port of Temporal, from now on.", min=1, max=65535)
    ui_port: int | None = option("The port of Temporal's UI, from now on.", min=1, max=65535)
    store_port: int | None = option("The port of the S3 store, from now on.", min=1, max=65535)


@command(app, "commands.run:run")
class Run(AgentOptions, TurnOptions, OutputOptions):
    """Run one conversation to the end of its first turn, and show it as it happens.

    On a pipe it prints the agent's answer and nothing else.

    It runs where PERDURE_STORE and TEMPORAL_ADDRESS say, else on the stack of `perdure dev`, else
    on one that this command starts for itself. ^C leaves the conversation, which goes on. Where
    the turn waits for you (to approve an action, or to resume) the exit code is 4.
    """

    task: str = argument("TASK", "What to do; - reads it from stdin.")
    images: Images = None
    id: str | None = option("A UUID for the new conversation.")
    timeout: Timeout = None
    detach: Detach = False


class ResumeOptions(Options):
    """The options that resume a conversation."""

    resume: str | None = as_ids(
        option("Go on with this conversation.", metavar="ID", autocompletion=complete_ids),
        "conversation",
    )
    last: bool = flag("Go on with the newest one.", "--last")


@command(app, "commands.chat:chat")
class Chat(AgentOptions, ResumeOptions):
    """Talk to an agent at the terminal.

    /help lists commands and keys. Enter sends, Alt-Enter or a backslash before it breaks the line;
    what is sent during a turn is seen at the agent's next step. @path names a file. ^C interrupts
    the turn, and twice it leaves as well; ^D leaves a turn at work. Where stdin is no terminal, its
    lines are the messages, and the exit code is that of the last turn.
    """


@command(app, "commands.turns:send")
class Send(ConversationOptions, TurnOptions):
    """Send a message to a conversation.

    Temporal has it when this returns, whether a worker runs or not. A conversation at rest begins
    a new turn; one whose workflow has ended is opened again.
    """

    text: str = argument("TEXT", "What to say; - reads it from stdin.")
    images: Images = None
    message_id: str | None = option("A name for the message: a repeat of it does nothing.")
    wait: bool = flag("Show the events until the turn is over.", "--wait")
    timeout: float | None = option("Seconds to --wait; the work goes on after that.", min=0)


@command(app, "commands.turns:watch")
class Watch(ConversationOptions, FullOptions):
    """Show the events of a conversation as they are written, until ^C.

    Only the store is needed; no worker has to run. On a terminal, and where Temporal answers, the
    words of the model and of tools are shown while they grow.
    """

    after: After = -1
    until_rest: bool = flag("End with the agent's turn.", "--until-rest")


@command(app, "commands.logs:show_log")
class Show(ConversationOptions, FullOptions):
    """Print the log of a conversation, or its agent as it is in force now.

    Only the store is needed. What is damaged is named, and the rest is shown: then the exit code
    is 1.
    """

    agent: bool = flag("Print the agent, in TOML that --agent-file takes.", "--agent")
    after: After = -1
    limit: int | None = option("Show so many at most.", min=1)
    kind: str | None = option("Show this kind of event alone.")
    seq: int | None = option("Show this event alone, all of it.", min=0)


@command(app, "commands.files:diff")
class Diff(ConversationOptions):
    """Show what a conversation changed in its workspace, as a unified diff.

    Only the store is needed. In a directory of yours (--workspace) changes are recorded when a
    turn ends; folders such as .git and node_modules are left out.
    """

    after: After = -1
    stat: bool = flag("Name the files, with their numbers of lines.", "--stat")


@command(app, "commands.files:files")
class Files(ConversationOptions):
    """List the files in a conversation's own folder, as they are in the store.

    Only the store is needed: the machine that had the folder may be gone.
    """

    copy: Path | None = option("Copy them to this new folder.", "--copy", metavar="DIR")


@command(app, "commands.listing:ls")
class Ls(OutputOptions):
    """List conversations, the newest first.

    The store alone is asked, without Temporal. A filter needs the state of every conversation
    until enough are found. On a pipe each line has all fields, with tabs between them: id, status,
    events, cost, last event, model, title, tags.
    """

    limit: int = option("List so many at most.", "--limit", "-n", default=20, min=1)
    status: str | None = option("Only those of this status, as it is listed.")
    tags: list[str] | None = option("Only those with this tag; repeatable.", "--tag", metavar="TAG")
    model: str | None = option(
        "Only those whose model's name has this.",
        metavar="NAME",
        autocompletion=completer("complete_models"),
    )
    since: str | None = option("Only those begun since: 2h, 1d, or an ISO date.", metavar="TIME")
    text: str | None = option("Only with these words in title or first message.", metavar="WORDS")
    sort: Literal["newest", "oldest", "cost", "events", "status"] = option(
        "Which come first: newest, oldest, cost, events or status.",
        default="newest",
        metavar="ORDER",
    )


@command(app, "commands.turns:status")
class Status(ConversationOptions):
    """Say where a conversation stands.

    Its workflow is asked where it runs; else the log tells.
    """


class Signal(ConversationOptions):
    """The options of a command that sends the signal of its name."""

    confirmation: ClassVar[str]


@command(app, "commands.control:send_signal")
class Pause(Signal):
    """Pause a conversation between two steps."""

    confirmation = "A pause is asked for; it comes between two steps."


@command(app, "commands.control:send_signal")
class Resume(Signal):
    """Go on after a pause, an interrupt, an error or a limit."""

    confirmation = "It goes on."


@command(app, "commands.control:send_signal")
class Interrupt(Signal):
    """Stop the model or the tool that is at work; the conversation waits for its user.

    What it had so far is kept, and actions that were not begun are rejected.
    """

    confirmation = "What runs is stopped; a message or `perdure resume` goes on."


class Answer(ConversationOptions):
    """The options of an answer to the actions that wait for a person."""

    call: list[str] | None = option("A call's id; may be repeated.", "--call", metavar="ID")
    through: int | None = option("All that wait, up to this seq.", metavar="SEQ", min=0)


@command(app, "commands.control:approve")
class Approve(Answer):
    """Approve actions that wait for a person.

    Without --call and --through it approves the only one that waits; where several wait it lists
    them, approves none, and exits with 4.
    """


@command(app, "commands.control:reject")
class Reject(Answer):
    """Reject actions that wait for a person; the agent goes on without them.

    Without --call and --through it rejects the only one that waits; where several wait it lists
    them, rejects none, and exits with 4.
    """

    reason: str = option("Why; the agent is told.", default="")


@command(app, "commands.control:configure")
class Configure(ConversationOptions):
    """Change the model, the limits or the confirmation policy of a conversation.

    For example: model=openai/gpt-4o limits.max_iterations=50 confirmation.policy=always
    'tags=["urgent"]'. A conversation that stopped at a limit goes on by `perdure resume`.
    """

    changes: list[str] = argument("KEY=VALUE...", "VALUE in JSON, or a bare text.")


@command(app, "commands.control:send_signal")
class Condense(Signal):
    """Make what the model is shown smaller, by the conversation's condenser."""

    confirmation = "It is condensed before the model is asked again; the log keeps everything."


@command(app, "commands.control:note")
class Note(ConversationOptions):
    """Note a title, tags or state for a conversation; the agent is not told."""

    title: str | None = option("What it is about, in a few words.")
    tag: list[str] | None = option("In place of those before; repeatable.", metavar="TAG")
    state: list[str] | None = option("May be repeated.", metavar="KEY=VALUE")


@command(app, "commands.turns:ask")
class Ask(ConversationOptions):
    """Ask an agent something beside its task; nothing of it is kept.

    It answers from what it knows by now, with no tool, also while it works, waits or is closed.
    """

    question: str = argument("QUESTION", "What to ask; - reads it from stdin.")
    timeout: float | None = option("Seconds to wait; then the question is given up.", min=0)


@command(app, "commands.control:fork")
class Fork(ConversationOptions):
    """Go on from an earlier point of a conversation, in a new one.

    The events up to SEQ, all of them if none is named, are referred to and not copied. The
    conversation goes on by itself, and the fork begins with a message, or with `perdure resume`.
    """

    at: int | None = option("The last event of it to begin with.", metavar="SEQ", min=0)
    model: str | None = option("The model that the fork asks from then on.")


@command(app, "commands.operations:reopen")
class Reopen(OutputOptions):
    """Go on with conversations from their logs, after Temporal's database was lost.

    Those in the middle of a turn get a workflow again, unless one runs. Those at rest need none:
    the next message opens them. It exits with 1 where a log is damaged.
    """

    conversation_ids: list[str] | None = id_argument("[ID]...")
    every: bool = flag("Look at every conversation of the user.", "--all")
    user: str | None = option("Whose conversations, if not yours.", metavar="USER")


@command(app, "commands.replay:replay")
class Replay(FullOptions, OutputOptions):
    """Do again what was recorded in a conversation, then go on live.

    FILE is what `perdure show ID -o jsonl` printed, a trajectory of OpenHands, or a folder of
    events. The recorded messages are sent and the recorded actions are done, for real: their
    results are new, and those that differ are named. The conversation stays open.
    """

    file: Path = argument("FILE", "A log, a trajectory, or a folder of events.")
    model: str | None = option("Who goes on live; else the recorded model.")
    workspace: Path | None = option(
        "Where the agent works; else a folder of its own.", "-w", "--workspace", metavar="DIR"
    )
    timeout: Timeout = None


@command(app, "commands.control:send_signal")
class Close(Signal):
    """End a conversation for good; its log stays."""

    confirmation = "It ends between two steps; its log stays."

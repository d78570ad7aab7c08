"""Commands that steer conversations and change them."""

from pathlib import Path
from typing import ClassVar

from perdure.cli.options import ConversationOptions, OutputOptions, Timeout, argument, flag, option
from perdure.cli.runner import command, new_group

app = new_group()


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

    call: list[str] | None = option("--call", metavar="ID", help="A call's id; may be repeated.")
    through: int | None = option(metavar="SEQ", help="All that wait, up to this seq.", min=0)


@command(app, "commands.control:approve")
class Approve(Answer):
    """Let actions happen that wait for a person.

    Without --call and --through it shows which there are, and approves none.
    """


@command(app, "commands.control:reject")
class Reject(Answer):
    """Do not let actions happen that wait for a person; the agent goes on without them.

    Without --call and --through it shows which there are, and rejects none.
    """

    reason: str = option(default="", help="Why; the agent is told.")


@command(app, "commands.control:configure")
class Configure(ConversationOptions):
    """Change the model, the limits or the confirmation policy of a conversation.

    For example: model=openai/gpt-4o limits.max_iterations=50 confirmation.policy=always
    'tags=["urgent"]'. A conversation that stopped at a limit goes on by `perdure resume`.
    """

    changes: list[str] = argument(metavar="KEY=VALUE...", help="VALUE in JSON, or a bare text.")


@command(app, "commands.control:send_signal")
class Condense(Signal):
    """Make what the model is shown smaller, by the conversation's condenser."""

    confirmation = "It is condensed before the model is asked again; the log keeps everything."


@command(app, "commands.control:note")
class Note(ConversationOptions):
    """Note a title, tags or state for a conversation; the agent is not told."""

    title: str | None = option(help="What it is about, in a few words.")
    tag: list[str] | None = option(metavar="TAG", help="In place of those before; repeatable.")
    state: list[str] | None = option(metavar="KEY=VALUE", help="May be repeated.")


@command(app, "commands.turns:ask")
class Ask(ConversationOptions):
    """Ask an agent something beside its task; nothing of it is kept.

    It answers from what it knows by now, with no tool, also while it works, waits or is closed.
    """

    question: str = argument(metavar="QUESTION", help="What to ask; - reads it from stdin.")
    timeout: float | None = option(help="Seconds to wait; then the question is given up.", min=0)


@command(app, "commands.control:fork")
class Fork(ConversationOptions):
    """Go on from an earlier point of a conversation, in a new one.

    The events up to SEQ, all of them if none is named, are referred to and not copied. The
    conversation goes on by itself, and the fork begins with a message, or with `perdure resume`.
    """

    at: int | None = option(metavar="SEQ", help="The last event of it to begin with.", min=0)
    model: str | None = option(help="The model that the fork asks from then on.")


@command(app, "commands.operations:reopen")
class Reopen(OutputOptions):
    """Go on with conversations from their logs, after Temporal's database was lost.

    Those in the middle of a turn get a workflow again, unless one runs. Those at rest need none:
    the next message opens them. It exits with 1 where a log is damaged.
    """

    conversation_ids: list[str] | None = argument(
        default=None, metavar="[ID]...", help="The conversations' ids."
    )
    every: bool = flag("--all", help="Look at every conversation of the user.")
    user: str | None = option(metavar="USER", help="Whose conversations, if not yours.")


@command(app, "commands.replay:replay")
class Replay(OutputOptions):
    """Do again what was recorded in a conversation, then go on live.

    FILE is what `perdure show ID -o jsonl` printed, a trajectory of OpenHands, or a folder of
    events. The recorded messages are sent and the recorded actions are done, for real: their
    results are new, and those that differ are named. The conversation stays open.
    """

    file: Path = argument(metavar="FILE", help="A log, a trajectory, or a folder of events.")
    model: str | None = option(help="Who goes on live; else the recorded model.")
    workspace: Path | None = option(help="Where the agent works; else a folder of its own.")
    timeout: Timeout = None


@command(app, "commands.control:send_signal")
class Close(Signal):
    """End a conversation for good; its log stays."""

    confirmation = "It ends between two steps; its log stays."

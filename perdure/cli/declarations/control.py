"""Commands that steer and change conversations."""

from typing import ClassVar

from perdure.cli.options import ConversationOptions, argument, flag, id_argument, option
from perdure.cli.runner import command, new_group

app = new_group()


class Signal(ConversationOptions):
    """The options of a command that sends the signal of its name."""

    confirmation: ClassVar[str]


@command(app, "commands.control:send_signal")
class Pause(Signal):
    """Pause a conversation between two steps."""

    confirmation = "The conversation pauses after its current step."


@command(app, "commands.control:send_signal")
class Resume(Signal):
    """Resume after a pause, an interrupt, an error or a limit."""

    confirmation = "The conversation resumes."


@command(app, "commands.control:send_signal")
class Interrupt(Signal):
    """Stop the running model call or tool; the conversation then waits for its user.

    Partial output is kept, and actions that have not begun are rejected.
    """

    confirmation = "The current step is stopped; a message or `perdure resume` continues."


class Answer(ConversationOptions):
    """The options of an answer to the actions that wait for a person."""

    call: list[str] | None = option("The id of a call; may be repeated.", "--call", metavar="ID")
    through: int | None = option(
        "Answer all actions that wait, up to this seq.", metavar="SEQ", min=0
    )


@command(app, "commands.control:approve")
class Approve(Answer):
    """Approve actions that wait for a person.

    Without --call and --through it approves the only action that waits; if several wait, it lists
    them, approves none, and exits with 4.
    """


@command(app, "commands.control:reject")
class Reject(Answer):
    """Reject actions that wait for a person; the agent continues without them.

    Without --call and --through it rejects the only action that waits; if several wait, it lists
    them, rejects none, and exits with 4.
    """

    reason: str = option("The reason, which the agent reads.", default="")


@command(app, "commands.control:configure")
class Configure(ConversationOptions):
    """Change the model, the limits or the confirmation policy of a conversation.

    For example: model=openai/gpt-4o limits.max_iterations=50 confirmation.policy=always
    'tags=["urgent"]'. `perdure resume` continues a conversation that stopped at a limit.
    """

    changes: list[str] = argument(
        "KEY=VALUE...", "A field and its new value, in JSON or as plain text."
    )


@command(app, "commands.control:send_signal")
class Condense(Signal):
    """Condense the conversation for the model, by its condenser; the log keeps everything."""

    confirmation = "The conversation is condensed before the next call of the model."


@command(app, "commands.control:note")
class Note(ConversationOptions):
    """Set the title, tags or state of a conversation.

    The agent sees none of them, but for the state if its `state` is "shown".
    """

    title: str | None = option("The title.")
    tag: list[str] | None = option(
        "A tag; may be repeated. The tags replace the previous ones.", metavar="TAG"
    )
    state: list[str] | None = option("A key of the state; may be repeated.", metavar="KEY=VALUE")


@command(app, "commands.state:state")
class State(ConversationOptions):
    """Show the state of a conversation, or change values of it.

    A key that begins with `user:` is shared by all conversations of the user, one with `app:` by
    those of all users. The agent is shown the state only if its `state` is "shown".
    """

    changes: list[str] | None = argument(
        "[KEY=VALUE]...", "A key and its new value, in JSON or as plain text."
    )
    delete: list[str] | None = option(
        "A key whose value is deleted; may be repeated.", metavar="KEY"
    )
    version: list[str] | None = option(
        "Change a shared value only while it is of this version, as `-o json` shows it; may be "
        "repeated. If somebody else has changed it meanwhile, the exit code is 4.",
        metavar="KEY=VERSION",
    )


@command(app, "commands.control:fork")
class Fork(ConversationOptions):
    """Start a new conversation from an earlier point of another one.

    The new conversation begins with the events up to SEQ (all events without --at), and starts with
    a message or `perdure resume`. The first conversation does not change. It may be another user's
    who shares it: the new one is your own.
    """

    at: int | None = option(
        "The last event of the first conversation to take over.", metavar="SEQ", min=0
    )
    model: str | None = option("The model of the new conversation.")


@command(app, "commands.sharing:share")
class Share(ConversationOptions):
    """Let another user read a conversation, or steer it with --write; without USER, list who may.

    That user names the conversation as YOU/ID in every command, where YOU is your own name. Only
    its user can share or delete it.
    """

    conversation_id: str = id_argument("ID", own=True)
    user: str | None = argument("[USER]", "The user who may read it.")
    write: bool = flag("Let the user also send messages, and steer it.", "--write")
    revoke: str | None = option("Take back what this user may do.", "--revoke", metavar="USER")


@command(app, "commands.control:send_signal")
class Close(Signal):
    """Close a conversation; its log stays, and `perdure send --reopen` opens it again."""

    confirmation = "The conversation closes after its current step; its log stays."


@command(app, "commands.control:delete")
class Delete(ConversationOptions):
    """Close a conversation and hide it from lists.

    Its log stays: `perdure rm` is what deletes it from the store.
    """

    conversation_id: str = id_argument("ID", own=True)

"""`perdure discuss` and the `perdure discussion` commands."""

from perdure.cli.options import Detach, Options, OutputOptions, argument, flag, option
from perdure.cli.runner import command, new_group, new_named_group

top = new_group()
app = new_named_group("Watch, steer and export discussions, and take part in them.")


class DiscussionOptions(OutputOptions):
    """The options of a command about one discussion, whose agents are run by workers alone."""

    runs_user_code = False
    through_gateway = "works"

    session: str = argument("ID", "The discussion's id; USER/ID is one that USER shares.")


@command(top, "discussion:discuss")
class Discuss(OutputOptions):
    """Let several agents discuss over one shared log, and show what they say as it is said.

    SPEC is a .toml or .json file with a topic, agents, a moderator, phases and limits. ^C leaves
    the discussion, which continues; the same command with its --id shows it again. With -o jsonl
    each event is a line. The exit code is 0 once it is over, and 1 if it failed.
    """

    through_gateway = "works"

    spec: str = argument("SPEC", "A .toml or .json file.")
    session: str | None = option("The id of the discussion.", "--id", metavar="ID")
    detach: Detach = False


@command(app, "discussion:list_all", "ls")
class List(OutputOptions):
    """List the ids of all discussions."""

    runs_user_code = False
    through_gateway = "works"

    shared: bool = flag("List the discussions that others share with you, as USER/ID.", "--shared")


@command(app, "discussion:show_status")
class Status(DiscussionOptions):
    """Print the status of a discussion: phase and round, speeches, tally, last summary, cost."""


@command(app, "discussion:watch")
class Watch(DiscussionOptions):
    """Show what is said in a discussion, from its beginning, until it is over."""

    after: int = option("Show only events after this sequence.", default=0, min=0, metavar="N")


@command(app, "discussion:say")
class Say(DiscussionOptions):
    """Say something in a discussion, in your own name."""

    text: str = argument("TEXT", "What you say.")
    speaker: str | None = option("Your name there; by default, your user id.", "--as")


@command(app, "discussion:vote")
class Vote(DiscussionOptions):
    """Cast a ballot in the present or next vote of a discussion."""

    ballot: str = argument("BALLOT", "One of the options of the phase.")
    speaker: str | None = option("Your name there; by default, your user id.", "--as")
    reason: str | None = option("Why.")


@command(app, "discussion:steer")
class Pause(DiscussionOptions):
    """Pause a discussion, and the agents that speak."""


@command(app, "discussion:steer")
class Resume(DiscussionOptions):
    """Resume a paused discussion."""


@command(app, "discussion:steer")
class Close(DiscussionOptions):
    """End a discussion for good; its log stays."""


@command(app, "commands.sharing:share_discussion")
class Share(DiscussionOptions):
    """Let another user read a discussion, or take part with --write; without USER, list who may.

    That user names the discussion as YOU/ID, where YOU is your own name, speaks there by his own
    user id, and reads the conversations of its agents too. Only its user can share or delete it.
    """

    user: str | None = argument("[USER]", "The user who may read it.")
    write: bool = flag("Let the user also speak, vote, pause, resume and close it.", "--write")
    revoke: str | None = option("Take back what this user may do.", "--revoke", metavar="USER")


@command(app, "commands.verify:verify_discussions")
class Verify(OutputOptions):
    """Check every stored object of discussions, and name each damaged event.

    The conversations of their agents are checked too. The exit code is 1 if anything is damaged.
    """

    runs_user_code = False

    sessions: list[str] | None = argument("[ID]...", "The ids of discussions.")
    every: bool = flag("Check every discussion.", "--all")


@command(app, "commands.deletion:rm_discussions")
class Rm(OutputOptions):
    """Delete discussions for good: their logs, their agents' conversations, and their histories.

    A discussion that is running is refused without --force. On a pipe, where nobody can answer a
    question, it needs --yes.
    """

    runs_user_code = False

    sessions: list[str] = argument("ID...", "The ids of discussions.")
    yes: bool = flag("Delete without a question.", "--yes", "-y")
    force: bool = flag("Also delete discussions that run; their workflows end.", "--force", "-f")
    with_forks: bool = flag("Also delete all forks of the conversations.", "--with-forks")


@command(app, "discussion:export")
class Export(Options):
    """Export a discussion, pruned events too: as lines of JSON, a page, or each agent's messages.

    One that runs is exported as it is now.
    """

    runs_user_code = False
    through_gateway = "works"

    session: str = argument("ID", "The discussion's id; USER/ID is one that USER shares.")
    format: str = option(
        "events: an event a line; html: one page for people; results: a folder with the messages "
        "of each agent, as in llm_messages.json.",
        "--format",
        default="events",
        metavar="NAME",
    )
    path: str = option(
        "The file or folder to write; - is stdout.", "--output", default="-", metavar="PATH"
    )

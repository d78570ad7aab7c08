"""The commands that end the waits of agents."""

from perdure.cli.options import ConversationOptions, argument, option
from perdure.cli.runner import command, new_group

app = new_group()


@command(app, "commands.waiting:answer")
class Answer(ConversationOptions):
    """Answer the question that an agent asks, by the number of a choice or in your own words.

    Without TEXT it shows the question, and exits with 4.
    """

    text: str | None = argument("[TEXT]", "The answer, or the number of a choice; - reads stdin.")
    call: str | None = option("The id of the call that asks.", "--call", metavar="ID")


@command(app, "commands.waiting:signal")
class Signal(ConversationOptions):
    """Send a signal to an agent that waits for its name, or will wait for it.

    One that nobody waits for yet is kept for the next wait of its name, 50 at most.
    """

    name: str = argument("NAME", "The name: letters, digits and '.', '_', '-'.")
    data: str | None = option("Data for the agent; - reads them from stdin.", metavar="JSON")
    id: str | None = option("Your id for it: the same one again is recorded once.", metavar="ID")

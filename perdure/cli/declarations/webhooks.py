"""The `perdure webhook` commands."""

from perdure.cli.options import OutputOptions, argument, option
from perdure.cli.runner import command, new_named_group

app = new_named_group("Tell other servers when a turn ends, or a conversation needs somebody.")


class WebhookOptions(OutputOptions):
    """The options of a command about one webhook."""

    runs_user_code = False
    through_gateway = "works"

    id: str = argument("ID", "The webhook's id, which `perdure webhook ls` shows.")


@command(app, "commands.webhooks:create")
class Create(OutputOptions):
    """Create a webhook: a URL to which a worker posts what happens in your conversations.

    It prints the secret by which the receiver checks the signature (Standard Webhooks); nothing
    shows it again.
    """

    runs_user_code = False
    through_gateway = "works"

    url: str = argument("URL", "The receiver's address, such as https://example.org/hooks.")
    on: str | None = option(
        "What is posted, with commas between: turn_end, question, approval, error; all by default.",
        metavar="EVENTS",
    )
    conversation: str | None = option("Post what happens in this one alone.", metavar="ID")


@command(app, "commands.webhooks:list_webhooks", "ls")
class List(OutputOptions):
    """List the webhooks."""

    runs_user_code = False
    through_gateway = "works"


@command(app, "commands.webhooks:show_webhook")
class Show(WebhookOptions):
    """Show a webhook and its last deliveries."""


@command(app, "commands.webhooks:test")
class Test(WebhookOptions):
    """Post an event `test`, which is tried again for a minute."""


@command(app, "commands.webhooks:rotate")
class Rotate(WebhookOptions):
    """Give a webhook a new secret; for a day the one of before signs as well."""


@command(app, "commands.webhooks:delete")
class Delete(WebhookOptions):
    """Delete a webhook: nothing is posted any more."""

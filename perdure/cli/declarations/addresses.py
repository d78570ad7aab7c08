"""The `perdure address` commands."""

from perdure.cli.options import OutputOptions, argument, flag, id_argument, option
from perdure.cli.runner import command, new_named_group

app = new_named_group(
    "Give a conversation, or a schedule, an address: what others post there arrives."
)


@command(app, "commands.addresses:create")
class Create(OutputOptions):
    """Create an address of a conversation or a schedule at the gateway, and print it, this once.

    Posts arrive as messages, or as the signal NAME with their JSON as its data. A post to a
    schedule begins a turn of it, with what was posted below the task. Whoever knows the address may
    post, and nothing else.
    """

    runs_user_code = False
    through_gateway = "works"

    conversation_id: str | None = id_argument("[ID]", own=True)
    schedule: str | None = option("An address of this schedule.", metavar="NAME")
    signal: str | None = option("Posts arrive as the signal of this name.", metavar="NAME")
    signed: bool = flag(
        "Refuse posts without a signature (Standard Webhooks), and print a secret for it.",
        "--signed",
    )
    secret: str | None = option(
        "The sender's secret of its signatures, whsec_…; - reads it from stdin.", metavar="SECRET"
    )


@command(app, "commands.addresses:list_addresses", "ls")
class List(OutputOptions):
    """List the addresses, without what makes them work."""

    runs_user_code = False
    through_gateway = "works"


@command(app, "commands.addresses:revoke")
class Revoke(OutputOptions):
    """Revoke an address: nothing that is posted there arrives."""

    runs_user_code = False
    through_gateway = "works"

    id: str = argument("ADDRESS", "The address's id, which `perdure address ls` shows.")

"""Commands of the secrets that a user hands in."""

from perdure.cli.options import OutputOptions, argument, flag, option
from perdure.cli.runner import command, new_named_group

app = new_named_group("Hand secrets in for agents, list and remove them.")


class SecretOptions(OutputOptions):
    """The options of a command about the user's secrets."""

    runs_user_code = False
    through_gateway = "works"


@command(app, "commands.secrets:set_secret", "set")
class SetSecret(SecretOptions):
    """Hand a secret in, or another value of one: it is asked for, or read from a pipe.

    Agents that are given `--secret NAME` have it in the commands that name it. The store has it
    encrypted under PERDURE_SECRET_KEYS, which workers need too, and nothing shows it again. A value
    in the arguments would stand in the history of the shell: there is no option for it.
    """

    name: str = argument("NAME", "The name, such as GITHUB_TOKEN.")
    description: str = option(
        "What it is for, in a line: agents that have it are told so.", default="", metavar="TEXT"
    )


@command(app, "commands.secrets:list_secrets", "ls")
class ListSecrets(SecretOptions):
    """List the secrets that you have handed in; values are never shown."""


@command(app, "commands.secrets:remove_secret", "rm")
class RemoveSecret(SecretOptions):
    """Remove a secret: no later command has it."""

    name: str = argument("NAME", "The name, which `perdure secret ls` shows.")


@command(app, "commands.secrets:reencrypt", "reencrypt")
class Reencrypt(OutputOptions):
    """Encrypt secrets anew with the first key of PERDURE_SECRET_KEYS.

    After that, the keys behind the first may go. It may be repeated, and runs beside everything.
    """

    runs_user_code = False

    every: bool = flag("Those of all users, and not of PERDURE_USER alone.", "--all")

"""Commands of a gateway and its keys."""

from perdure.cli.declarations.agent_fields import AgentOptions
from perdure.cli.options import Options, OutputOptions, argument, flag, option
from perdure.cli.runner import command, new_group
from perdure.operations.worker.options import DEFAULT_GRACE

DEFAULT_PORT = 8700

app = new_group()


@command(app, "commands.gateway:gateway")
class Gateway(Options):
    """Serve the API and the page until ^C or SIGTERM, to whoever has a key.

    It works for the configured Temporal and store, else for the stack of `perdure dev`. It keeps
    nothing: several may run, on as many machines. An address that others reach needs a server for
    TLS before it.
    """

    through_gateway = "unrelated"

    host: str = option("The address to listen on.", default="127.0.0.1")
    port: int = option("The port to listen on.", default=DEFAULT_PORT, min=0, max=65535)
    grace: float = option(
        "The seconds from SIGTERM in which requests may end; streams are ended at once, and their "
        "clients go on at another gateway.",
        default=DEFAULT_GRACE,
        metavar="SECONDS",
        min=1,
    )


@command(app, "commands.mcp:mcp")
class Mcp(Options):
    """Serve conversations to a program that talks MCP, over stdin and stdout.

    The program starts this command, as it starts any server of the Model Context Protocol. A
    gateway serves the same tools at /mcp.
    """

    through_gateway = "works"

    agent: str | None = option(
        "The agent of conversations whose start names none, by its name.", metavar="NAME"
    )


@command(app, "commands.acp:acp")
class Acp(AgentOptions):
    """Serve conversations to an editor that talks ACP, over stdin and stdout.

    The editor starts this command, as any agent of the Agent Client Protocol. With `perdure dev`
    the agent works in the folder of the editor's project. A turn goes on when the editor is closed.
    """

    through_gateway = "works"


key = new_group()
app.add_typer(key, name="key", help="Make, list and revoke the API keys of a gateway.")


class KeyOptions(OutputOptions):
    """The options of a command about keys of a user."""

    user: str | None = option(
        "The user whose keys they are; PERDURE_USER by default.", metavar="USER"
    )


@command(key, "commands.gateway:create_key", "create")
class CreateKey(KeyOptions):
    """Make an API key and print it: it is shown this once."""

    name: str = argument("NAME", "What the key is for.")
    scope: list[str] | None = option(
        "What the key allows: read, write, or admin (keys); may be repeated. read and write by "
        "default.",
        metavar="SCOPE",
    )
    expires: str | None = option(
        "The end of its validity: 12h or 90d from now, or an ISO date.", metavar="WHEN"
    )


@command(key, "commands.gateway:list_keys", "ls")
class ListKeys(KeyOptions):
    """List the API keys of a user; secrets are never shown."""


@command(key, "commands.gateway:revoke_key", "revoke")
class RevokeKey(KeyOptions):
    """Revoke an API key for good; every gateway refuses it within seconds."""

    key_id: str = argument("KEY_ID", "The id, which `perdure key ls` shows.")


@command(key, "commands.gateway:log_in", "login")
class LogIn(KeyOptions):
    """Print an address that logs a browser in, once, within ten minutes."""

    read_only: bool = flag("Let the browser only read.", "--read-only")

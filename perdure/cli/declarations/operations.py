"""Commands for operators, and exports."""

from pathlib import Path

from perdure.cli.options import (
    ExportOptions,
    Options,
    OutputOptions,
    Port,
    argument,
    as_ids,
    completer,
    flag,
    id_argument,
    option,
)
from perdure.cli.runner import command, new_group

app = new_group()


@command(app, "commands.export:export")
class Export(ExportOptions):
    """Export conversations: messages, ATIF, OpenHands, Inspect, HTML and more.

    It needs only the store. For several conversations, JSON formats write a line each to a file, or
    a file each to a folder. A batch is exported with all its conversations. If events are damaged,
    the command names them, exports the others, and exits with 1.
    """

    through_gateway = "works"

    names: list[str] = as_ids(
        argument(
            "ID|BATCH...",
            "Conversations by id, or batches by name.",
            autocompletion=completer("complete_names"),
        ),
        "conversation or batch",
    )


@command(app, "commands.verify:verify")
class Verify(OutputOptions):
    """Check every stored object of conversations, and name each damaged event.

    It reads every object from the store, and changes nothing. If Temporal answers, the workflow
    reports how many events there must be. The exit code is 1 if anything is damaged.
    """

    ids: list[str] | None = id_argument("[ID]...")
    every: bool = flag("Check every conversation.", "--all")


class Deletion(OutputOptions):
    """The options of a deletion."""

    conversation_ids: list[str] = id_argument("ID...", own=True)
    yes: bool = flag("Delete without a question.", "--yes", "-y")
    force: bool = flag(
        "Also delete conversations whose workflows run; the workflows end.", "--force", "-f"
    )
    with_forks: bool = flag("Also delete all forks of the conversation.", "--with-forks")


@command(app, "commands.deletion:rm")
class Rm(Deletion):
    """Delete conversations for good: their logs, and their histories in Temporal.

    A conversation that is running is refused without --force. The files of workspaces stay. On a
    pipe, where nobody can answer a question, it needs --yes.
    """


@command(app, "commands.deletion:rm")
class Purge(Deletion):
    """The same as `perdure rm`."""


setup = new_group()
app.add_typer(setup, name="setup", help="Prepare a Temporal server for perdure.")


@command(setup, "commands.operations:setup_temporal", "temporal")
class SetupTemporal(OutputOptions):
    """Register the search attributes by which Temporal finds conversations.

    It may be repeated. Without search attributes everything else works.
    """

    through_gateway = "unrelated"


@command(app, "commands.operations:doctor")
class Doctor(OutputOptions):
    """Check Temporal, the store, the model's key and the disk, and say how to repair them.

    The exit code is that of the worst finding: 2 configuration, 6 unreachable.
    """

    through_gateway = "unrelated"


@command(app, "commands.worker:worker")
class Worker(Options):
    """Run a worker, as one process or several.

    It works for the configured Temporal and store, else for the stack of `perdure dev`, until ^C or
    SIGTERM. A process uses one core; of several, one that dies is started again.
    """

    through_gateway = "unrelated"

    processes: int = option(
        "The number of processes; 0 is one for each core.", default=1, metavar="N", min=0
    )


@command(app, "commands.operations:env")
class Env(OutputOptions):
    """Print the addresses and keys of the running stack for a shell: `eval "$(perdure env)"`.

    With them, `temporal`, `aws` and programs of your own find Temporal and the store.
    """

    through_gateway = "unrelated"

    data: Path | None = option("The folder of the stack; PERDURE_DATA by default.")


@command(app, "commands.operations:deploy")
class Deploy(OutputOptions):
    """Make a version of the workers' code the current one for all conversations.

    Running conversations continue under it at their next step. Without BUILD_ID, the command lists
    the versions.
    """

    through_gateway = "unrelated"

    build_id: str | None = argument("[BUILD_ID]", "The PERDURE_BUILD_ID of the version's workers.")
    ramp: float | None = option(
        "The share of the conversations that try the version.", metavar="PERCENT", min=0, max=100
    )


model = new_group()
app.add_typer(model, name="model", help="Serve a scripted model over HTTP.")


@command(model, "commands.servers:serve_model", "serve")
class ServeModel(OutputOptions):
    """Answer from a script until ^C, as an OpenAI-compatible server and as Anthropic's."""

    through_gateway = "unrelated"

    script: Path = argument("SCRIPT", "A .json or .toml file of answers.")
    port: Port = 0


codec = new_group()
app.add_typer(codec, name="codec", help="Decrypt payloads for the Temporal UI.")


@command(codec, "commands.servers:serve_codec", "serve")
class ServeCodec(OutputOptions):
    """Encrypt and decrypt payloads for the Temporal UI and the `temporal` command, until ^C.

    It uses PERDURE_PAYLOAD_KEYS. Whoever reaches it can read encrypted payloads.
    """

    through_gateway = "unrelated"

    origin: list[str] | None = option(
        "The address of a Temporal UI that may use it, as http://HOST:PORT; may be repeated."
    )
    port: Port = 0
    host: str = option("The address to listen on. It asks for no password.", default="127.0.0.1")

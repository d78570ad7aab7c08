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

    Only the store is needed. Of many conversations a file gets a line each, where the format is
    JSON, and a folder a file each; a batch is many, and one Inspect log. What is damaged is named,
    and the rest is exported: then the exit code is 1.
    """

    names: list[str] = as_ids(
        argument(
            "ID|BATCH...",
            "Conversations by id, or batches by name.",
            autocompletion=completer("complete_names"),
        ),
        "conversation or batch",
    )


@command(app, "commands.logs:verify")
class Verify(OutputOptions):
    """Check that conversations are as they were written, and name each event that is not.

    Every object is read from the store, and nothing is changed. Where Temporal answers, the
    workflow is asked how many events there must be. The exit code is 1 where anything is damaged.
    """

    ids: list[str] | None = id_argument("[ID]...")
    every: bool = flag("Check every conversation.", "--all")


class Deletion(OutputOptions):
    """The options of a deletion."""

    conversation_ids: list[str] = id_argument("ID...")
    yes: bool = flag("Do not ask first.", "--yes", "-y")
    force: bool = flag("Also those whose workflows run, which are ended.", "--force", "-f")
    with_forks: bool = flag("And all conversations that begin with its events.", "--with-forks")


@command(app, "commands.deletion:rm")
class Rm(Deletion):
    """Delete conversations for good: their logs, and their histories in Temporal.

    One whose workflow runs is refused without --force. The files of their workspaces stay. On a
    pipe nobody can be asked: give --yes.
    """


@command(app, "commands.deletion:rm")
class Purge(Deletion):
    """The same as `perdure rm`."""


setup = new_group()
app.add_typer(setup, name="setup", help="Tell Temporal once what perdure needs of it.")


@command(setup, "commands.operations:setup_temporal", "temporal")
class SetupTemporal(OutputOptions):
    """Register the search attributes, by which conversations are found in Temporal.

    Doing it again does no harm. Without them everything else works.
    """


@command(app, "commands.operations:doctor")
class Doctor(OutputOptions):
    """Check Temporal, the store, the model's key and the disk, and say how to mend them.

    The exit code is that of the worst finding: 2 configuration, 6 unreachable.
    """


@command(app, "commands.operations:worker")
class Worker(Options):
    """Run a worker in this process.

    It works for the configured Temporal and store, else for the stack of `perdure dev`, until it is
    told to end by ^C or SIGTERM.
    """


@command(app, "commands.operations:env")
class Env(OutputOptions):
    """Print the addresses and keys of the running stack for a shell: `eval "$(perdure env)"`.

    Any program finds Temporal and the store by them, such as `temporal`, `aws` or your own.
    """

    data: Path | None = option("The folder of the stack; else PERDURE_DATA.")


@command(app, "commands.operations:deploy")
class Deploy(OutputOptions):
    """Let conversations begin and go on under a version of the workers' code.

    Those that run go on under it from their next step on. Without BUILD_ID it lists the versions.
    """

    build_id: str | None = argument("[BUILD_ID]", "The PERDURE_BUILD_ID of the version's workers.")
    ramp: float | None = option(
        "Try it with so many of the conversations.", metavar="PERCENT", min=0, max=100
    )


model = new_group()
app.add_typer(model, name="model", help="Serve a scripted model over HTTP.")


@command(model, "commands.servers:serve_model", "serve")
class ServeModel(OutputOptions):
    """Answer as an OpenAI-compatible server from a script, until ^C."""

    script: Path = argument("SCRIPT", "A .json or .toml file of answers.")
    port: Port = 0


codec = new_group()
app.add_typer(codec, name="codec", help="Decrypt payloads for the Temporal UI.")


@command(codec, "commands.servers:serve_codec", "serve")
class ServeCodec(OutputOptions):
    """Encrypt and decrypt payloads for the Temporal UI and the `temporal` command, until ^C.

    Uses PERDURE_PAYLOAD_KEYS. Whoever reaches it can read what was encrypted.
    """

    origin: list[str] | None = option(
        "A Temporal UI whose page may ask, as http://HOST:PORT; repeatable."
    )
    port: Port = 0
    host: str = option("Where to listen. Nobody is asked for a password.", default="127.0.0.1")

"""Commands for operators, and exports."""

from enum import StrEnum
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
from perdure.operations.worker.options import DEFAULT_GRACE

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
    every: bool = flag("Check every conversation, and every discussion.", "--all")


@command(app, "commands.listing:reindex")
class Reindex(OutputOptions):
    """Make the index of conversations anew from their logs.

    Lists are quick by the index and right without it: this is for one that was lost or damaged. It
    needs only the store.
    """

    runs_user_code = False
    user: str | None = option("The user whose index is made.", metavar="USER")


@command(app, "commands.backup:backup")
class Backup(OutputOptions):
    """Copy the store into another one: all users, their logs, and all else that is kept.

    It may be repeated, and then copies what is new. It deletes nothing there, and leaves out what
    can be made again, and sessions of browsers. The copy is a store: PERDURE_STORE may name it.
    """

    through_gateway = "unrelated"

    into: str = argument("INTO", "The other store: file:///folder or s3://bucket/prefix.")


@command(app, "commands.backup:drill")
class Drill(OutputOptions):
    """Restore yesterday's state of a store into an empty one, and verify everything.

    Logs are restored up to the moment, and all else as it is now. Nothing of it is started, and the
    store that is restored from is only read. The exit code is 1 if anything is damaged.
    """

    through_gateway = "unrelated"

    source: str | None = option(
        "The store to restore from, such as a backup; the configured one by default.",
        "--from",
        metavar="STORE",
    )
    at: str = option(
        "The moment: now, 2h or 1d for so long ago, or an ISO date.", default="1d", metavar="TIME"
    )
    into: str | None = option(
        "An empty store, which is kept; a temporary folder by default.", metavar="STORE"
    )


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


@command(app, "commands.top:top")
class Top(OutputOptions):
    """Show who is at work, at what, since when, what it costs and what is in trouble.

    On a terminal it is shown again and again until ^C; on a pipe, and with `--once`, it is shown
    once. It shows the conversations of all users: whoever runs it holds the keys of Temporal.
    Steps and costs are those before the turn that is at work.
    """

    through_gateway = "unrelated"

    user: str | None = option("Show only what this user has at work.", metavar="USER")
    limit: int = option(
        "The maximum of conversations to show, the longest at work first.",
        *("--limit", "-n"),
        default=30,
        min=1,
    )
    once: bool = flag("Show it once.", "--once")


class WorkerKind(StrEnum):
    """The kinds of steps that a worker may be for."""

    model = "model"
    tools = "tools"
    workflows = "workflows"


@command(app, "commands.worker:worker")
class Worker(Options):
    """Run a worker, as one process or several.

    It works for the configured Temporal and store, else for the stack of `perdure dev`, until ^C or
    SIGTERM. A process uses one core; of several, one that dies is started again.

    With --only it takes one kind of steps: `model` asks models, `tools` runs tools and commands in
    workspaces, `workflows` does all else, and hands these on. Each kind then needs a worker.
    """

    through_gateway = "unrelated"

    processes: int = option(
        "The number of processes; 0 is one for each core.", default=1, metavar="N", min=0
    )
    only: list[WorkerKind] | None = option(
        "The kind of steps to take: model, tools or workflows; may be repeated.", metavar="KIND"
    )
    concurrency: int | None = option(
        "The steps that a process has at work at once from each task queue; 100 by default, and "
        "500 from the common one.",
        metavar="N",
        min=1,
    )
    max_memory: str | None = option(
        "The memory of a process, such as 2GiB: past it, it drains and exits with 75, to be "
        "started again.",
        metavar="SIZE",
    )
    grace: float = option(
        "The seconds from SIGTERM to the exit; steps that take longer are handed on.",
        default=DEFAULT_GRACE,
        metavar="SECONDS",
        min=1,
    )
    health_port: int | None = option(
        "The port at which /livez and /readyz answer whoever reaches this machine.",
        metavar="PORT",
        min=0,
        max=65535,
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

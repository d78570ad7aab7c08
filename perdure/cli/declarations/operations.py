"""Commands for operators, and exports."""

from pathlib import Path
from typing import Annotated

import typer

from perdure.cli import commands
from perdure.cli.options import (
    ConversationId,
    ExportFormat,
    ExportPath,
    Format,
    Output,
    Port,
)
from perdure.cli.runner import new_group, run_command

app = new_group()


@app.command()
def export(
    names: Annotated[
        list[str],
        typer.Argument(metavar="ID|BATCH...", help="Conversations by id, or batches by name."),
    ],
    name: ExportFormat,
    output: ExportPath = "-",
) -> None:
    """Export conversations: messages, ATIF, OpenHands, Inspect, HTML and more.

    Only the store is needed. Of many conversations a file gets a line each, where the format is
    JSON, and a folder a file each; a batch is many, and one Inspect log. What is damaged is named,
    and the rest is exported: then the exit code is 1.
    """
    run_command(commands.export.execute(names, name, output), Format.text)


@app.command()
def verify(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The conversations' ids.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Check every conversation.")] = False,
    output: Output = Format.text,
) -> None:
    """Check that conversations are as they were written, and name each event that is not.

    Every object is read from the store, and nothing is changed. Where Temporal answers, the
    workflow is asked how many events there must be. The exit code is 1 where anything is damaged.
    """
    run_command(commands.verify.execute(ids or [], every, output), output)


@app.command()
def purge(
    conversation_id: ConversationId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    with_forks: Annotated[
        bool, typer.Option("--with-forks", help="And all conversations that begin with its events.")
    ] = False,
    output: Output = Format.text,
) -> None:
    """Delete a conversation for good: its log, and its histories in Temporal.

    Its workflow must have ended. The files of its workspace stay.
    """
    run_command(commands.purge.execute(conversation_id, yes, with_forks, output), output)


setup = new_group()
app.add_typer(setup, name="setup", help="Tell Temporal once what perdure needs of it.")


@setup.command()
def temporal(output: Output = Format.text) -> None:
    """Register the search attributes, by which conversations are found in Temporal.

    Doing it again does no harm. Without them everything else works.
    """
    run_command(commands.setup.execute(output), output)


@app.command()
def doctor(output: Output = Format.text) -> None:
    """Check Temporal, the store, the model's key and the disk, and say how to mend them.

    The exit code is that of the worst finding: 2 configuration, 6 unreachable.
    """
    run_command(commands.doctor.execute(output), output)


@app.command()
def worker() -> None:
    """Run a worker in this process.

    It works for the configured Temporal and store, else for the stack of `perdure dev`, until it is
    told to end by ^C or SIGTERM.
    """
    run_command(commands.worker.execute(), Format.text)


@app.command()
def deploy(
    build_id: Annotated[
        str | None,
        typer.Argument(metavar="[BUILD_ID]", help="The PERDURE_BUILD_ID of the version's workers."),
    ] = None,
    ramp: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT", help="Try it with so many of the conversations.", min=0, max=100
        ),
    ] = None,
    output: Output = Format.text,
) -> None:
    """Let conversations begin and go on under a version of the workers' code.

    Those that run go on under it from their next step on. Without BUILD_ID it lists the versions.
    """
    run_command(commands.deploy.execute(build_id, ramp, output), output)


model = new_group()
app.add_typer(model, name="model", help="Serve a scripted model over HTTP.")


@model.command("serve")
def serve_model(
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT", help="A .json or .toml file of answers.")
    ],
    port: Port = 0,
    output: Output = Format.text,
) -> None:
    """Answer as an OpenAI-compatible server from a script, until ^C."""
    run_command(commands.model.execute(script, port, output), output)


codec = new_group()
app.add_typer(codec, name="codec", help="Decrypt payloads for the Temporal UI.")


@codec.command("serve")
def serve_codec(
    origin: Annotated[
        list[str] | None,
        typer.Option(help="A Temporal UI whose page may ask, as http://HOST:PORT; repeatable."),
    ] = None,
    port: Port = 0,
    host: Annotated[
        str, typer.Option(help="Where to listen. Nobody is asked for a password.")
    ] = "127.0.0.1",
    output: Output = Format.text,
) -> None:
    """Encrypt and decrypt payloads for the Temporal UI and the `temporal` command, until ^C.

    Uses PERDURE_PAYLOAD_KEYS. Whoever reaches it can read what was encrypted.
    """
    run_command(commands.codec.execute(origin or [], host, port, output), output)
